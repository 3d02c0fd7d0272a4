//! A transmission: its sender, its receiver, and its times, within the time of an exchange.

use wakeai_units::{Duration, Instant};

use super::frames::{Limits, Psdu};
use super::link::StationLink;

/// A contender for the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// A station, given by its index.
    Station(usize),
    /// An access point, given by its index.
    AccessPoint(usize),
}

impl Contender {
    /// The index among all contenders: the stations come first, and the access points last.
    pub(crate) fn index(self, stations: usize) -> usize {
        match self {
            Self::Station(station) => station,
            Self::AccessPoint(place) => stations + place,
        }
    }

    /// The contender with this index.
    pub(crate) fn of(index: usize, stations: usize) -> Self {
        match index.checked_sub(stations) {
            Some(place) => Self::AccessPoint(place),
            None => Self::Station(index),
        }
    }

    /// The index of the station; `None` for an access point.
    pub(crate) fn station(self) -> Option<usize> {
        match self {
            Self::Station(station) => Some(station),
            Self::AccessPoint(_) => None,
        }
    }
}

/// A receiver of an access point's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// A station, given by its index.
    Station(usize),
    /// All stations of the access point: a broadcast.
    Everyone,
}

/// The sender and the receiver of the frames of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// From the station with this index to its access point.
    Up(usize),
    /// From the access point with this index to this receiver.
    Down(usize, Receiver),
}

impl Path {
    pub(crate) fn sender(self) -> Contender {
        match self {
            Self::Up(station) => Contender::Station(station),
            Self::Down(place, _) => Contender::AccessPoint(place),
        }
    }

    /// The station at one end of the link; `None` for a broadcast.
    pub(crate) fn station(self) -> Option<usize> {
        match self {
            Self::Up(station) | Self::Down(_, Receiver::Station(station)) => Some(station),
            Self::Down(_, Receiver::Everyone) => None,
        }
    }
}

/// One sender's access to the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) path: Path,
    pub(crate) psdu: Psdu,
    pub(crate) start: Instant,
    /// The duration of RTS and CTS, with the SIFS (short interframe space) after each.
    pub(crate) lead: Duration,
    /// The part of `lead` in which a frame is on the air.
    pub(crate) lead_frames: Duration,
    /// The end of the data frame where nothing collides.
    pub(crate) end: Instant,
    /// The end of the transmission where it collides: the end of the RTS, or of the data frame
    /// where there is no RTS.
    pub(crate) end_if_collided: Instant,
    /// The end of the TXOP (the time for further exchanges in the same access). It is equal to
    /// `start` where the TXOP has only one exchange.
    pub(crate) txop_end: Instant,
}

impl Attempt {
    /// An attempt without RTS and CTS, whose data frame ends at `end`.
    pub(crate) fn unprotected(path: Path, psdu: Psdu, turn: Turn, end: Instant) -> Self {
        let Turn { start, txop_end, .. } = turn;
        let (lead, lead_frames) = (Duration::ZERO, Duration::ZERO);
        Self { path, psdu, start, lead, lead_frames, end, end_if_collided: end, txop_end }
    }
}

/// The time of an exchange within a TXOP, which is the time of one access.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) start: Instant,
    pub(crate) txop_end: Instant,
    /// Whether this is the first exchange of the TXOP. The first exchange may be protected and may
    /// have any length. A further exchange must fit into the rest of the TXOP (10.23.2.9).
    pub(crate) first: bool,
}

impl Turn {
    /// The limits of the data frame. In the first exchange the data frame starts after RTS and CTS.
    pub(crate) fn limits(&self, station: &StationLink) -> Limits {
        if self.txop_end == self.start {
            return station.limits;
        }
        let lead = if self.first { station.lead } else { Duration::ZERO };
        station.limits_within(self.txop_end.saturating_since(self.start + lead))
    }

    /// Whether an exchange that ends at `end` may take place.
    pub(crate) fn admits(&self, end: Instant) -> bool {
        self.first || end <= self.txop_end
    }
}
