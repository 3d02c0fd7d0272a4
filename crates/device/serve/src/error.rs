//! The errors of a server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use wakeai_daemon::metrics::BindError;

/// Why a server could not start. Once it runs, a failure ends only one request and is counted.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is not a loopback address, and TLS is not configured.
    #[error(
        "{0} can be reached by other machines, and without TLS anyone on the way reads the tokens and changes \
         the files: add --cert FILE and --key FILE, or listen on 127.0.0.1"
    )]
    NeedsTls(SocketAddr),
    /// The address is not a loopback address, and tokens are not configured.
    #[error(
        "{0} can be reached by other machines, and without tokens anyone there may upload: add --token-file \
         FILE, with a line NAME TOKEN for each client, or listen on 127.0.0.1"
    )]
    NeedsTokens(SocketAddr),
    /// The server cannot listen on an address.
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
    /// The directory cannot be used.
    #[error("cannot keep uploads in {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another server holds the directory.
    #[error("another wakeai serve keeps its uploads in {}: stop it, or name another directory", .0.display())]
    Held(PathBuf),
    /// A file of the configuration cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Users other than the owner may read the token file or the private key.
    #[error("others than its owner may read or change {path}: run `chmod 600 {path}`", path = .0.display())]
    Exposed(PathBuf),
    /// A line of the token file is wrong.
    #[error(
        "{}, line {line}: {reason}; expected NAME TOKEN: a name of letters, digits, '.', '_' and '-', a space, and a \
         token of 16 characters or more, such as `openssl rand -hex 32` prints", path.display()
    )]
    Token {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// The token file has no token.
    #[error("{} has no token: add a line NAME TOKEN for each client", .0.display())]
    NoTokens(PathBuf),
    /// The certificate or its key cannot be used.
    #[error("{}: {reason}", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl ServeError {
    /// Whether the options or the configuration have to be changed.
    pub fn is_usage(&self) -> bool {
        !matches!(
            self,
            Self::Listen { .. }
                | Self::Metrics(_)
                | Self::Directory { .. }
                | Self::Held(_)
                | Self::System { .. }
        )
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantNames as _;

    use super::*;
    use crate::refusal::{Refusal, Target};

    fn source() -> io::Error {
        io::Error::from_raw_os_error(2)
    }

    /// One of each kind. The match makes a further kind fail to compile until it is here.
    fn all() -> Vec<ServeError> {
        let (address, path) = (SocketAddr::from(([192, 0, 2, 1], 80)), PathBuf::from("/a file"));
        let all = vec![
            ServeError::NeedsTls(address),
            ServeError::NeedsTokens(address),
            ServeError::Listen { address, source: source() },
            ServeError::Directory { path: path.clone(), source: source() },
            ServeError::Held(path.clone()),
            ServeError::Read { path: path.clone(), source: source() },
            ServeError::Exposed(path.clone()),
            ServeError::Token { path: path.clone(), line: 3, reason: "found no space" },
            ServeError::NoTokens(path.clone()),
            ServeError::Identity { path, reason: "found no certificate".to_owned() },
            ServeError::System { what: "listen", source: source() },
        ];
        for error in &all {
            match error {
                ServeError::NeedsTls(_)
                | ServeError::NeedsTokens(_)
                | ServeError::Listen { .. }
                | ServeError::Metrics(_)
                | ServeError::Directory { .. }
                | ServeError::Held(_)
                | ServeError::Read { .. }
                | ServeError::Exposed(_)
                | ServeError::Token { .. }
                | ServeError::NoTokens(_)
                | ServeError::Identity { .. }
                | ServeError::System { .. } => {}
            }
        }
        all
    }

    fn assert_is_prose(text: &str) {
        for of_debug in ["Os {", "kind:", "code:", "Some(", "Err(", "Error {", "\"", "::"] {
            assert!(!text.contains(of_debug), "{text}");
        }
        assert!(text.contains(' '), "{text}");
    }

    #[test]
    fn every_error_is_prose() {
        for error in all() {
            assert_is_prose(&error.to_string());
        }
    }

    #[test]
    fn every_refusal_is_prose_and_has_a_status_of_an_error() {
        let refusals = [
            Refusal::Version,
            Refusal::NotFound,
            Refusal::Method(Target::Upload),
            Refusal::UnknownMethod,
            Refusal::Expectation,
            Refusal::TransferCoding,
            Refusal::ContentCoding,
            Refusal::Unsupported("Digest"),
            Refusal::Precondition,
            Refusal::NotModified,
            Refusal::NoHost,
            Refusal::MediaType,
            Refusal::Field("Upload-Offset"),
            Refusal::Head,
            Refusal::Algorithm,
            Refusal::BeyondLength,
            Refusal::TooLarge,
            Refusal::Offset,
            Refusal::Length,
            Refusal::Checksum,
            Refusal::Expired,
            Refusal::Locked,
            Refusal::TakenOver,
            Refusal::Quota,
            Refusal::TooMany,
            Refusal::DiskFull,
            Refusal::Storage,
            Refusal::Lost,
            Refusal::Missing,
            Refusal::Token,
            Refusal::Host,
            Refusal::Stalled,
            Refusal::Cut,
            Refusal::Stopping,
        ];
        let mut names: Vec<_> = refusals.iter().map(<&str>::from).collect();
        names.sort_unstable();
        let mut all = Refusal::VARIANTS.to_vec();
        all.sort_unstable();
        assert_eq!(names, all, "one of each kind");
        for refusal in refusals {
            assert_is_prose(&refusal.to_string());
            let status = refusal.status();
            let is_error = status.is_client_error() || status.is_server_error();
            assert!(is_error || refusal == Refusal::NotModified, "{refusal}");
        }
    }
}
