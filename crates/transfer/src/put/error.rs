//! The errors of an upload.

use std::io;
use std::path::PathBuf;

use wakeai_units::Duration;

/// The reason why an upload did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// The URL cannot be used.
    #[error("cannot upload to this URL: {0}")]
    Url(&'static str),
    /// A file with credentials cannot be used.
    #[error("the file {} is refused: {reason}", path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// The reason for the refusal.
        reason: &'static str,
    },
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The input has more bytes than the temporary file may have.
    #[error("the input has more than {0} bytes: raise --spool-limit, or upload a regular file")]
    Spool(u64),
    /// The file changed while it was sent.
    #[error("the file changed during the upload: start it again when nothing writes to it")]
    Changed,
    /// The certificates cannot be used.
    #[error("cannot use the certificates of {from}: {reason}")]
    Certificates {
        /// The origin of the certificates.
        from: String,
        /// The problem.
        reason: String,
    },
    /// A connection failed. The upload is tried again.
    #[error("{0}")]
    Connection(String),
    /// The server refused a request.
    #[error("the server refused to {asked}: {status}{said}{}", advice(*status))]
    Refused {
        /// The action that the server refused.
        asked: &'static str,
        /// The status code.
        status: u16,
        /// The first line of the server's answer.
        said: String,
        /// The wait that the server asks for.
        retry_after: Option<Duration>,
    },
    /// Another process sends the same file to the same URL.
    #[error(
        "another process uploads this file to this URL at the moment (--no-resume uploads it a second time)"
    )]
    Busy,
    /// An answer cannot be understood.
    #[error("the server's answer {0}")]
    Answer(&'static str),
    /// No attempt made progress for too long.
    #[error("gave up: nothing advanced for {0}; the last error was: {1}")]
    GaveUp(Duration, String),
    /// The time for the whole upload is over.
    #[error("the upload took longer than {0}; the same command continues it")]
    TimedOut(Duration),
    /// A signal ended the upload.
    #[error("the upload was interrupted; the same command continues it")]
    Interrupted,
    /// The file at the server differs.
    #[error("the file at the server differs from the source: upload it again")]
    Differs,
}

fn advice(status: u16) -> &'static str {
    match status {
        401 => " (give credentials with --token-file or --user-file, or in WAKEAI_TOKEN)",
        403 => " (these credentials do not allow it)",
        404 => " (does the URL's path exist?)",
        409 => " (does the directory exist?)",
        413 => " (it is larger than the server takes)",
        507 => " (the server's disk or quota is full)",
        _ => "",
    }
}

impl PutError {
    /// Whether the options are wrong, or the files that they name. The command then exits with status 2.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Url(_) | Self::Secret { .. } | Self::Certificates { .. })
    }

    /// Whether another attempt may succeed.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Connection(_) => true,
            Self::Refused { status, .. } => {
                matches!(status, 408 | 409 | 423 | 425 | 429 | 460)
                    || (500..600).contains(status) && *status != 507
            }
            _ => false,
        }
    }
}
