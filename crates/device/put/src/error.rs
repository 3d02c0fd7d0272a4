//! The errors of an upload: what each of them means, in words, and what may help.

use std::io;
use std::path::PathBuf;

use wakeai_units::Duration;

use super::answers::{self, Asked, Meaning};

/// The reason why an upload did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// The URL cannot be used.
    #[error("cannot upload to this URL: {0}")]
    Url(String),
    /// The name cannot be used at the server.
    #[error("cannot upload under the name {name}: {reason}; give another with --name")]
    Name {
        /// The name, percent-encoded.
        name: String,
        /// The problem.
        reason: &'static str,
    },
    /// The proxy of the environment cannot be used.
    #[error("cannot use the proxy of {variable}: {reason}")]
    Proxy {
        /// The environment variable.
        variable: &'static str,
        /// The problem.
        reason: &'static str,
    },
    /// A file with credentials cannot be used.
    #[error("the file {} is refused: {reason}", path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// The reason for the refusal.
        reason: &'static str,
    },
    /// A file cannot be read or written.
    #[error("cannot use {}: {}", path.display(), plain(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The congestion control algorithm cannot be used.
    #[error(
        "cannot use the congestion control {name}: {}; the available ones are in \
         /proc/sys/net/ipv4/tcp_available_congestion_control",
        plain(source)
    )]
    Algorithm {
        /// The algorithm.
        name: String,
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
    #[error("cannot use the certificate of {from}: {reason}")]
    Certificates {
        /// The origin of the certificates.
        from: String,
        /// The problem, and what to do.
        reason: String,
    },
    /// A connection failed. The upload is tried again.
    #[error("{0}")]
    Connection(String),
    /// A connection failed in a way that further attempts do not change.
    #[error("{0}")]
    Unusable(String),
    /// The server refused a request.
    #[error(
        "the server refused to {asked}: {status}{said}{}",
        advice(*asked, *status)
    )]
    Refused {
        /// The action that the server refused.
        asked: Asked,
        /// The status code.
        status: u16,
        /// The first line of the server's answer, and where a redirect leads.
        said: String,
        /// The wait that the server asks for.
        retry_after: Option<Duration>,
        /// The whole answer, for finding out more.
        page: String,
    },
    /// The server asks for a wait that is longer than the upload may go without progress.
    #[error(
        "the server asks to come back in {asked}, which is longer than --retry-for {limit}: run the command again \
         then, or raise --retry-for; {error}"
    )]
    AskedToWait {
        /// The wait that the server asks for.
        asked: Duration,
        /// The longest time without progress.
        limit: Duration,
        /// The refusal with its cause.
        error: String,
    },
    /// The upload is larger than the server takes.
    #[error(
        "the server takes uploads of at most {most} bytes, and the file has {bytes}: split it, or raise the server's limit"
    )]
    TooLarge {
        /// The server's limit.
        most: u64,
        /// The size of the upload.
        bytes: u64,
    },
    /// The server has a file that the upload would overwrite, whose name may be another one.
    #[error(
        "{url} is not overwritten: the server has a file that it takes for the same name ({found}), because it \
         ignores case or Unicode's normal forms; give another --name, or --overwrite"
    )]
    Folded {
        /// The URL of the upload.
        url: String,
        /// The name at the server, or how the names were compared.
        found: String,
    },
    /// The URL is that of a directory.
    #[error("{0} is a directory at the server: end the URL with / to upload into it")]
    Directory(String),
    /// The directory does not exist.
    #[error("the server has no directory {0}: make it there, or correct the URL")]
    NoDirectory(String),
    /// The server took the file, and does not have it.
    #[error(
        "the server took the file, but now says that it has none at {0}: ask who runs the server"
    )]
    Missing(String),
    /// Another process sends the same file to the same URL.
    #[error(
        "another process uploads this file to this URL at the moment (--no-resume uploads it a second time)"
    )]
    Busy,
    /// An answer cannot be understood.
    #[error("the server's answer {0}; is the URL that of a server for uploads?")]
    Answer(&'static str),
    /// No attempt made progress for too long.
    #[error(
        "gave up after {elapsed} without progress (--retry-for {limit}); the same command continues the upload; the \
         last error was: {error}"
    )]
    GaveUp {
        /// The time since the first failure after the last progress.
        elapsed: Duration,
        /// The longest time without progress.
        limit: Duration,
        /// The last error with its cause.
        error: String,
    },
    /// The time for the whole upload is over.
    #[error("the upload took longer than --timeout {0}; the same command continues it")]
    TimedOut(Duration),
    /// A signal ended the upload.
    #[error("the upload was interrupted; the same command continues it")]
    Interrupted,
    /// The file at the server differs.
    #[error("the file at the server differs from the source: upload it again")]
    Differs,
}

