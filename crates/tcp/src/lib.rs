//! TCP as Linux speaks it, in virtual time: one [`Sender`] that opens a connection, sends a stream
//! and closes, and one [`Receiver`] that takes it. The bytes themselves are not carried.
//!
//! Neither reads a clock: segments and timeouts go in by `handle_*`, segments and events come out of
//! `poll_*`, and `next_timeout` gives the time of the next call. Congestion control is [`Algorithm`]: the
//! C source that the kernel runs, too, with its hooks called where the kernel calls them. [`Profile`]
//! chooses between today's Linux and the sender of the papers and of other simulators.

mod algorithm;
mod config;
mod receiver;
mod segment;
mod sender;

pub use algorithm::{ALGORITHM_NAMES, Algorithm, Knobs, by_name, by_name_with, default_knobs};
pub use config::{Profile, TcpConfig};
pub use receiver::{Reading, Receiver, ReceiverCounters};
pub use segment::{Flags, MAX_SACK_BLOCKS, SackBlocks, Segment, SynOptions, Timestamp};
pub use sender::{Sender, SenderCounters};
