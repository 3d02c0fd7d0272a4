//! Everything that Wakeai does inside the kernel, and the only user of libbpf.
//!
//! - [`Control`]: the registration of the [`Bounded`] algorithms and their bounds, shared by every
//!   agent of the machine. Order of calls: [`Control::open`], then per tick
//!   [`Control::set_interface`] and [`Control::set_socket`], and [`Control::heartbeat`] more often
//!   than [`STALE_AFTER`]; whoever is last calls [`Control::unload`].
//! - [`move_connections`] puts established connections on another algorithm, [`Snapshotter`] reads
//!   them; both see the network namespace of the calling thread only.
//! - [`Assigner`] puts an algorithm to work for the connections of an [`Assignment`], and gives them
//!   back what they had: [`Assigner::open`], [`Assigner::take_existing`], [`Assigner::aim`] when the
//!   target changes, [`Assigner::give_back`]. [`Undo`] does that for a process that died.
//! - [`Monitor`] streams samples and events of all namespaces: [`Monitor::open`], then
//!   [`Monitor::poll`] in a loop.
//! - [`features::detect`] says what this kernel lacks, what follows from it, and what to do.
//!
//! Errors for which [`Error::is_missing`] holds mean a missing privilege or kernel feature: a
//! command exits with 77.

mod assign;
mod bounded;
mod connections;
mod control;
mod error;
pub mod features;
mod libbpf;
pub mod monitor;
mod mounts;
mod netns;
mod place;
mod raw;
mod registration;
mod skeleton;
mod snapshot;
mod undo;

pub use assign::{Assigner, Assignment, Covered, Destination};
pub use bounded::{Bounded, STALE_AFTER};
pub use connections::{MoveReport, move_connections};
pub use control::Control;
pub use error::Error;
pub use monitor::{Event, Filter, Monitor, MonitorConfig, Record, Sample};
pub use netns::netns_cookie;
pub use raw::Socket;
pub use snapshot::{Snapshotter, TcpSnapshot, snapshot};
pub use undo::Undo;
pub use wakeai_connection::{
    CongestionState, ErrorCode, EventKind, Figures, INFINITE_SSTHRESH, Signal, SocketBounds,
};
