//! The client: sends a file in pieces, each over a connection of its own.
//!
//! [`run()`] finds out which protocol the server supports. [`tus`] or [`webdav`] then sends the bytes that the server
//! lacks. Both use [`transfer`], which decides on the pieces, the waits and the pauses. [`verify`] compares the result
//! with the source. [`http`] opens the connections, [`source`] reads the file, [`state`] keeps the data that a later
//! process needs, and [`turn`] asks the station's agent when to send.

mod backoff;
mod credentials;
mod error;
mod http;
mod run;
mod source;
mod state;
mod target;
mod transfer;
mod turn;
mod tus;
mod verify;
mod webdav;

use std::path::PathBuf;

use serde::Serialize;
use url::Url;
use wakeai_units::{Bytes, Duration};

pub use self::credentials::Credentials;
pub use self::error::PutError;
pub use self::run::run;
pub use self::transfer::{Progress, Report};

/// How an upload is split into pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chunks {
    /// `wakeai_control::Pieces` decides on the sizes during the upload.
    #[default]
    Auto,
    /// Into this number of equal pieces.
    Count(u32),
    /// Into pieces of this size.
    Size(Bytes),
}

/// The protocol of an upload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The protocol that the server's answer to OPTIONS shows.
    #[default]
    Auto,
    /// tus 1.0.0.
    Tus,
    /// One PUT request with the whole file.
    Put,
    /// PUT requests with `Content-Range`.
    PutRanges,
}

impl Protocol {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Tus => "tus",
            Self::Put => "put",
            Self::PutRanges => "put-ranges",
        }
    }

    /// Whether an upload continues after an interruption. Otherwise it begins anew.
    pub fn continues(self) -> bool {
        self != Self::Put
    }
}

/// The configuration of an upload.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file. `None` stands for standard input.
    pub file: Option<PathBuf>,
    /// With tus, the URL that creates uploads. Otherwise the URL of the file, or the URL of its directory with a final
    /// `/`.
    pub url: Url,
    /// The name at the server, instead of the file's own.
    pub name: Option<String>,
    /// How the upload is split.
    pub chunks: Chunks,
    /// The protocol.
    pub protocol: Protocol,
    /// Whether the result is compared with the source.
    pub verify: bool,
    /// The directory that keeps the states of unfinished uploads. With `None` no state is kept.
    pub states: Option<PathBuf>,
    /// The value of the header field `Authorization`.
    pub credentials: Option<Credentials>,
    /// A PEM file with the authorities that may sign the server's certificate. It replaces the system's authorities.
    pub ca: Option<PathBuf>,
    /// The congestion control algorithm of the connections. It replaces the system's default.
    pub algorithm: Option<String>,
    /// The socket of the station's agent, which says when the transfer may send.
    pub agent: Option<PathBuf>,
    /// The longest time for the whole upload.
    pub timeout: Option<Duration>,
    /// The longest time without progress.
    pub retry_for: Duration,
    /// The size limit of an input that is not a regular file. Such an input is kept in a temporary file.
    pub spool: Bytes,
}
