//! The client: sends a file in pieces, each over a connection of its own.
//!
//! [`run()`] finds out which protocol the server supports. [`tus`] or [`webdav`] then sends the bytes that the server
//! lacks. Both use [`transfer`], which decides on the pieces, the waits and the pauses. [`answers`] says what each answer
//! of a server means. [`verify`] compares the result with the source. [`http`] opens the connections, through the proxies
//! of [`proxies`], [`source`] reads the file, [`state`] keeps the data that a later process needs, [`names`] finds out
//! what an upload would overwrite, and [`turn`] asks the station's agent when to send.

mod answers;
mod backoff;
mod certificate;
mod credentials;
mod error;
mod http;
mod names;
mod proxies;
mod run;
mod source;
mod state;
mod stream;
mod target;
mod transfer;
mod turn;
mod tus;
mod verify;
mod webdav;

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;
use strum::{EnumMessage, IntoStaticStr, VariantArray};
use url::Url;
use wakeai_net::Zone;
use wakeai_units::{Bytes, Duration};

pub use self::answers::Asked;
pub use self::credentials::Credentials;
pub use self::error::PutError;
pub use self::proxies::Proxies;
pub use self::run::run;
pub use self::target::parse_url;
pub use self::transfer::{PutProgress, PutReport};

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

/// The protocol of an upload. Its name in reports is that of the command line.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
    /// Whether an upload continues after an interruption. Otherwise it begins anew.
    pub fn continues(self) -> bool {
        self != Self::Put
    }
}

/// The configuration of an upload.
#[derive(Clone, Debug)]
pub struct PutConfig {
    /// The file. `None` stands for standard input.
    pub file: Option<PathBuf>,
    /// With tus, the URL that creates uploads. Otherwise the URL of the file, or the URL of its directory with a final
    /// `/`.
    pub url: Url,
    /// The interface on whose link the URL's host is, if the host is a link-local address.
    pub zone: Option<Zone>,
    /// The name at the server, instead of the file's own. It may have any octet.
    pub name: Option<OsString>,
    /// Whether a file is overwritten whose name the server takes for the same.
    pub overwrite: bool,
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
    /// The proxies on the way to the server.
    pub proxies: Proxies,
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
