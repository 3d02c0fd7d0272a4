//! A transmission: its sender, its receiver, and its times.

use wakeai_units::{Duration, Instant};

use super::frames::Psdu;
use super::turn::Turn;

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
    /// The end of the transmission if it collides: that of the RTS or, without RTS, of the data
    /// frame.
    pub(crate) end_if_collided: Instant,
    /// The end of the TXOP; equal to `start` if it holds only one exchange.
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
