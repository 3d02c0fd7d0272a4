//! The errors of a proxy: why it cannot start or go on, in words and for the exit status.

use std::io;
use std::net::SocketAddr;

use wakeai_daemon::metrics::BindError;
use wakeai_host::{ApartError, Drift, LeaseError, PrivilegeError, RoutingError};

/// Why a proxy could not start. Once it runs, a failure ends only one connection and is counted.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The proxy cannot listen on an address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// The figures cannot be served.
    #[error("--metrics: {0}")]
    Metrics(#[from] BindError),
    /// The kernel does not know the algorithm.
    #[error(
        "this kernel has no congestion control named {name:?}; it has: {available} (and the \
         modules that it can load, and ours, which need root)"
    )]
    NoAlgorithm {
        /// The name that was asked for.
        name: String,
        /// The list of `net.ipv4.tcp_available_congestion_control`.
        available: String,
    },
    /// Only a privileged process may use the algorithm.
    #[error(
        "the congestion control {name:?} takes CAP_NET_ADMIN here: run as root, or list it in \
         net.ipv4.tcp_allowed_congestion_control", name = .0
    )]
    AlgorithmNotAllowed(String),
    /// A target rate was given, but the algorithm holds no target rate.
    #[error(
        "only wakeai_av holds a target rate, and the algorithm is {}: add --algorithm wakeai_av, or \
         leave --rate out", .0.as_deref().unwrap_or("the host's default")
    )]
    HoldsNoRate(Option<String>),
    /// TCP-AV was given no target rate.
    #[error(
        "wakeai_av holds a target rate, and none was given: add one, such as --rate 5Mbit/s, or for \
         the destinations in a network alone --rate 192.0.2.0/24=5Mbit/s"
    )]
    NeedsRate,
    /// Only root may set target rates.
    #[error("a target rate takes root, because it is written into a BPF map: run as root")]
    RateNotAllowed,
    /// The transparent mode needs a privilege.
    #[error("the transparent mode takes CAP_NET_ADMIN in this network namespace: run as root")]
    NotPrivileged,
    /// Another transparent proxy runs in this namespace.
    #[error("a transparent proxy runs already in this network namespace (pid {0}): stop it first")]
    Runs(i32),
    /// Every forwarded connection would be intercepted.
    #[error(
        "forwarded connections do not pass the FORWARD chain once the proxy intercepts them, so name those \
         that it may: --in-interface INTERFACE, or both --allow-from and --allow-to"
    )]
    ForwardedFromAnywhere,
    /// Interfaces are named, but forwarded connections are not intercepted.
    #[error(
        "--in-interface is for the connections of --transparent forwarded: add that, or leave it out"
    )]
    NothingForwarded,
    /// Another program has changed what the proxy holds on the host, and it is not put back.
    #[error(
        "another program has changed what the proxy holds, and connections would hang or go past it, so it ends \
         and undoes the rest: {0}; start the proxy again when that program is done"
    )]
    Lost(Box<Drift>),
    /// A rule of higher priority takes the packets that the proxy intercepts.
    #[error(
        "every intercepted connection would hang, because this rule of `ip rule` takes its packets before the proxy's \
         rule does: {0}; remove it, or give it a priority above 0"
    )]
    Obstructed(String),
    /// The proxy cannot serve as another user.
    #[error(transparent)]
    Apart(#[from] ApartError),
    /// The rules or the route could not be made.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// The lease, the record of the proxy's changes on the host, cannot be written.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// Privileges could not be given up.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// Wakeai's algorithms cannot be loaded.
    #[error(transparent)]
    Kernel(#[from] wakeai_kernel::Error),
    /// A system call failed.
    #[error("cannot {asked}: {source}")]
    System {
        /// The action that failed.
        asked: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl ProxyError {
    pub(crate) fn system(asked: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { asked, source }
    }

    /// Whether a privilege or a kernel feature is missing. The command then exits with status 77.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::NoAlgorithm { .. }
            | Self::AlgorithmNotAllowed(_)
            | Self::RateNotAllowed
            | Self::Apart(ApartError::NeedsRoot)
            | Self::NotPrivileged => true,
            Self::Routing(error) => error.is_missing(),
            Self::Kernel(error) => error.is_missing(),
            Self::Metrics(error) => error.is_permission(),
            Self::Listen { source, .. }
            | Self::System { source, .. }
            | Self::Lease(LeaseError::Io(source)) => {
                source.kind() == io::ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }

    /// Whether another program has changed what the proxy holds. The command then exits with
    /// [`wakeai_host::LOST_STATUS`].
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Apart(ApartError::Lost))
    }

    /// Whether the options are wrong. The command then exits with status 2.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::HoldsNoRate(_)
                | Self::NeedsRate
                | Self::ForwardedFromAnywhere
                | Self::NothingForwarded
                | Self::Apart(ApartError::NoUser(_))
        )
    }
}

