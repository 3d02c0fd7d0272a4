//! Assigns a congestion control algorithm to a network namespace, a route, a control group or existing connections
//! while a process lives, and undoes the changes at its end.
//!
//! [`run`] makes an assignment and keeps it in force. Other processes list the assignments of the machine with
//! [`in_force`], change a target rate with [`set_rate`] and end assignments with [`end`]. The crate joins `host`
//! (leases, sysctls, routes, cgroups) and `kernel` (which moves connections).

mod control;
mod error;
mod run;
mod scope;

use std::path::PathBuf;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};
use wakeai_kernel::{Bounded, Destination, HOLDS_A_RATE};
use wakeai_units::{Duration, Rate};

pub use control::{InForce, end, in_force, set_rate};
pub use error::AssignError;
pub use run::{Event, run};

/// An algorithm, and the connections to which to assign it.
#[derive(Clone, Debug)]
pub struct AssignOptions {
    /// The algorithm's name.
    pub algorithm: String,
    /// The network namespace, as a name of `ip netns` or as an inode; `None` for that of the
    /// calling thread.
    pub namespace: Option<String>,
    /// The connections.
    pub scope: ScopeName,
    /// The destination to which the connections of a cgroup, or the existing connections, are
    /// limited.
    pub destination: Option<Destination>,
    /// The target rate of each connection.
    pub rate: Option<Rate>,
    /// The time after which the assignment ends by itself.
    pub duration: Option<Duration>,
}

/// The connections that get the algorithm, as a user names them.
#[derive(Clone, Debug)]
pub enum ScopeName {
    /// New connections of the network namespace.
    Namespace,
    /// New connections over the route to exactly this network.
    Route {
        /// The network; its port is ignored.
        network: Destination,
        /// The interface of the route, where several lead to the network.
        interface: Option<String>,
    },
    /// New connections of the processes in this control group of version 2.
    Cgroup(PathBuf),
    /// New connections of this systemd unit.
    Unit(String),
    /// Existing connections: those with these cookies, or all where the list is empty.
    Existing(Vec<u64>),
}

/// Checks that a target rate is given if and only if the algorithm has one.
///
/// # Errors
/// [`AssignError::Usage`].
pub fn check_rate(algorithm: &str, rate: Option<Rate>) -> Result<(), AssignError> {
    match (algorithm == HOLDS_A_RATE, rate) {
        (true, None) => Err(AssignError::Usage(format!(
            "{HOLDS_A_RATE} holds a target rate, and none was given: add one, such as --rate 5Mbit/s"
        ))),
        (false, Some(_)) => Err(AssignError::Usage(format!(
            "--rate: {algorithm} has no target rate; only {HOLDS_A_RATE} has one"
        ))),
        _ => Ok(()),
    }
}

/// Makes sure that the kernel has the algorithm, or can load it.
fn check_algorithm(algorithm: &str) -> Result<(), AssignError> {
    if Bounded::named(algorithm).is_some() {
        return Ok(());
    }
    // The kernel loads an algorithm's module when a socket asks for the algorithm.
    let tried = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .and_then(|socket| setsockopt(&socket, sockopt::TcpCongestion, &algorithm.into()));
    tried.map_err(|_| {
        let available = wakeai_host::read_sysctl("net.ipv4.tcp_available_congestion_control");
        let available = available.unwrap_or_default();
        let mut names: Vec<_> = Bounded::ALL.iter().map(|ours| ours.name).collect();
        names.extend(available.split(' ').filter(|name| Bounded::named(name).is_none()));
        let names = names.join(", ");
        AssignError::Usage(format!("found algorithm {algorithm:?}, this kernel has {names}"))
    })
}
