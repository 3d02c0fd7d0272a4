//! Accesses: the frames that a contender (a station or the access point) puts on the air when its
//! backoff is over, and their times.

use wakeai_units::{Duration, Instant};

use super::Wifi;
use super::attempt::{Attempt, Contender, Path, Turn};
use super::frames::{Framing, Limits};
use super::link::StationLink;
use crate::node::{Node, Packet, StationId};

/// The limits of a broadcast, which is one MPDU (frame) without a QoS field.
const BROADCAST: Limits = Limits { framing: Framing::Single, subframes: 1, psdu: 0 };

impl<P: Packet> Wifi<P> {
    /// Starts the transmissions of all contenders whose backoff counter has reached zero.
    pub(crate) fn begin_access(&mut self, at: Instant) {
        self.contention.begin(&mut self.senders, &mut self.rng);
        self.base.counters.airtime.idle += at - self.quiet_since;
        self.base.counters.accesses += self.senders.len() as u64;
        for place in 0..self.senders.len() {
            let index = self.senders[place] as usize;
            let is_station = index < self.links.len();
            let sender =
                if is_station { Contender::Station(index) } else { Contender::AccessPoint };
            let turn = Turn { start: at, txop_end: at + self.txops[index], first: true };
            let attempt =
                self.plan(sender, turn).expect("a contender that counts down has a frame");
            self.on_air.push(attempt);
        }
        self.senders.clear();
        let collided = self.on_air.len() > 1;
        let ends = self.on_air.iter().map(|a| if collided { a.end_if_collided } else { a.end });
        self.busy_until = ends.max();
        if let [alone] = self.on_air[..] {
            self.begin_reception(alone);
        }
    }

    /// The frames that `sender` puts on the air in this turn; `None` where no frame waits or none
    /// fits.
    pub(crate) fn plan(&mut self, sender: Contender, turn: Turn) -> Option<Attempt> {
        let path = match sender {
            Contender::AccessPoint => Path::Down(self.access_point.next_receiver()?),
            Contender::Station(station) => {
                self.take_from_host(station, turn);
                Path::Up(station)
            }
        };
        match path.station() {
            Some(station) => self.plan_data(path, &self.links[station], turn),
            None => self.plan_broadcast(path, turn),
        }
    }

    /// Takes packets from a station's FQ-CoDel queue into the aggregate that the station is about
    /// to send.
    fn take_from_host(&mut self, station: usize, turn: Turn) {
        let Some(host) = &mut self.hosts[station] else { return };
        let (link, frames) = (&self.links[station], &mut self.uplinks[station]);
        let counters = &mut self.base.counters.stations[station];
        let mut gone = self.base.departures.of(Some(station));
        let from = Node::Station(StationId(station as u32));
        frames.fill(&turn.limits(link), || {
            let next = host.pop(self.base.clock, |(packet, ..)| {
                counters.queue_drops += 1;
                gone(&packet);
            });
            next.map(|(packet, to, shape)| (packet, from, to, shape))
        });
    }

    fn plan_data(&self, path: Path, station: &StationLink, turn: Turn) -> Option<Attempt> {
        let psdu = self.queue(path).plan(&turn.limits(station))?;
        let is_protected = turn.first && psdu.bytes > station.protected_above;
        let lead = if is_protected { station.lead } else { Duration::ZERO };
        let end = turn.start + lead + station.rate.duration(psdu.bytes);
        let mut attempt = Attempt::unprotected(path, psdu, turn, end);
        if is_protected {
            attempt.lead = lead;
            attempt.lead_frames = station.lead_frames;
            attempt.end_if_collided = station.rts.map_or(end, |rts| turn.start + rts);
        }
        turn.admits(end + self.bss.sifs + station.answer(psdu.mpdus)).then_some(attempt)
    }

    fn plan_broadcast(&self, path: Path, turn: Turn) -> Option<Attempt> {
        let psdu = self.queue(path).plan(&BROADCAST)?;
        let end = turn.start + self.bss.broadcast.duration(psdu.bytes);
        turn.admits(end).then(|| Attempt::unprotected(path, psdu, turn, end))
    }
}
