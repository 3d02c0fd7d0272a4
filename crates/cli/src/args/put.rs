//! The arguments of `wakeai put`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use wakeai_put::Protocol;
use wakeai_units::{Bytes, Duration};

use super::one_of;

/// Upload a file in pieces, over tus 1.0 or HTTP PUT; after an interruption the same command continues it
///
/// Each piece has a connection of its own. Where an agent runs on this machine, the upload sends in turns
/// with those of the other stations of the access point.
#[derive(Debug, Args)]
#[command(after_help = "\
Credentials come from a file (--token-file, --user-file) or from the environment: WAKEAI_TOKEN is sent as
a bearer token. The environment also names proxies: http_proxy, https_proxy, all_proxy, no_proxy.

Exit status: 0 the server has the file; 1 it has not; 2 bad usage; 130 or 143 after a signal.")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct PutArguments {
    /// The file; - is standard input, which is kept in a temporary file first
    pub(crate) file: PathBuf,
    /// With tus the URL that creates uploads, else that of the file, or of its directory with a final /
    pub(crate) url: String,
    /// The name at the server, instead of the file's own
    #[arg(long)]
    pub(crate) name: Option<OsString>,
    /// Overwrite the file at the server, too, where its name may be another one that the server takes for the same
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Split into this number of equal pieces, instead of by what the network carries in some seconds
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "chunk_size")]
    pub(crate) chunks: Option<u32>,
    /// Split into pieces of this size, such as 4MB
    #[arg(long)]
    pub(crate) chunk_size: Option<Bytes>,
    /// The protocol: tus, put (the whole file by one request) or put-ranges (with Content-Range); by
    /// default the one that the server's answer to OPTIONS shows
    #[arg(long, default_value = "auto", value_parser = one_of::<Protocol>())]
    pub(crate) protocol: Protocol,
    /// Do not compare the result with the source
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Keep no state for a later process, and use none
    #[arg(long)]
    pub(crate) no_resume: bool,
    /// A file with a token, which only its owner may read
    #[arg(long, value_name = "FILE", conflicts_with = "user_file")]
    pub(crate) token_file: Option<PathBuf>,
    /// A file with user:password, which only its owner may read
    #[arg(long, value_name = "FILE")]
    pub(crate) user_file: Option<PathBuf>,
    /// Authorities that may sign the server's certificate, as PEM, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// The congestion control algorithm, instead of the system's
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,
    /// The socket of the agent that assigns turns, instead of the one of this network namespace
    #[arg(long, value_name = "PATH", conflicts_with = "no_turns")]
    pub(crate) agent: Option<PathBuf>,
    /// Send without waiting for turns
    #[arg(long)]
    pub(crate) no_turns: bool,
    /// The longest time for the whole upload
    #[arg(long)]
    pub(crate) timeout: Option<Duration>,
    /// The longest time without progress
    #[arg(long, default_value = "600s")]
    pub(crate) retry_for: Duration,
    /// The largest input that is no regular file
    #[arg(long, default_value = "1GB")]
    pub(crate) spool_limit: Bytes,
    /// Print one JSON object at the end, and no progress
    #[arg(long)]
    pub(crate) json: bool,
}
