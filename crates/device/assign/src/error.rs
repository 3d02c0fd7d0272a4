//! The reasons why an assignment could not be made, changed or ended.

use std::io;

use wakeai_host::{
    CgroupError, Drift, LeaseError, MakeError, NamespaceError, RouteError, SweepError, SysctlError,
};

/// An assignment could not be made, changed or ended.
#[derive(Debug, thiserror::Error)]
pub enum AssignError {
    /// The request names something that does not exist, or contradicts itself.
    #[error("{0}")]
    Usage(String),
    /// There is no such network namespace.
    #[error("--namespace: found {name:?}, expected a name that `ip netns` lists, or an inode")]
    NoNamespace {
        /// The name.
        name: String,
        /// The error of the kernel, where it was asked.
        source: Option<NamespaceError>,
    },
    /// The network namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The route could not be found or changed.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The control group could not be found.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// Another process covers the same object, or the record of changes (lease) cannot be written.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The records of other processes' changes cannot be read.
    #[error(transparent)]
    Holders(#[from] SweepError),
    /// The socket at which the process answers could not be made.
    #[error(transparent)]
    Socket(#[from] MakeError),
    /// The default algorithm of the network namespace could not be set.
    #[error(transparent)]
    Default(#[from] SysctlError),
    /// A network namespace other than the initial one takes only some algorithms as its default.
    #[error(
        "this network namespace may have one of {allowed} as its default; to allow more algorithms, add them to \
         the sysctl net.ipv4.tcp_allowed_congestion_control in the initial namespace"
    )]
    NotAllowed {
        /// The algorithms that this namespace takes.
        allowed: String,
        /// The error of the kernel.
        source: SysctlError,
    },
    /// Another program has undone the assignment, and it is not put back.
    #[error(
        "another program has changed what the assignment holds, so it ends: {0}; find out which program that \
         is before you repeat the command"
    )]
    Lost(Box<Drift>),
    /// A feature of the kernel is missing, or the kernel refused.
    #[error(transparent)]
    Kernel(#[from] wakeai_kernel::Error),
    /// There is no connection to move.
    #[error("there is no such connection; `wakeai monitor` and `ss -te` list the connections")]
    NoConnection,
    /// A process with an assignment does not answer or does not end.
    #[error("{0}")]
    Unresponsive(String),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl AssignError {
    /// Whether the request itself is at fault, so that the command exits with 2.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Usage(_) | Self::NoNamespace { .. } => true,
            Self::Lease(error) => !matches!(error, LeaseError::Io(_)),
            Self::Route(error) => !matches!(error, RouteError::Io { .. }),
            Self::Cgroup(error) => error.is_usage(),
            _ => false,
        }
    }

    /// Whether a privilege or a kernel feature is missing, so that the command exits with 77.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::NotAllowed { .. } => true,
            Self::Namespace(error) => error.is_permission(),
            Self::Cgroup(error) => error.is_missing(),
            Self::Kernel(error) => error.is_missing(),
            Self::Lease(LeaseError::Io(error)) => error.kind() == io::ErrorKind::PermissionDenied,
            _ => false,
        }
    }
}
