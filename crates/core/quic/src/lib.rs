//! QUIC as RFC 9000 and RFC 9002 describe it, in virtual time: a [`Sender`] opens a connection and sends one stream, and
//! a [`Receiver`] receives it. The bytes themselves are not carried.
//!
//! Neither reads a clock. Packets and timeouts are passed to `handle_*`, packets and events are returned by `poll_*`,
//! and `next_timeout` gives the time of the next call. The congestion control is an
//! [`Algorithm`](wakeai_algorithms::Algorithm), whose source TCP and the kernel use, too. Where the RFCs leave a choice,
//! it is that of quinn, which carries the flows of the lab (docs/decisions/035-quic.md).

mod packet;
mod receiver;
mod sender;

pub use packet::{Ack, Data, PAYLOAD, Packet};
pub use receiver::Receiver;
pub use sender::{Control, Sender};

use wakeai_units::Duration;

/// The longest time for which a receiver holds an acknowledgement back (`max_ack_delay`, RFC 9000 section 18.2).
pub const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// The time without a packet after which a connection is given up (`max_idle_timeout`, RFC 9000 section 10.1; quinn's
/// default).
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The bytes of a stream that may be under way or wait for the application (flow control, RFC 9000 section 4.1;
/// quinn's default).
pub const STREAM_WINDOW: u64 = 1_250_000;
