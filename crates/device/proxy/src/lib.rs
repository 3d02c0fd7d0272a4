//! A TCP relay that gives unchanged senders another congestion control (the study of TCP-AV over a
//! wireless LAN, figure 16).
//!
//! A client names its destination in SOCKS5 or HTTP CONNECT ([`Negotiation`], which does no input
//! or output), or the proxy intercepts the client's connection ([`transparent`]). [`run()`] serves
//! all clients on one thread. Bytes go from one connection to the other through a pipe with
//! splice(2). A connection has a pipe only while the pipe holds bytes, so an idle connection takes
//! only two sockets and a small task.

mod access;
mod algorithm;
mod config;
mod counters;
mod error;
mod figures;
mod listen;
mod negotiation;
mod obstacles;
mod outgoing;
mod pipes;
mod rates;
mod relay;
mod run;
mod session;
mod shared;
mod target;
pub mod transparent;

pub use access::Access;
pub use config::{Config, Intercepted, Leg};
pub use counters::Report;
pub use error::ProxyError;
pub use negotiation::{Negotiation, Outcome, REQUEST_LIMIT, Rejection};
pub use rates::TargetRate;
pub use run::{Event, run};
pub use target::{Host, Target};
