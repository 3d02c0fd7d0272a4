//! The error of an operation on the kernel.

use wakeai_host::PrivateError;

/// An operation on the kernel failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A privilege is missing.
    #[error("cannot {asked}: the privilege {lacks} is missing; {remedy}")]
    Privilege {
        /// The operation.
        asked: String,
        /// The capability.
        lacks: String,
        /// The remedy.
        remedy: String,
    },
    /// This kernel lacks a feature.
    #[error("cannot {asked}: this kernel lacks {lacks}; {remedy}")]
    Feature {
        /// The operation.
        asked: String,
        /// The feature.
        lacks: String,
        /// The remedy.
        remedy: String,
    },
    /// A file may not be used.
    #[error(
        "cannot {asked}: {source}; run as root, and as root look for a refusal of a security module, such as \
         AppArmor, in the kernel's log"
    )]
    Access {
        /// The operation.
        asked: String,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The kernel refused for another reason.
    #[error("cannot {asked}: {source}")]
    Refused {
        /// The operation.
        asked: String,
        /// The error of the kernel or libbpf.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Whether a privilege or a kernel feature is missing, so that the command exits with 77.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Privilege { .. } | Self::Feature { .. } | Self::Access { .. })
    }

    /// The error of an operation with the bpffs or with a lock. EPERM means that the process lacks the
    /// capability to mount; EACCES, that a file's mode or a security module forbids its use.
    pub(crate) fn from_io(asked: &str, error: std::io::Error) -> Self {
        let asked = asked.to_owned();
        match number(&error) {
            Some(libc::EPERM) => Self::Privilege {
                asked,
                lacks: "CAP_SYS_ADMIN".to_owned(),
                remedy: format!("run as root (the kernel said: {error})"),
            },
            _ if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Self::Access { asked, source: error }
            }
            _ => Self::refused(asked, error),
        }
    }

    pub(crate) fn refused(
        asked: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Refused { asked: asked.into(), source: source.into() }
    }
}

/// The kernel's number of the error, also where it is about a file of [`wakeai_host::lock`].
fn number(error: &std::io::Error) -> Option<i32> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<PrivateError>());
    match inner {
        Some(PrivateError::Io { source, .. }) => source.raw_os_error(),
        _ => error.raw_os_error(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_file_that_may_not_be_used_is_no_missing_capability() {
        let said = |error: io::Error| Error::from_io("mount the bpffs", error).to_string();
        assert!(said(io::Error::from_raw_os_error(libc::EPERM)).contains("CAP_SYS_ADMIN"));
        let path = std::path::PathBuf::from("/run/wakeai/kernel.lock");
        let private = |number| {
            let source = io::Error::from_raw_os_error(number);
            io::Error::from(PrivateError::Io { path: path.clone(), source })
        };
        for refused in [io::Error::from_raw_os_error(libc::EACCES), private(libc::EACCES)] {
            let error = Error::from_io("mount the bpffs", refused);
            assert!(error.is_missing());
            let said = error.to_string();
            assert!(!said.contains("CAP_SYS_ADMIN") && said.contains("AppArmor"), "{said}");
        }
        assert!(said(private(libc::EPERM)).contains("CAP_SYS_ADMIN"));
        assert!(!Error::from_io("lock", io::Error::from_raw_os_error(libc::ENOSPC)).is_missing());
    }
}
