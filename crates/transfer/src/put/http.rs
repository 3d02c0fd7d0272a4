//! Requests to the server, each over a connection of its own.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Collected, Empty, Limited};
use hyper::body::{Body, Incoming};
use hyper_util::rt::TokioIo;
use nix::sys::socket::{setsockopt, sockopt};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use socket2::TcpKeepalive;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;
use wakeai_units::text::bytes_without_mark;

use super::target::is_same_origin;
use super::{Config, PutError};

/// The longest time for opening a connection.
const CONNECT: Duration = Duration::from_secs(15);
/// The longest time for the answer to a request without a body, and for reading an answer.
const ANSWER: Duration = Duration::from_mins(1);
/// The longest time for which sent data may stay unacknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);
/// The longest wait that a server may ask for, in seconds.
const LONGEST_ASKED: u64 = 86_400;
/// The time between two probes of a silent server.
const PROBES: Duration = Duration::from_secs(5);
/// The most bytes of an answer's body that are read as text.
const ANSWER_LIMIT: usize = 4096;

/// The client of one upload.
#[derive(Debug)]
pub(super) struct Client {
    config: Config,
    tls: Option<Arc<ClientConfig>>,
}

/// An answer without its body.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    said: String,
}

impl Answer {
    /// The value of a header field, if the value is text.
    pub(super) fn get(&self, name: &http::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The number in a header field.
    pub(super) fn number(&self, name: &http::HeaderName) -> Option<u64> {
        self.get(name)?.trim().parse().ok()
    }

    /// The error for an answer that refuses the request.
    pub(super) fn refused(&self, asked: &'static str) -> PutError {
        // A page of HTML is of no use in a terminal.
        let line = self.said.lines().next().filter(|line| !line.starts_with('<'));
        let line = line.unwrap_or_default().chars().filter(|c| !c.is_control()).take(200);
        let line: String = line.collect();
        let said = if line.is_empty() { line } else { format!(": {line}") };
        let retry_after = self.get(&RETRY_AFTER).and_then(wait);
        PutError::Refused { asked, status: self.status, said, retry_after }
    }
}

impl Client {
    pub(super) fn new(config: &Config) -> Result<Self, PutError> {
        let tls = if config.url.scheme() == "https" { Some(tls(config)?) } else { None };
        Ok(Self { config: config.clone(), tls })
    }

    /// Sends a request without a body.
    pub(super) async fn ask(
        &self,
        method: Method,
        url: &Url,
        headers: &[(http::HeaderName, String)],
    ) -> Result<Answer, PutError> {
        let answer = timeout(ANSWER, self.send(method, url, headers, Empty::<Bytes>::new())).await;
        let answer = answer.map_err(|_| lost("the server was silent for 1 minute"))??;
        Ok(read(answer).await)
    }

    /// Sends a request with a body.
    pub(super) async fn give<B>(
        &self,
        method: Method,
        url: &Url,
        headers: &[(http::HeaderName, String)],
        body: B,
    ) -> Result<Answer, PutError>
    where
        B: Body<Data = Bytes, Error = io::Error> + Send + Unpin + 'static,
    {
        let answer = self.send(method, url, headers, body).await?;
        Ok(read(answer).await)
    }

    /// Sends a request, and returns the answer with its body. This is used for reading a file back.
    pub(super) async fn send<B>(
        &self,
        method: Method,
        url: &Url,
        headers: &[(http::HeaderName, String)],
        body: B,
    ) -> Result<Response<Incoming>, PutError>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let mut request = Request::builder().method(method).uri(path).header(HOST, host);
        request = request.header(USER_AGENT, concat!("wakeai/", env!("CARGO_PKG_VERSION")));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // Credentials go only to the server of the configured URL.
        if let Some(credentials) = &self.config.credentials
            && is_same_origin(url, &self.config.url)
        {
            request = request.header(AUTHORIZATION, credentials.value());
        }
        let request = request.body(body).map_err(|_| PutError::Answer("cannot be addressed"))?;
        let stream = timeout(CONNECT, self.connect(url)).await;
        let stream = stream.map_err(|_| lost("connecting took longer than 15 s"))??;
        let Some(tls) = self.tls.as_ref().filter(|_| url.scheme() == "https") else {
            return exchange(stream, request).await;
        };
        let name = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name =
            ServerName::try_from(name).map_err(|_| PutError::Url("its host is no name for TLS"))?;
        let secured =
            timeout(CONNECT, TlsConnector::from(Arc::clone(tls)).connect(name, stream)).await;
        let secured = secured.map_err(|_| lost("TLS took longer than 15 s"))?;
        exchange(secured.map_err(|error| certificate(url, &error))?, request).await
    }

