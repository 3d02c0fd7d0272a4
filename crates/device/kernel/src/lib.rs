//! The part of Wakeai that runs in the kernel, and its user space. No other crate uses libbpf.
//!
//! - [`Control`]: the registration of the [`Bounded`] algorithms and their bounds, which all agents of the
//!   machine share. Order of calls: [`Control::open`], then per tick [`Control::set_interface`],
//!   [`Control::set_socket`] and [`Control::bound_windows`], and [`Control::heartbeat`] more often than [`STALE_AFTER`]; the last agent calls
//!   [`Control::unload`].
//! - [`AppliedBounds`]: the bounds that are in force, without a part in the registration.
//! - [`move_connections`] moves established connections to another algorithm, and [`Snapshotter`] reads
//!   connections. Both see only the network namespace of the calling thread.
//! - [`Assigner`] applies an algorithm to the connections of an [`Assignment`], and restores their previous
//!   algorithms: [`Assigner::open`], [`Assigner::take_existing`], [`Assigner::aim`] when the target changes,
//!   [`Assigner::give_back`]. [`UNDO`] restores them for a process that died.
//! - [`Monitor`] streams samples and events of all namespaces: [`Monitor::open`], then
//!   [`Monitor::poll`] in a loop.
//! - [`Egress`] counts the datagrams that leave over an interface, and slows flows; [`EgressHook`] holds its program in
//!   the control group.
//! - [`features::detect`] finds the features that this kernel lacks, with consequences and remedies.
//!
//! An error for which [`Error::is_missing`] holds means that a privilege or a kernel feature is missing; the
//! command then exits with 77.

mod applied;
mod assign;
mod bounded;
mod connections;
mod control;
mod egress;
mod error;
pub mod features;
pub mod monitor;
mod mounts;
mod netns;
mod place;
mod raw;
mod registration;
mod skeleton;
mod snapshot;
mod undo;
mod windows;

pub use applied::AppliedBounds;
pub use assign::{Assigner, Assignment, Covered, Destination};
pub use bounded::{Bounded, HOLDS_A_RATE, STALE_AFTER};
pub use connections::{MoveReport, move_connections, prepare_to_move};
pub use control::{Control, SupervisedBounds};
pub use egress::{Egress, EgressHook, Flow, UdpFlow};
pub use error::Error;
pub use monitor::{Filter, Monitor, MonitorConfig, Record};
pub use netns::netns_cookie;
pub use raw::Socket;
pub use snapshot::{Snapshotter, TcpSnapshot, snapshot};
pub use undo::{Assigned, AssignedWay, UNDO, parts, receive_windows, release};
pub use wakeai_connection::{
    Bounds, CongestionState, ErrorCode, EventKind, Figures, INFINITE_SSTHRESH, Receiving, Signal,
};
pub use windows::WindowReport;
