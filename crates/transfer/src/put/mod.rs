//! The client: sends a file in pieces, each over a connection of its own.
//!
//! [`run`] finds out which protocol the server has. [`tus`] or [`webdav`] then sends what the server lacks, by means of
//! [`transfer`], which decides on the pieces, the waits and the pauses. [`verify`] compares the result with the source.
//! [`http`] opens the connections, [`source`] reads the file, [`state`] keeps what a later process needs, and [`turn`]
//! asks the station's agent when to send.

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
    /// As `wakeai_control::Pieces` decides while it sends.
    #[default]
    Auto,
    /// Into this number of equal pieces.
    Count(u32),
    /// Into pieces of this size.
    Size(Bytes),
}

/// The protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The one that the server's answer to OPTIONS shows.
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
    /// The file; `None` is standard input.
    pub file: Option<PathBuf>,
    /// With tus the URL that creates uploads, else the URL of the file, or of its directory with a final `/`.
    pub url: Url,
    /// The name at the server, instead of the file's own.
    pub name: Option<String>,
    /// How the upload is split.
    pub chunks: Chunks,
    /// The protocol.
    pub protocol: Protocol,
    /// Whether the result is compared with the source.
    pub verify: bool,
    /// The directory that keeps the states of unfinished uploads; `None` keeps none.
    pub states: Option<PathBuf>,
    /// What is sent as `Authorization`.
    pub credentials: Option<Credentials>,
    /// The certificates of the authorities that may sign the server's, as PEM, instead of the system's.
    pub ca: Option<PathBuf>,
    /// The congestion control algorithm of the connections, instead of the system's.
    pub algorithm: Option<String>,
    /// The socket of the station's agent, which says when the transfer may send.
    pub agent: Option<PathBuf>,
    /// The longest time for the whole upload.
    pub timeout: Option<Duration>,
    /// The longest time without progress.
    pub retry_for: Duration,
    /// The largest input that is kept in a temporary file, where the input is no regular file.
    pub spool: Bytes,
}
