//! A TCP relay that carries unchanged senders over another congestion control (004, on TCP-AV over a
//! wireless LAN, figure 16).
//!
//! Clients ask for a destination in SOCKS5 or HTTP CONNECT ([`Negotiation`], without input and
//! output of its own), or are taken without asking ([`transparent`]). [`run`] serves them all on
//! one thread. Bytes go from one connection to the other through a pipe and splice(2). A connection has a
//! pipe only while its bytes are under way; an idle one costs two sockets and a small task.

mod access;
mod algorithm;
mod config;
mod counters;
mod error;
mod forwarding;
mod listen;
mod negotiation;
mod outgoing;
mod own;
mod pipes;
mod privileges;
mod rates;
mod relay;
mod run;
mod session;
mod shared;
mod shares;
mod slot;
mod target;
pub mod transparent;

pub use access::{Access, Network, NetworkError};
pub use config::{Config, Interface, InterfaceError, Leg, Transparent};
pub use counters::Report;
pub use error::ProxyError;
pub use negotiation::{Negotiation, Outcome, REQUEST_LIMIT, Rejection};
pub use rates::{TargetRate, TargetRateError};
pub use run::{Event, run};
pub use target::{Host, Target};
