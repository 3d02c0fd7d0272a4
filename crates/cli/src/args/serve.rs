//! The arguments of `wakeai serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use wakeai_net::Local;
use wakeai_serve::{Base, Origin};
use wakeai_units::{Bytes, Duration, Rate};

use super::some_rate;

/// Take uploads that resume after any interruption (tus 1.0.0), and keep them in a directory
///
/// An upload's file appears in the directory, under the name that the client told, once all of its bytes are there. What
/// the server has acknowledged is on disk. Addresses other than loopback need TLS and tokens. It runs until SIGTERM or
/// Ctrl-C, and prints its counters on SIGUSR1 and at the end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai serve uploads                                 on 127.0.0.1:8080, for this machine
  wakeai serve uploads --listen 0.0.0.0:8443 --cert cert.pem --key key.pem --token-file tokens
                                                       for other machines
  wakeai serve uploads --max-size 4GB --quota 100GB    with limits

The token file has a line NAME TOKEN for each client, and only its owner may read it:
  (umask 077; echo \"camera $(openssl rand -hex 32)\" > tokens)

docs/reference/cli.md explains the limits and the counters.")]
pub(crate) struct ServeArguments {
    /// The directory that takes the uploads
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    #[arg(
        help = "The address on which to listen; a link-local one has its interface, as in [fe80::5%eth0]:8443"
    )]
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080",
          value_parser = wakeai_net::socket_address)]
    pub(crate) listen: SocketAddr,
    /// The certificate chain, as PEM; needs --key
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The certificate's private key, as PEM, which only its owner may read
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// The clients' tokens, one line NAME TOKEN for each; only its owner may read the file
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Behind a reverse proxy, the path or URL of the uploads as clients see it, such as /up/files [default: the Location of
    /// an upload is relative where a request came through a proxy, and below /files elsewhere]
    #[arg(long, value_name = "PATH|URL")]
    pub(crate) base: Option<Base>,
    #[arg(
        help = "An origin whose web pages may upload, such as https://app.example, or * for all; may be repeated \
                  [default: with tokens all, without tokens those of this machine]"
    )]
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<Origin>,
    /// The largest upload
    #[arg(long, value_name = "SIZE", default_value = "1000GB")]
    pub(crate) max_size: Bytes,
    /// The most bytes of all files in DIR, with those that unfinished uploads will have [default: the disk's size]
    #[arg(long, value_name = "SIZE")]
    pub(crate) quota: Option<Bytes>,
    /// The most bytes of one client's uploads, until they expire [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) client_quota: Option<Bytes>,
    /// The most unfinished uploads of one client
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) client_uploads: u32,
    /// The most connections at a time; further ones wait in the kernel's queue, or take the place of one that has been
    /// idle for a second
    #[arg(long, value_name = "N", default_value_t = 512,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_connections: u32,
    /// The most connections of one address at a time; further ones are closed, or take the place of an idle one
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) client_connections: u32,
    /// The rate at which the bytes of one client are read [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = some_rate)]
    pub(crate) rate: Option<Rate>,
    /// An upload without activity for this long is removed; the file of a finished one stays
    #[arg(long, value_name = "TIME", default_value = "86400s")]
    pub(crate) expire_after: Duration,
    /// The time for a TLS handshake, for a request's head, and between two requests of a connection
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) head_timeout: Duration,
    /// A body of which no byte arrives for this long ends; what arrived before is kept
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) body_timeout: Duration,
    /// Where Prometheus may ask for the server's figures, on the loopback interface: /metrics at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<Local>,
    /// Print JSON objects, one per line: the address it listens on, and the counters
    #[arg(long)]
    pub(crate) json: bool,
}
