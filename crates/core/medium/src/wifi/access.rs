//! Accesses: the frames that a contender (a station or the access point) puts on the air when its
//! backoff is over, and their times.

use wakeai_units::{Duration, Instant};

use super::Wifi;
use super::attempt::{Attempt, Contender, Path, Receiver, Turn};
use super::frames::{Framing, Limits};
use super::phy::PhyRate;
use super::ports::queue_mut;
use crate::node::{Node, Packet, StationId};

/// The limits of a broadcast, which is one MPDU (frame) without a QoS field.
const BROADCAST: Limits = Limits { framing: Framing::Single, subframes: 1, psdu: 0, amsdu: 0 };

impl<P: Packet> Wifi<P> {
    /// Starts the transmissions of all contenders of a channel whose backoff counter has reached zero.
    pub(crate) fn begin_access(&mut self, number: usize, at: Instant) {
        let channel = &mut self.channels[number];
        channel.contention.begin(&mut self.senders, &mut channel.rng);
        self.base.counters.airtime.idle += at - channel.quiet_since;
        self.base.counters.accesses += self.senders.len() as u64;
        for place in 0..self.senders.len() {
            let index = self.senders[place] as usize;
            let sender = Contender::of(index, self.links.len());
            let turn = Turn { start: at, txop_end: at + self.txops[index], first: true };
            let attempt =
                self.plan(sender, turn).expect("a contender that counts down has a frame");
            self.channels[number].on_air.push(attempt);
        }
        self.senders.clear();
        let channel = &mut self.channels[number];
        let collided = channel.on_air.len() > 1;
        let ends = channel.on_air.iter().map(|a| if collided { a.end_if_collided } else { a.end });
        channel.busy_until = ends.max();
        if let [alone] = channel.on_air[..] {
            self.begin_reception(number, alone);
        }
    }

    /// The frames that `sender` puts on the air in this turn; `None` where no frame waits or none
    /// fits.
    pub(crate) fn plan(&mut self, sender: Contender, turn: Turn) -> Option<Attempt> {
        let path = match sender {
            Contender::AccessPoint(place) => {
                Path::Down(place, self.access_points[place].queues.next_receiver()?)
            }
            Contender::Station(station) => {
                self.take_from_host(station, turn);
                Path::Up(station)
            }
        };
        match path {
            Path::Up(station) | Path::Down(_, Receiver::Station(station)) => {
                self.plan_data(path, station, turn)
            }
            Path::Down(place, Receiver::Everyone) => self.plan_broadcast(path, place, turn),
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
                gone(&packet, 0, false);
            });
            next.map(|(packet, to, shape)| (packet, from, to, shape))
        });
    }

    fn plan_data(&mut self, path: Path, station: usize, turn: Turn) -> Option<Attempt> {
        let alike = self.modulate(path, station);
        let mut limits = turn.limits(&self.links[station]);
        limits.subframes = limits.subframes.min(alike);
        let psdu = queue_mut(&mut self.uplinks, &mut self.access_points, path).plan(&limits)?;
        let station = &self.links[station];
        let is_protected = turn.first && psdu.bytes > station.protected_above;
        let lead = if is_protected { station.lead } else { Duration::ZERO };
        let end = turn.start + lead + station.rate.duration(psdu.bytes);
        let mut attempt = Attempt::unprotected(path, psdu, turn, end);
        if is_protected {
            attempt.lead = lead;
            attempt.lead_frames = station.lead_frames;
            attempt.end_if_collided = station.rts.map_or(end, |rts| turn.start + rts);
        }
        turn.admits(end + station.standard.sifs() + station.answer(psdu.mpdus)).then_some(attempt)
    }

    fn plan_broadcast(&mut self, path: Path, place: usize, turn: Turn) -> Option<Attempt> {
        let frames = queue_mut(&mut self.uplinks, &mut self.access_points, path);
        let (psdu, chosen) = (frames.plan(&BROADCAST)?, frames.modulation());
        let access_point = &self.access_points[place];
        let standard = self.config.access_points[place].bss.standard;
        let rate =
            chosen.map_or(access_point.common.broadcast, |(one, _)| PhyRate::new(&one, standard));
        let end = turn.start + rate.duration(psdu.bytes);
        turn.admits(end).then(|| Attempt::unprotected(path, psdu, turn, end))
    }
}
