//! Measurements beside a real access point.
//!
//! [`ProbeSockets`] listen on a station, [`probe_buffer`] on the wired side. Both only drive sockets and
//! the clock. [`Listener`] decides what a listener does, [`buffer::Plan`] decides which bursts are
//! sent, and [`buffer::read`] computes the result of a burst. These three use no socket and no
//! clock.

mod arrivals;
pub mod buffer;
mod datagram;
mod io;
mod listener;
pub mod solo;
mod token;

pub use arrivals::{BurstArrival, Part};
pub use datagram::{DatagramKind, HEADER_BYTES, Header, LONGEST_BYTES, Seal};
pub use io::{
    BufferProbe, Heard, ProbeError, ProbePeer, ProbeProgress, ProbeSockets, SendError, Stop,
    probe_buffer, probe_solo,
};
pub use listener::{Ending, Limits, Listener, Tally};
pub use token::{ParseTokenError, Token};