    async fn connect(&self, url: &Url) -> Result<TcpStream, PutError> {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default().unwrap_or(80);
        let found = lookup_host((host, port)).await.map_err(|error| lost(error.to_string()))?;
        let mut last = lost(format!("{host} has no address"));
        for address in found {
            match self.open(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = lost(format!("{address}: {error}")),
            }
        }
        Err(last)
    }

    async fn open(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let socket = match to {
            SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4()?,
            SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6()?,
        };
        if let Some(algorithm) = &self.config.algorithm {
            setsockopt(&socket, sockopt::TcpCongestion, &OsString::from(algorithm))?;
        }
        let stream = socket.connect(to).await?;
        let options = socket2::SockRef::from(&stream);
        options.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
        // Probes detect a server that vanished after it had acknowledged everything.
        let probes = TcpKeepalive::new().with_time(UNACKNOWLEDGED).with_interval(PROBES);
        options.set_tcp_keepalive(&probes)?;
        // The socket buffers little unsent data, so that the progress counts the data that the network has taken.
        options.set_tcp_notsent_lowat(128 * 1024)?;
        Ok(stream)
    }
}

/// The time that a `Retry-After` asks for (RFC 9110, section 10.2.3): seconds, or a date.
fn wait(text: &str) -> Option<wakeai_units::Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(wakeai_units::Duration::from_secs(LONGEST_ASKED.min(seconds)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let wait = date.duration_since(std::time::SystemTime::now()).unwrap_or_default();
    Some(wakeai_units::Duration::from_secs(LONGEST_ASKED.min(wait.as_secs() + 1)))
}

/// A failure after which another attempt may succeed.
fn lost(reason: impl Into<String>) -> PutError {
    PutError::Connection(reason.into())
}

/// The error of a failed TLS handshake. A refused certificate is an error of the setup. After other failures another
/// attempt may succeed.
fn certificate(url: &Url, error: &io::Error) -> PutError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(reason)) => PutError::Certificates {
            from: url.host_str().unwrap_or_default().to_owned(),
            reason: format!("{reason} (--ca names the authority that signed it)"),
        },
        _ => lost(error.to_string()),
    }
}

/// Reads the text of an answer.
async fn read(answer: Response<Incoming>) -> Answer {
    let (head, body) = answer.into_parts();
    let text = timeout(ANSWER, Limited::new(body, ANSWER_LIMIT).collect()).await;
    let text = text.ok().and_then(Result::ok).map(Collected::to_bytes).unwrap_or_default();
    let said = String::from_utf8_lossy(&text).into_owned();
    Answer { status: head.status.as_u16(), headers: head.headers, said }
}

async fn exchange<S, B>(stream: S, request: Request<B>) -> Result<Response<Incoming>, PutError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let failed = |error: hyper::Error| lost(error.to_string());
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(failed)?;
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(failed)
}

fn tls(config: &Config) -> Result<Arc<ClientConfig>, PutError> {
    let mut roots = RootCertStore::empty();
    let wrong =
        |from: &str, reason: String| PutError::Certificates { from: from.to_owned(), reason };
    if let Some(path) = &config.ca {
        let from = path.display().to_string();
        let pem =
            std::fs::read(path).map_err(|source| PutError::Read { path: path.clone(), source })?;
        for certificate in CertificateDer::pem_slice_iter(bytes_without_mark(&pem)) {
            let certificate = certificate.map_err(|error| wrong(&from, error.to_string()))?;
            roots.add(certificate).map_err(|error| wrong(&from, error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(wrong(&from, "found no certificate in PEM".to_owned()));
        }
    } else {
        for certificate in rustls_native_certs::load_native_certs().certs {
            let _ = roots.add(certificate); // a certificate that cannot be read is skipped
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("this program", error.to_string()))?;
    let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}
