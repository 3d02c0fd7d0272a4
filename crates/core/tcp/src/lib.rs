//! TCP as Linux implements it, in virtual time: a [`Sender`] opens a connection, sends a stream and
//! closes, and a [`Receiver`] receives it. The bytes themselves are not carried.
//!
//! Neither reads a clock. Segments and timeouts are passed to `handle_*`, segments and events are
//! returned by `poll_*`, and `next_timeout` gives the time of the next call. The congestion control
//! is an [`Algorithm`]: the C source that the kernel also runs, with hooks that are called at the
//! same places as in the kernel. [`Profile`] chooses between today's Linux and the sender of the
//! papers and of other simulators.

mod algorithm;
mod config;
mod receiver;
mod segment;
mod sender;

pub use algorithm::{Algorithm, Knobs, algorithm_names, by_name, by_name_with, default_knobs};
pub use config::{Profile, TcpConfig};
pub use receiver::{Reading, Receiver, ReceiverCounters};
pub use segment::{Flags, MAX_SACK_BLOCKS, SackBlocks, Segment, SynOptions, Timestamp};
pub use sender::{Sender, SenderCounters};
