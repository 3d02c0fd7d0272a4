//! The configuration of a server: addresses, files and limits.

use std::net::SocketAddr;
use std::path::PathBuf;

use wakeai_net::Local;
use wakeai_units::{Bytes, Duration, Rate};

use super::base::Base;
use super::cors::Origin;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// The directory that takes the uploads.
    pub directory: PathBuf,
    /// The address on which to listen.
    pub listen: SocketAddr,
    /// The files of the certificate chain and of its private key, both PEM.
    pub tls: Option<Tls>,
    /// The file of the clients' tokens.
    pub tokens: Option<PathBuf>,
    /// The address at which Prometheus may ask for the server's figures.
    pub metrics: Option<Local>,
    /// The URL of the uploads as clients see it behind a reverse proxy.
    pub base: Option<Base>,
    /// The origins whose web pages may use the server. Without any, those of this machine may, and with tokens all.
    pub origins: Vec<Origin>,
    /// The limits of clients.
    pub limits: Limits,
}

/// The files of a server's TLS identity.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// The limits of clients.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest upload.
    pub max_size: Bytes,
    /// The largest size of all files in the directory together. Unfinished uploads count with the size that they will
    /// have.
    pub quota: Option<Bytes>,
    /// The largest size of one client's uploads together. An upload counts until it expires.
    pub client_quota: Option<Bytes>,
    /// The largest number of unfinished uploads of one client.
    pub client_uploads: usize,
    /// The largest number of connections at a time.
    pub connections: usize,
    /// The largest number of connections of one address at a time.
    pub client_connections: usize,
    /// The rate at which one client's bytes are read.
    pub rate: Option<Rate>,
    /// The time without activity after which an upload is removed.
    pub expire_after: Duration,
    /// The time for a TLS handshake, for a request's head, and between two requests.
    pub head_timeout: Duration,
    /// The time without a byte of the body after which a request ends.
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
