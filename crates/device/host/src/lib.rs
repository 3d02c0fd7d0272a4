//! The changes that Wakeai makes on a host, and their undoing, which works after `kill -9`, too.
//!
//! A [`Lease`] is the file in which a process records its changes. Every change is written into the
//! lease before it is made. A process that ends in good order undoes the changes of its own lease.
//! A process that dies leaves the file, and the next command that may touch the host undoes the changes with
//! [`sweep`]. A lease identifies its process by pid *and* start time, because pids are reused.
//!
//! Order of calls: [`sweep`], [`Lease::take`], then for each change [`Lease::record`] and the
//! change itself, and [`Lease::release`] at the end. A change that is undone before the end is
//! removed with [`Lease::forget`]. Meanwhile a [`Watch`] tells whether other programs have undone a
//! change, and puts it back. Sockets, directories and namespaces are made by the lease itself
//! ([`Lease::bind_socket`], [`Lease::create_directory`], [`Lease::create_namespace`]). It records
//! their identities, so that only what Wakeai made is removed.

mod apart;
mod cgroup;
mod change;
mod clock;
mod create;
mod departures;
mod lease;
mod namespace;
mod netlink;
mod network;
mod packet_rules;
mod policy;
mod private;
mod privileges;
mod process;
mod raw_message;
mod registry;
mod remove;
mod route;
mod routing;
mod settings;
mod sweep;
mod sysctl;
mod undo;
mod watch;

pub use apart::{ApartError, LOST_STATUS, block_signals, poll_for, serve_apart, serving_user};
pub use cgroup::{Cgroup, CgroupError, cgroup_root};
pub use change::{Change, FileId, Guard, OtherChange, RouteKey, Stage};
pub use clock::{read_clock, since_boot};
pub use create::{MakeError, check_socket_path};
pub use departures::{Departures, DeparturesError, PutDepartures, departures, put_departures};
pub use lease::{Lease, LeaseError};
pub use namespace::{Namespace, NamespaceError, NetnsId};
pub use netlink::{LinkSettings, Netlink};
pub use network::{Network, NetworkError};
pub use policy::{has_ipv6, is_own};
pub use private::{PrivateError, STATE_VARIABLE, lock, private_directory, state, state_directory};
pub use privileges::{
    Capability, PrivilegeError, become_user, drop_privileges, effective_privileges,
    require_privileges,
};
pub use process::ProcessId;
pub use registry::{Holder, Role};
pub use route::{Route, RouteError};
pub use routing::{RoutingError, add_local_route, add_packet_rules, rules_before};
pub use sweep::{Removed, SweepError, holders, sweep};
pub use sysctl::{DEFAULT_ALGORITHM, SysctlError, read_sysctl, set_sysctl};
pub use undo::{UndoKind, UndoKinds};
pub use watch::{Drift, Drifts, LOOK_EVERY, Outcome, Told, Watch, WatchOthers};
