//! The reasons why an agent could not start.

use std::io;
use std::path::PathBuf;

use wakeai_daemon::metrics::BindError;
use wakeai_host::{ApartError, LeaseError, MakeError, PrivilegeError};

use crate::interface::InterfaceError;
use crate::key::KeyError;

/// An agent could not start. While an agent runs, it logs and counts a failure, and tries the work
/// again.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The group key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Users other than root and the agent's user can change the configuration.
    #[error(
        "configuration {}: found user {owner} as its owner and mode {mode:03o}, expected root or the user who runs \
         the agent as its owner, and a mode that lets no other user write; run: chown root {} && chmod go-w {}",
        path.display(), path.display(), path.display()
    )]
    ConfigFile {
        /// The file.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// The interface does not exist.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A privilege is missing or could not be given up.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// The agent cannot run as another user.
    #[error(transparent)]
    Apart(#[from] ApartError),
    /// Another agent runs here, or the host's records of changes cannot be written.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The socket of the local API cannot be made.
    #[error("api.socket: {0}")]
    Socket(#[from] MakeError),
    /// The endpoint for the metrics cannot be opened.
    #[error("metrics: {0}")]
    Metrics(#[from] BindError),
    /// A feature of the kernel is missing, or the kernel refused.
    #[error(transparent)]
    Kernel(#[from] wakeai_kernel::Error),
    /// The station's number cannot be derived.
    #[error(
        "this station's number cannot be derived: interface {0} has no hardware address, or \
         this machine no /etc/machine-id; state `station` in the configuration"
    )]
    NoStation(String),
    /// The interface is not a Wi-Fi station, so it has no access point.
    #[error(
        "interface {interface} is not a Wi-Fi station ({reason}); state `bssid` in the \
         configuration, the same on all stations that share the access point"
    )]
    NoWifi {
        /// The interface.
        interface: String,
        /// The reason that nl80211 gave.
        reason: String,
    },
    /// The group that may ask the local API does not exist.
    #[error("api.group: this machine has no group {0:?}; state one that exists, or its number")]
    NoGroup(String),
    /// A system call failed.
    #[error("cannot {asked}: {source}")]
    System {
        /// The operation.
        asked: String,
        /// The error of the kernel.
        source: io::Error,
    },
}

impl AgentError {
    pub(crate) fn system(asked: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let asked = asked.into();
        move |source| Self::System { asked, source }
    }

    /// Whether a privilege or a kernel feature is missing, so that the command exits with 77.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Privilege(error) => matches!(error, PrivilegeError::Missing { .. }),
            Self::Kernel(error) => error.is_missing(),
            Self::Apart(error) => matches!(error, ApartError::NeedsRoot),
            Self::Socket(error) => error.is_permission(),
            Self::Metrics(error) => error.is_permission(),
            Self::Lease(LeaseError::Io(source)) | Self::System { source, .. } => {
                source.kind() == io::ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }
}