fn advice(asked: Asked, status: u16) -> String {
    let advice = answers::advice(asked, status);
    if advice.is_empty() { String::new() } else { format!(" ({advice})") }
}

/// The text of a system's error, without its number, which helps nobody.
pub(super) fn plain(error: &io::Error) -> String {
    let text = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "it did not answer in time".to_owned()
        }
        _ => error.to_string(),
    };
    match text.split_once(" (os error ") {
        Some((text, _)) => text.to_lowercase(),
        None => text,
    }
}

impl PutError {
    /// Whether the options are wrong, or the files that they name. The command then exits with status 2.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Url(_)
                | Self::Name { .. }
                | Self::Proxy { .. }
                | Self::Secret { .. }
                | Self::Algorithm { .. }
                | Self::Certificates { .. }
        )
    }

    /// What the server's answer means for the upload. Other errors pass or last.
    pub(super) fn meaning(&self) -> Meaning {
        match self {
            Self::Connection(_) => Meaning::Passes,
            Self::Refused { asked, status, retry_after, .. } => {
                answers::meaning(*asked, *status, retry_after.is_some())
            }
            _ => Meaning::Lasts,
        }
    }

    /// Whether another attempt may succeed.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self.meaning(), Meaning::Passes | Meaning::AskOffset)
    }

    /// Whether the upload has ended for good, so that what the server has of it is of no use.
    pub(super) fn ends_the_upload(&self) -> bool {
        let may_continue = matches!(
            self,
            Self::GaveUp { .. }
                | Self::AskedToWait { .. }
                | Self::TimedOut(_)
                | Self::Interrupted
                | Self::Busy
                | Self::Connection(_)
                | Self::Unusable(_)
                | Self::Certificates { .. }
                | Self::Refused { status: 401 | 403 | 407 | 507, .. }
        );
        !may_continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each() -> Vec<PutError> {
        let path = PathBuf::from("/tmp/f");
        let os = || io::Error::from_raw_os_error(11);
        let text = || "text".to_owned();
        let second = Duration::from_secs(1);
        let refused = |asked, status| PutError::Refused {
            asked,
            status,
            said: ": no, to https://h/".to_owned(),
            retry_after: Some(second),
            page: String::new(),
        };
        let mut all = vec![
            PutError::Url(text()),
            PutError::Name { name: text(), reason: "it is empty" },
            PutError::Proxy { variable: "http_proxy", reason: "it is no URL" },
            PutError::Secret { path: path.clone(), reason: "it is a directory" },
            PutError::Read { path, source: os() },
            PutError::Algorithm { name: text(), source: io::Error::from_raw_os_error(2) },
            PutError::Spool(1),
            PutError::Changed,
            PutError::Certificates { from: text(), reason: text() },
            PutError::Connection(text()),
            PutError::Unusable(text()),
            PutError::AskedToWait { asked: second, limit: second, error: text() },
            PutError::TooLarge { most: 1, bytes: 2 },
            PutError::Folded { url: text(), found: text() },
            PutError::Directory(text()),
            PutError::NoDirectory(text()),
            PutError::Missing(text()),
            PutError::Busy,
            PutError::Answer("is empty"),
            PutError::GaveUp { elapsed: second, limit: second, error: text() },
            PutError::TimedOut(second),
            PutError::Interrupted,
            PutError::Differs,
        ];
        for &asked in <Asked as strum::VariantArray>::VARIANTS {
            all.extend((300..600).map(|status| refused(asked, status)));
        }
        all
    }

    #[test]
    fn no_error_shows_the_debug_output_of_a_type() {
        for error in each() {
            let said = error.to_string();
            // Debug output has braces, quotation marks, `Name(..)`, or a number of the system.
            let strange = ["{", "}", "\"", "::", "os error", "Some(", "None", "Kind"];
            let found = strange.iter().find(|found| said.contains(**found));
            assert_eq!(found, None, "{said}");
            let camel = said.split(|c: char| !c.is_alphanumeric()).find(|word| {
                let inner = word.chars().zip(word.chars().skip(1));
                inner.clone().any(|(one, next)| one.is_lowercase() && next.is_uppercase())
            });
            assert_eq!(camel.filter(|word| *word != "WebDAV"), None, "{said}");
        }
    }
}
