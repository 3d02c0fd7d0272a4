//! The client: sends a file in pieces, each over a connection of its own.
//!
//! [`run`] finds out which protocol the server has, and drives [`tus`] or [`webdav`] until the server has the file.
//! [`http`] opens the connections, and [`turn`] asks the station's agent when the transfer may send.

mod backoff;
mod credentials;
mod error;
mod http;
mod source;
mod state;
mod target;
mod turn;
mod tus;
mod upload;
mod webdav;

use std::path::PathBuf;

use url::Url;
use wakeai_units::{Bytes, Duration};

pub use self::credentials::Credentials;
pub use self::error::PutError;
pub use self::upload::{Progress, Report, run};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
