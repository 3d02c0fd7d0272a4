//! The error of an operation on the kernel.

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
        matches!(self, Self::Privilege { .. } | Self::Feature { .. })
    }

    pub(crate) fn from_io(asked: &str, error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::PermissionDenied {
            let remedy = format!("run as root (the kernel said: {error})");
            return Self::Privilege {
                asked: asked.to_owned(),
                lacks: "CAP_SYS_ADMIN".to_owned(),
                remedy,
            };
        }
        Self::refused(asked, error)
    }

    pub(crate) fn refused(
        asked: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Refused { asked: asked.into(), source: source.into() }
    }
}
