//! Accesses: the frames that a contender puts on the air when its backoff is over, and their times.

use wakeai_units::{Duration, Instant};

use super::Wifi;
use super::frames::{Framing, Limits, Psdu};
use super::link::Link;
use crate::node::{Node, Packet, StationId};

/// A broadcast is one MPDU without QoS field.
const BROADCAST: Limits = Limits { framing: Framing::Single, subframes: 1, psdu: 0 };

/// A contender for the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// A station, by its index.
    Station(usize),
    AccessPoint,
}

impl Contender {
    /// Its index among all contenders: the stations, and after them the access point.
    pub(crate) fn index(self, stations: usize) -> usize {
        match self {
            Self::Station(station) => station,
            Self::AccessPoint => stations,
        }
    }

    /// The station's index, if it is one.
    pub(crate) fn station(self) -> Option<usize> {
        match self {
            Self::Station(station) => Some(station),
            Self::AccessPoint => None,
        }
    }
}

/// A receiver of the access point's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// A station, by its index.
    Station(usize),
    /// All stations: a broadcast.
    Everyone,
}

/// The sender and the receiver of the frames of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// From this station to the access point.
    Up(usize),
    /// From the access point.
    Down(Receiver),
}

impl Path {
    pub(crate) fn sender(self) -> Contender {
        match self {
            Self::Up(station) => Contender::Station(station),
            Self::Down(_) => Contender::AccessPoint,
        }
    }

    /// The station at one end of the link; `None` for a broadcast.
    pub(crate) fn station(self) -> Option<usize> {
        match self {
            Self::Up(station) | Self::Down(Receiver::Station(station)) => Some(station),
            Self::Down(Receiver::Everyone) => None,
        }
    }
}

/// One sender's access to the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) path: Path,
    pub(crate) psdu: Psdu,
    pub(crate) start: Instant,
    /// RTS and CTS, with the SIFS that follow them.
    pub(crate) lead: Duration,
    /// The part of `lead` in which a frame is on the air.
    pub(crate) lead_frames: Duration,
    /// End of the data frame, if nothing collides.
    pub(crate) end: Instant,
    /// End of the frame that the sender has on the air when it notices a collision: the RTS, or all of it.
    pub(crate) end_if_collided: Instant,
    /// When the TXOP is over; equal to `start` where it holds only one exchange.
    pub(crate) txop_end: Instant,
}

/// A place in a TXOP.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) start: Instant,
    pub(crate) txop_end: Instant,
    /// The first exchange is protected, and goes out whatever its length; a further one has to fit
    /// into what is left (10.23.2.9).
    pub(crate) first: bool,
}

impl Turn {
    /// The limits of the data frame that starts after `lead`.
    fn limits(&self, station: &Link, lead: Duration) -> Limits {
        if self.txop_end == self.start {
            station.limits
        } else {
            station.limits_within(self.txop_end.saturating_since(self.start + lead))
        }
    }

    fn admits(&self, end: Instant) -> bool {
        self.first || end <= self.txop_end
    }
}

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

    /// The frames that `sender` puts on the air in this turn; `None` where nothing waits, or nothing fits.
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

    /// Takes packets from a station's FQ-CoDel queue into the aggregate that it is about to send.
    fn take_from_host(&mut self, station: usize, turn: Turn) {
        let Some(host) = &mut self.hosts[station] else { return };
        let (link, frames) = (&self.links[station], &mut self.uplinks[station]);
        let counters = &mut self.base.counters.stations[station];
        let mut gone = self.base.departures.of(Some(station));
        let from = Node::Station(StationId(station as u32));
        let room = if turn.first { link.lead } else { Duration::ZERO };
        frames.fill(&turn.limits(link, room), || {
            let next = host.pop(self.base.clock, |(packet, ..)| {
                counters.queue_drops += 1;
                gone(&packet);
            });
            next.map(|(packet, to, shape)| (packet, from, to, shape))
        });
    }

    fn plan_data(&self, path: Path, station: &Link, turn: Turn) -> Option<Attempt> {
        let room = if turn.first { station.lead } else { Duration::ZERO };
        let psdu = self.queue(path).plan(&turn.limits(station, room))?;
        let is_protected = turn.first && psdu.bytes > station.protected_above;
        let lead = if is_protected { station.lead } else { Duration::ZERO };
        let end = turn.start + lead + station.rate.duration(psdu.bytes);
        let attempt = Attempt {
            path,
            psdu,
            start: turn.start,
            lead,
            lead_frames: if is_protected { station.lead_frames } else { Duration::ZERO },
            end,
            end_if_collided: match station.rts {
                Some(rts) if is_protected => turn.start + rts,
                _ => end,
            },
            txop_end: turn.txop_end,
        };
        turn.admits(end + self.bss.sifs + station.answer(psdu.mpdus)).then_some(attempt)
    }

    fn plan_broadcast(&self, path: Path, turn: Turn) -> Option<Attempt> {
        let psdu = self.queue(path).plan(&BROADCAST)?;
        let end = turn.start + self.bss.broadcast.duration(psdu.bytes);
        let attempt = Attempt {
            path,
            psdu,
            start: turn.start,
            lead: Duration::ZERO,
            lead_frames: Duration::ZERO,
            end,
            end_if_collided: end,
            txop_end: turn.txop_end,
        };
        turn.admits(end).then_some(attempt)
    }
}