#[cfg(test)]
mod tests {
    use wakeai_host::{Change, Outcome, PrivilegeError};

    use super::*;

    /// What no text for a person has: the form in which Rust shows an error to a programmer.
    const DEBUG: [&str; 7] =
        ["Os {", "Custom {", "kind:", "code:", "Some(", "Err(", "os error 11)"];

    fn refused() -> io::Error {
        io::Error::from_raw_os_error(nix::libc::EACCES)
    }

    /// A namespace that another program has removed.
    fn gone() -> Drift {
        Drift {
            change: Change::Namespace { name: "lab-1".to_owned(), made: None },
            found: "it is gone".to_owned(),
            outcome: Outcome::Lost("its processes are gone, too".to_owned()),
        }
    }

    fn all() -> Vec<ProxyError> {
        let address = SocketAddr::from(([192, 0, 2, 1], 80));
        let name = || "reno".to_owned();
        let (needed, missing) = ("CAP_NET_ADMIN".to_owned(), "CAP_NET_ADMIN".to_owned());
        vec![
            ProxyError::Listen { address, source: refused() },
            ProxyError::Metrics(BindError::System { address, source: refused() }),
            ProxyError::NoAlgorithm { name: name(), available: "cubic".to_owned() },
            ProxyError::AlgorithmNotAllowed(name()),
            ProxyError::HoldsNoRate(Some(name())),
            ProxyError::HoldsNoRate(None),
            ProxyError::NeedsRate,
            ProxyError::RateNotAllowed,
            ProxyError::NotPrivileged,
            ProxyError::Runs(7),
            ProxyError::ForwardedFromAnywhere,
            ProxyError::NothingForwarded,
            ProxyError::Apart(ApartError::System { asked: "fork", source: refused() }),
            ProxyError::Apart(ApartError::Lost),
            ProxyError::Routing(RoutingError::Run(refused())),
            ProxyError::Routing(RoutingError::Kernel { mark: 7, source: refused() }),
            ProxyError::Lease(LeaseError::Io(refused())),
            ProxyError::Privilege(PrivilegeError::Missing { program: "x", needed, missing }),
            ProxyError::Kernel(wakeai_kernel::Error::Privilege {
                asked: "load a program".to_owned(),
                lacks: "CAP_BPF".to_owned(),
                remedy: "run as root".to_owned(),
            }),
            ProxyError::System { asked: "listen", source: refused() },
            ProxyError::Lost(Box::new(gone())),
            ProxyError::Obstructed("9: from all lookup main".to_owned()),
        ]
    }

    #[test]
    fn every_error_of_a_proxy_is_a_sentence() {
        for error in all() {
            // A new variant needs an entry in the list above.
            match error {
                ProxyError::Listen { .. }
                | ProxyError::Metrics(_)
                | ProxyError::NoAlgorithm { .. }
                | ProxyError::AlgorithmNotAllowed(_)
                | ProxyError::HoldsNoRate(_)
                | ProxyError::NeedsRate
                | ProxyError::RateNotAllowed
                | ProxyError::NotPrivileged
                | ProxyError::Runs(_)
                | ProxyError::ForwardedFromAnywhere
                | ProxyError::NothingForwarded
                | ProxyError::Apart(_)
                | ProxyError::Routing(_)
                | ProxyError::Lease(_)
                | ProxyError::Privilege(_)
                | ProxyError::Kernel(_)
                | ProxyError::Lost(_)
                | ProxyError::Obstructed(_)
                | ProxyError::System { .. } => {}
            }
            let text = error.to_string();
            assert!(!DEBUG.iter().any(|debug| text.contains(debug)), "{text}");
        }
    }
}
