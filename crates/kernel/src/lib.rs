//! Everything that Wakeai does inside the kernel, and the only user of libbpf.
//!
//! - [`Control`]: the registration of the [`Bounded`] algorithms and their bounds, shared by every
//!   agent of the machine. Order of calls: [`Control::open`], then per tick
//!   [`Control::set_interface`] and [`Control::set_socket`], and [`Control::heartbeat`] more often
//!   than [`STALE_AFTER`]; whoever is last calls [`Control::unload`].
//! - [`move_connections`] puts established connections on another algorithm, [`Snapshotter`] reads
//!   them; both see the network namespace of the calling thread only.
//! - [`Monitor`] streams samples and events of all namespaces: [`Monitor::open`], then
//!   [`Monitor::poll`] in a loop.
//! - [`features::detect`] says what this kernel lacks, what follows from it, and what to do.
//!
//! Errors for which [`Error::is_missing`] holds mean a missing privilege or kernel feature: a
//! command exits with 77.

mod bounded;
mod connections;
mod control;
mod error;
pub mod features;
mod libbpf;
pub mod monitor;
mod netns;
mod place;
mod raw;
mod registration;
mod skeleton;
mod snapshot;
mod tcp;

pub use bounded::Bounded;
pub use connections::{MoveReport, clamp_connections, move_connections};
pub use control::{Control, STALE_AFTER, SocketBounds};
pub use error::Error;
pub use monitor::{ErrorCode, Event, EventKind, Filter, Monitor, MonitorConfig, Record, Sample};
pub use netns::netns_cookie;
pub use snapshot::{Snapshotter, TcpSnapshot, snapshot};
pub use tcp::{CongestionState, Figures, Socket};
