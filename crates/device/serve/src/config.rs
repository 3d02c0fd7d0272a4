//! The configuration of a server: addresses, files and limits. Its documentation is the help of `wakeai serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use wakeai_net::Local;
use wakeai_units::{Bytes, Duration, Rate};

use super::base::Base;
use super::cors::Origin;

/// The configuration of a server.
#[derive(Clone, Debug, Args)]
pub struct ServeConfig {
    /// The directory that takes the uploads
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The address on which to listen; a link-local one has its interface, as in `[fe80::5%eth0]:8443`
    #[arg(
        help = "The address on which to listen; a link-local one has its interface, as in [fe80::5%eth0]:8443"
    )]
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080",
          value_parser = wakeai_net::socket_address)]
    pub listen: SocketAddr,
    /// The files of the certificate chain and of its private key.
    #[command(flatten)]
    pub tls: Option<Tls>,
    /// The clients' tokens, one line NAME TOKEN for each; only its owner may read the file
    #[arg(long = "token-file", value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// Behind a reverse proxy, the path or URL of the uploads as clients see it, such as /up/files [default: the Location of
    /// an upload is relative where a request came through a proxy, and below /files elsewhere]
    #[arg(long, value_name = "PATH|URL")]
    pub base: Option<Base>,
    /// The origins whose web pages may use the server. Without any, those of this machine may, and with tokens all.
    #[arg(
        help = "An origin whose web pages may upload, such as https://app.example, or * for all; may be repeated \
                  [default: with tokens all, without tokens those of this machine]"
    )]
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub origins: Vec<Origin>,
    /// The limits of clients.
    #[command(flatten)]
    pub limits: Limits,
    /// Where Prometheus may ask for the server's figures, on the loopback interface: /metrics at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<Local>,
}

/// The files of a server's TLS identity.
#[derive(Clone, Debug, Args)]
pub struct Tls {
    /// The certificate chain, as PEM; needs --key
    #[arg(long = "cert", value_name = "FILE", requires = "key", required = false)]
    pub certificate: PathBuf,
    /// The certificate's private key, as PEM, which only its owner may read
    #[arg(long, value_name = "FILE", requires = "certificate", required = false)]
    pub key: PathBuf,
}

/// The limits of clients.
#[derive(Clone, Debug, Args)]
pub struct Limits {
    /// The largest upload
    #[arg(long, value_name = "SIZE", default_value_t = Self::default().max_size)]
    pub max_size: Bytes,
    /// The most bytes of all files in DIR, with those that unfinished uploads will have [default: the disk's size]
    #[arg(long, value_name = "SIZE")]
    pub quota: Option<Bytes>,
    /// The most bytes of one client's uploads, until they expire [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub client_quota: Option<Bytes>,
    /// The most unfinished uploads of one client
    #[arg(long, value_name = "N", default_value_t = Self::default().client_uploads,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=u32::MAX.into()))]
    pub client_uploads: usize,
    /// The most connections at a time; further ones wait in the kernel's queue, or take the place of one that has been
    /// idle for a second
    #[arg(long = "max-connections", value_name = "N", default_value_t = Self::default().connections,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub connections: usize,
    /// The most connections of one address at a time; further ones are closed, or take the place of an idle one
    #[arg(long, value_name = "N", default_value_t = Self::default().client_connections,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub client_connections: usize,
    /// The rate at which the bytes of one client are read [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = Rate::above_zero)]
    pub rate: Option<Rate>,
    /// An upload without activity for this long is removed; the file of a finished one stays
    #[arg(long, value_name = "TIME", default_value_t = Self::default().expire_after)]
    pub expire_after: Duration,
    /// The time for a TLS handshake, for a request's head, and between two requests of a connection
    #[arg(long, value_name = "TIME", default_value_t = Self::default().head_timeout)]
    pub head_timeout: Duration,
    /// A body of which no byte arrives for this long ends; what arrived before is kept
    #[arg(long, value_name = "TIME", default_value_t = Self::default().body_timeout)]
    pub body_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_size: Bytes::new(1_000_000_000_000),
            quota: None,
            client_quota: None,
            client_uploads: 1000,
            connections: 512,
            client_connections: 256,
            rate: None,
            expire_after: Duration::from_secs(24 * 3600),
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
        }
    }
}
