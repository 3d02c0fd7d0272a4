//! The figures of a connection's receiving end, and the directions of data.

use wakeai_units::{Bytes, Duration};

/// The direction of data as a station sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Direction {
    /// The station sends: uploads.
    Up,
    /// The station receives: downloads.
    Down,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// The opposite direction.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// The figures of a connection's receiving end at one moment, as the kernel's `tcp_sock` holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receiving {
    /// Payload bytes that have arrived in order since the start (`bytes_received`).
    pub received: u64,
    /// The receiver's estimate of the RTT (`rcv_rtt_est`); `None` before the first sample. It falls
    /// at once to a shorter sample and follows longer ones by an exponential mean. It has a
    /// resolution of 1 ms where it comes from timestamps, and contains the pauses of the sender.
    pub rtt: Option<Duration>,
    /// The window that was offered last (`rcv_wnd`).
    pub window: Bytes,
    /// The size of the peer's segments (`rcv_mss`); before data has arrived, the size that this end
    /// has announced.
    pub mss: Bytes,
}
