//! What the monitor reports.

use wakeai_units::Instant;

use crate::tcp::{CongestionState, Figures, Socket};

/// One thing that the monitor saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A connection's figures when an ACK arrived.
    Sample(Sample),
    /// Something that is never sampled away.
    Event(Event),
}

/// A connection's figures when an ACK arrived, as the ACK before it left them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// `CLOCK_MONOTONIC`.
    pub at: Instant,
    /// Which connection.
    pub socket: Socket,
    /// Its figures.
    pub figures: Figures,
}

/// Something that happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC`.
    pub at: Instant,
    /// Which connection.
    pub socket: Socket,
    /// Its figures then.
    pub figures: Figures,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The connection was established.
    Opened,
    /// The connection is closed.
    Closed,
    /// The congestion state changed.
    StateChange {
        /// Before.
        from: CongestionState,
        /// After.
        to: CongestionState,
    },
    /// A segment was retransmitted.
    Retransmit,
    /// The retransmission timer ran out; [`ErrorCode::Timeout`] follows.
    Timeout,
    /// An error code of DESIGN §6 (000 table 2): follows the state change that it comes from.
    Error(ErrorCode),
}

/// The error codes of 000 table 2, from the kernel's congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    /// 1: Disorder.
    Reordering = 1,
    /// 2: CWR without ECN, so the local send queue overflowed.
    LocalOverflow = 2,
    /// 3: Recovery.
    DuplicateAck = 3,
    /// 4: Loss.
    Timeout = 4,
}

impl ErrorCode {
    /// The number in the paper's table.
    pub fn number(self) -> u8 {
        self as u8
    }
}
