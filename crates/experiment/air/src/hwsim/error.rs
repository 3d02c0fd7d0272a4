//! The errors of the medium for hwsim, and the exit status of each.

use std::io;
use std::path::PathBuf;

use wakeai_medium::ConfigError;

/// Why there is no medium.
#[derive(Debug, thiserror::Error)]
pub enum MediumError {
    /// The driver is not loaded.
    #[error(
        "the driver mac80211_hwsim is missing: `modprobe mac80211_hwsim radios=3` loads it and makes three radios, where \
         the kernel has it"
    )]
    NoDriver,
    /// Registering needs a privilege.
    #[error(
        "CAP_NET_ADMIN is missing: run `sudo wakeai medium`, in the network namespace in which the radios were made"
    )]
    NoPrivilege,
    /// Another medium is registered.
    #[error(
        "another program is the medium of these radios (wmediumd, or another `wakeai medium`), and the driver takes one: \
         end that first"
    )]
    Busy,
    /// A radio can be on several channels at a time.
    #[error(
        "the driver has radios of several channels at a time, for which it takes no medium: load it with channels=1, \
         or remove these radios"
    )]
    SeveralChannels,
    /// The scenario asks for what the medium cannot do.
    #[error("{asked}: {remedy}")]
    Unsupported {
        /// The key and its value.
        asked: String,
        /// What to do about it.
        remedy: String,
    },
    /// The medium refuses the configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The capture cannot be written.
    #[error("cannot write {path}: {source}")]
    Capture {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl MediumError {
    /// The exit status of `wakeai medium`: 77 for a missing privilege or driver, 2 for a scenario that it refuses, else 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::NoDriver | Self::NoPrivilege => 77,
            Self::Unsupported { .. } | Self::Config(_) => 2,
            Self::Busy | Self::SeveralChannels | Self::Capture { .. } | Self::System { .. } => 1,
        }
    }
}
