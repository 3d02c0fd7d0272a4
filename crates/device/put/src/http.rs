//! Requests to the server, each over a connection of its own.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, DATE, HOST, LOCATION, PROXY_AUTHORIZATION, RETRY_AFTER,
    USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Collected, Either, Full, Limited};
use hyper::body::{Body as _, Incoming};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::answers::{Asked, Meaning, meaning};
use super::error::plain;
use super::proxies::proxy;
use super::source::Piece;
use super::stream::{PatientStream, SendError};
use super::target::{follow, is_same_origin, shown};
use super::{PutConfig, PutError, certificate};

/// The longest time for looking up a name, for opening a connection to one of its addresses, and for TLS, each.
const CONNECT: Duration = Duration::from_secs(15);
/// The longest time for the answer to a request without a body, and for reading an answer.
const ANSWER: Duration = Duration::from_mins(1);
/// The longest time for which sent data may stay unacknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);
/// The longest wait that a server may ask for, in seconds.
const LONGEST_ASKED: u64 = 86_400;
/// The time between two probes of a silent server.
const PROBES: Duration = Duration::from_secs(5);
/// The value of `User-Agent`.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("wakeai/", env!("CARGO_PKG_VERSION")));
/// The most bytes of an answer's body that are read as text.
const ANSWER_LIMIT: usize = 4096;

/// The body of a request: text of its own, or a part of the file.
type QueryBody = Either<Full<Bytes>, Piece>;

/// A connection, whatever is between it and the server.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Duplex for S {}

/// The client of one upload.
#[derive(Debug)]
pub(super) struct Client {
    config: PutConfig,
    tls: Option<Arc<ClientConfig>>,
    proxies: Matcher,
    /// Whether a server has ever been reached. A name that was never found is a wrong one.
    has_reached: AtomicBool,
}

/// A request. The body of one that sends a part of the file is given apart.
#[derive(Clone, Debug)]
pub(super) struct Query<'a> {
    asked: Asked,
    method: Method,
    url: &'a Url,
    headers: Vec<(HeaderName, String)>,
    body: &'static str,
    /// The most bytes of the answer's body that are read.
    limit: usize,
}

impl<'a> Query<'a> {
    /// A request without header fields of its own.
    pub(super) fn new(asked: Asked, method: Method, url: &'a Url) -> Self {
        Self { asked, method, url, headers: Vec::new(), body: "", limit: ANSWER_LIMIT }
    }

    /// The request with a body. At most `limit` bytes of the answer's are read.
    pub(super) fn with_body(self, body: &'static str, limit: usize) -> Self {
        Self { body, limit, ..self }
    }

    /// The request with one more header field.
    pub(super) fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// An answer whose body is still to be read. When it is dropped, its connection closes, and no more of the request's body
/// is sent (RFC 9112, section 9.5).
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) answer: Response<Incoming>,
    /// The task of the connection, which ends when this is dropped.
    _connection: JoinSet<()>,
}

/// An answer without its body.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    asked: Asked,
    /// Where a redirect leads.
    location: Option<String>,
}

impl HttpAnswer {
    /// The value of a header field, if the value is text.
    pub(super) fn get(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The number in a header field.
    pub(super) fn number(&self, name: &HeaderName) -> Option<u64> {
        self.get(name)?.trim().parse().ok()
    }

    /// What the answer means for the upload.
    pub(super) fn meaning(&self) -> Meaning {
        meaning(self.asked, self.status, self.retry_after().is_some())
    }

    /// The answer if it does what was asked.
    ///
    /// # Errors
    ///
    /// [`PutError::Refused`].
    pub(super) fn done(self) -> Result<Self, PutError> {
        if self.meaning() == Meaning::Done { Ok(self) } else { Err(self.refused()) }
    }

    /// The error for an answer that refuses the request.
    pub(super) fn refused(&self) -> PutError {
        // A page of HTML or XML is of no use in a terminal.
        let body = &self.body[..self.body.len().min(ANSWER_LIMIT)];
        let said = String::from_utf8_lossy(body);
        let line = said.lines().next().filter(|line| !line.starts_with('<'));
        let line = line.unwrap_or_default().chars().filter(|c| !c.is_control()).take(200);
        let line: String = line.collect();
        let mut shown = if line.trim().is_empty() { String::new() } else { format!(": {line}") };
        if let Some(location) = self.location.as_ref().filter(|_| self.status / 100 == 3) {
            shown = format!("{shown}, to {location}");
        }
        PutError::Refused {
            asked: self.asked,
            status: self.status,
            said: shown,
            retry_after: self.retry_after(),
            page: said.into_owned(),
        }
    }

    fn retry_after(&self) -> Option<wakeai_units::Duration> {
        wait(self.get(&RETRY_AFTER)?, self.get(&DATE))
    }
}

impl Client {
    pub(super) fn new(config: &PutConfig) -> Result<Self, PutError> {
        let tls = if config.url.scheme() == "https" { Some(tls(config)?) } else { None };
        let proxies = config.proxies.matcher()?;
        Ok(Self { config: config.clone(), tls, proxies, has_reached: AtomicBool::new(false) })
    }

    /// Sends a request.
    pub(super) async fn ask(&self, query: &Query<'_>) -> Result<HttpAnswer, PutError> {
        let reply = timeout(ANSWER, self.send(query, None)).await;
        let reply = reply.map_err(|_| lost("the server was silent for 1 minute"))??;
        Ok(read(reply, query).await)
    }

    /// Sends a request with a part of the file, for which there is no limit of time.
    pub(super) async fn give(
        &self,
        query: &Query<'_>,
        piece: Piece,
    ) -> Result<HttpAnswer, PutError> {
        Ok(read(self.send(query, Some(piece)).await?, query).await)
    }

    /// Sends a request, and returns the answer with its body.
    pub(super) async fn send(
        &self,
        query: &Query<'_>,
        piece: Option<Piece>,
    ) -> Result<Reply, PutError> {
        let url = query.url;
        let proxy = proxy(&self.proxies, url);
        let is_relayed = proxy.is_some() && url.scheme() == "http";
        let mut request = self.request(query, is_relayed, piece)?;
        if let Some(secret) = proxy.as_ref().filter(|_| is_relayed).and_then(Intercept::basic_auth)
        {
            request.headers_mut().insert(PROXY_AUTHORIZATION, secret.clone());
        }
        let failed = SendError::default();
        let inner = self.connect(url, proxy.as_ref()).await?;
        let mut stream: Box<dyn Duplex> = Box::new(PatientStream { inner, failed: failed.clone() });
        if let Some(tls) = self.tls.as_ref().filter(|_| url.scheme() == "https") {
            if let Some(proxy) = &proxy {
                stream = Box::new(tunnel(stream, url, proxy, &failed).await?);
            }
            stream = Box::new(self.secure(tls, url, stream).await?);
        }
        let reply = exchange(stream, request, &failed).await?;
        self.has_reached.store(true, Ordering::Relaxed);
        Ok(reply)
    }

    /// The request. A proxy that relays it gets the whole URL (RFC 9112, section 3.2.2).
    fn request(
        &self,
        query: &Query<'_>,
        is_relayed: bool,
        piece: Option<Piece>,
    ) -> Result<Request<QueryBody>, PutError> {
        let (url, own) = (query.url, Full::from(query.body));
        let body = piece.map_or(Either::Left(own), Either::Right);
        let from = if is_relayed { url::Position::BeforeScheme } else { url::Position::BeforePath };
        let path = &url[from..url::Position::AfterQuery];
        let mut request = Request::builder().method(query.method.clone()).uri(path);
        request = request.header(HOST, host(url)).header(USER_AGENT, AGENT);
        for (name, value) in &query.headers {
            request = request.header(name, value);
        }
        // An empty body has a length, too (RFC 9110, section 8.6).
        if matches!(query.method, Method::POST | Method::PUT | Method::PATCH)
            && let Some(length) = body.size_hint().exact()
        {
            request = request.header(CONTENT_LENGTH, length);
        }
        // Credentials go only to the server of the configured URL.
        if let Some(credentials) = &self.config.credentials
            && is_same_origin(url, &self.config.url)
        {
            request = request.header(AUTHORIZATION, credentials.value());
        }
        request.body(body).map_err(|_| PutError::Url(format!("{} cannot be asked for", shown(url))))
    }

    async fn secure(
        &self,
        tls: &Arc<ClientConfig>,
        url: &Url,
        stream: Box<dyn Duplex>,
    ) -> Result<impl Duplex + use<>, PutError> {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| PutError::Url(format!("{host} is no name for TLS")))?;
        let secured = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
        let secured = timeout(CONNECT, secured).await;
        let secured = secured.map_err(|_| lost("the TLS handshake took longer than 15 s"))?;
        secured.map_err(|error| certificate::failure(host, &error, self.config.ca.is_some()))
    }

    /// Connects to the proxy, or to the server. Each address of its name gets its own chance (RFC 8305).
    async fn connect(&self, url: &Url, proxy: Option<&Intercept>) -> Result<TcpStream, PutError> {
        let (addresses, host) = match proxy.map(Intercept::uri) {
            Some(proxy) => {
                let name = proxy.host().unwrap_or_default().trim_matches(['[', ']']);
                // Without a user and a password.
                let shown = proxy.authority().and_then(|known| known.as_str().rsplit('@').next());
                let addresses = self.look_up(name, proxy.port_u16().unwrap_or(80)).await?;
                (addresses, shown.unwrap_or_default())
            }
            None => (self.addresses(url).await?, host(url)),
        };
        let limit = wakeai_units::Duration::from_secs(CONNECT.as_secs());
        let open = wakeai_net::connect(addresses, limit, async |address| {
            self.open(address).await.map_err(|error| plain(&error))
        });
        match open.await {
            Ok(stream) => self.prepare(stream),
            Err(unreached) => Err(lost(format!("cannot connect to {host}: {unreached}"))),
        }
    }

    /// The addresses of the URL's host.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, PutError> {
        let port = url.port_or_known_default().unwrap_or(80);
        let zone = self.config.zone.as_ref().filter(|_| url.host() == self.config.url.host());
        match url.host() {
            Some(Host::Ipv4(address)) => Ok(vec![SocketAddr::new(IpAddr::V4(address), port)]),
            Some(Host::Ipv6(address)) => {
                // An interface comes and goes, but not before it has been there.
                let has_been = self.has_reached.load(Ordering::Relaxed);
                let wrong = if has_been { PutError::Connection } else { PutError::Url };
                let found = wakeai_net::with_zone(address, zone, port);
                Ok(vec![SocketAddr::V6(found.map_err(|error| wrong(error.to_string()))?)])
            }
            Some(Host::Domain(name)) => self.look_up(name, port).await,
            None => Err(PutError::Url("it names no host".to_owned())),
        }
    }

    async fn look_up(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, PutError> {
        let found = timeout(CONNECT, wakeai_net::lookup(name, port)).await;
        let found =
            found.map_err(|_| lost(format!("no name server answered for {name} in 15 s")))?;
        // Behind a network that has just come, a name that was there before may not be known yet.
        found.map_err(|error| {
            let may_pass = error.may_pass() || self.has_reached.load(Ordering::Relaxed);
            let wrong = if may_pass { PutError::Connection } else { PutError::Unusable };
            wrong(error.to_string())
        })
    }

    async fn open(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let socket = match to {
            SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4()?,
            SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6()?,
        };
        if let Some(algorithm) = &self.config.algorithm {
            // Its errors are those of `prepare`, which sets it again.
            let _ = SockRef::from(&socket).set_tcp_congestion(algorithm.as_bytes());
        }
        socket.connect(to).await
    }

    /// Sets the options of a connection.
    fn prepare(&self, stream: TcpStream) -> Result<TcpStream, PutError> {
        if let Some(name) = &self.config.algorithm {
            let set = SockRef::from(&stream).set_tcp_congestion(name.as_bytes());
            set.map_err(|source| PutError::Algorithm { name: name.clone(), source })?;
        }
        set_options(&stream).map_err(|error| lost(plain(&error)))?;
        Ok(stream)
    }
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    let options = SockRef::from(stream);
    options.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    // Probes detect a server that vanished after it had acknowledged everything.
    let probes = TcpKeepalive::new().with_time(UNACKNOWLEDGED).with_interval(PROBES);
    options.set_tcp_keepalive(&probes)?;
    // The socket buffers little unsent data, so that the progress counts the data that the network has taken.
    options.set_tcp_notsent_lowat(128 * 1024)
}

/// The host and the port of a URL, for the header field `Host`. They never have a zone (RFC 6874, section 4).
fn host(url: &Url) -> &str {
    &url[url::Position::BeforeHost..url::Position::AfterPort]
}

/// The time that a `Retry-After` asks for (RFC 9110, section 10.2.3): seconds, or a date. A date counts from the answer's
/// own `Date`, so that this machine's clock does not matter. A server with a clock sends one (RFC 9110, section 6.6.1).
fn wait(text: &str, now: Option<&str>) -> Option<wakeai_units::Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = text.parse().unwrap_or(LONGEST_ASKED);
        return Some(wakeai_units::Duration::from_secs(LONGEST_ASKED.min(seconds)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let now = httpdate::parse_http_date(now?.trim()).ok()?;
    let wait = date.duration_since(now).unwrap_or_default();
    Some(wakeai_units::Duration::from_secs(LONGEST_ASKED.min(wait.as_secs())))
}

/// A failure after which another attempt may succeed.
fn lost(reason: impl Into<String>) -> PutError {
    PutError::Connection(reason.into())
}

/// Reads the body of an answer.
pub(super) async fn read(reply: Reply, query: &Query<'_>) -> HttpAnswer {
    let Reply { answer, _connection: connection } = reply;
    let (asked, url) = (query.asked, query.url);
    let (head, body) = answer.into_parts();
    let text = timeout(ANSWER, Limited::new(body, query.limit).collect()).await;
    let body = text.ok().and_then(Result::ok).map(Collected::to_bytes).unwrap_or_default();
    drop(connection);
    let location = head.headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let location = location.and_then(|location| follow(url, location).ok()).map(|url| shown(&url));
    HttpAnswer { status: head.status.as_u16(), headers: head.headers, body, asked, location }
}

/// Opens a tunnel through a proxy (RFC 9110, section 9.3.6).
async fn tunnel(
    stream: Box<dyn Duplex>,
    url: &Url,
    proxy: &Intercept,
    failed: &SendError,
) -> Result<impl Duplex + use<>, PutError> {
    let port = url.port_or_known_default().unwrap_or(443);
    let there = format!("{}:{port}", url.host_str().unwrap_or_default());
    let mut request = Request::builder().method(Method::CONNECT).uri(&there);
    request = request.header(HOST, &there).header(USER_AGENT, AGENT);
    if let Some(secret) = proxy.basic_auth() {
        request = request.header(PROXY_AUTHORIZATION, secret.clone());
    }
    let request = request.body(QueryBody::Left(Full::default()));
    let request = request.map_err(|_| PutError::Url(format!("{there} cannot be asked for")))?;
    let reply = timeout(ANSWER, exchange(stream, request, failed)).await;
    let reply = reply.map_err(|_| lost("the proxy was silent for 1 minute"))??;
    if !reply.answer.status().is_success() {
        let query = Query::new(Asked::Tunnel, Method::CONNECT, url);
        return Err(read(reply, &query).await.refused());
    }
    let Reply { answer, _connection: connection } = reply;
    let tunnel = hyper::upgrade::on(answer).await.map_err(|error| broken(&error, failed))?;
    drop(connection);
    Ok(TokioIo::new(tunnel))
}

async fn exchange(
    stream: impl Duplex,
    request: Request<QueryBody>,
    failed: &SendError,
) -> Result<Reply, PutError> {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| broken(&error, failed))?;
    let mut task = JoinSet::new();
    task.spawn(async { drop(connection.with_upgrades().await) });
    let answer = sender.send_request(request).await.map_err(|error| broken(&error, failed))?;
    Ok(Reply { answer, _connection: task })
}

/// The error of a connection that ended without an answer.
pub(super) fn broken(error: &hyper::Error, failed: &OnceLock<String>) -> PutError {
    if error.is_parse() {
        return PutError::Unusable(
            "the server's answer is no HTTP: does the URL need https://, or another port?"
                .to_owned(),
        );
    }
    if let Some(reason) = failed.get() {
        return lost(format!("the connection broke before the server answered: {reason}"));
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return lost("the server closed the connection before its answer was complete");
    }
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(error) = inner.downcast_ref::<io::Error>() {
            return lost(format!(
                "the connection broke before the server answered: {}",
                plain(error)
            ));
        }
        cause = inner.source();
    }
    lost("the connection broke before the server answered")
}

fn tls(config: &PutConfig) -> Result<Arc<ClientConfig>, PutError> {
    let mut roots = RootCertStore::empty();
    let wrong =
        |from: &str, reason: String| PutError::Certificates { from: from.to_owned(), reason };
    if let Some(path) = &config.ca {
        let from = path.display().to_string();
        let pem =
            std::fs::read(path).map_err(|source| PutError::Read { path: path.clone(), source })?;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| wrong(&from, error.to_string()))?;
            roots.add(certificate).map_err(|error| wrong(&from, error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(wrong(&from, "found no certificate in PEM".to_owned()));
        }
    } else {
        // A certificate that cannot be read is skipped.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let builder = ClientConfig::builder();
    let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use super::*;

    #[test]
    fn a_wait_until_a_date_counts_from_the_answer_s_own_date() {
        let seconds = |seconds| Some(wakeai_units::Duration::from_secs(seconds));
        let (now, later) = ("Thu, 01 Jan 1970 00:00:10 GMT", "Thu, 01 Jan 1970 00:02:00 GMT");
        assert_eq!(wait(later, Some(now)), seconds(110));
        assert_eq!(wait(now, Some(later)), seconds(0));
        // A date without a clock to compare it with says nothing.
        assert_eq!(wait(later, None), None);
        assert_eq!(wait(" 120 ", None), seconds(120));
        assert_eq!(wait("99999999999999999999999", None), seconds(LONGEST_ASKED));
        for bad in ["", "-1", "1.5", "soon"] {
            assert_eq!(wait(bad, Some(now)), None, "{bad}");
        }
    }

    /// A connection that breaks while the body is sent. The answer arrives only when writing has already failed.
    #[derive(Default)]
    struct Breaking {
        writes: u32,
        reader: Option<std::task::Waker>,
        answer: io::Cursor<&'static [u8]>,
    }

    impl AsyncRead for Breaking {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut tokio::io::ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.writes < 2 {
                self.reader = Some(context.waker().clone());
                return Poll::Pending;
            }
            Pin::new(&mut self.answer).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Breaking {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.writes += 1;
            if self.writes < 2 {
                return Poll::Ready(Ok(bytes.len().min(100)));
            }
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
            Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    async fn sent(answer: &'static str) -> Result<u16, PutError> {
        let failed = SendError::default();
        let inner = Breaking { answer: io::Cursor::new(answer.as_bytes()), ..Breaking::default() };
        let body = QueryBody::Left(Full::from(vec![0; 1 << 20]));
        let request = Request::put("/f").header(HOST, "h").body(body).unwrap();
        let stream = PatientStream { inner, failed: failed.clone() };
        let reply = exchange(stream, request, &failed).await?;
        Ok(reply.answer.status().as_u16())
    }

    #[tokio::test]
    async fn an_answer_is_read_although_sending_has_failed() {
        let status = sent("HTTP/1.1 507 Full\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        assert_eq!(status, 507);
        let said = sent("").await.unwrap_err().to_string();
        assert!(said.contains("broke") && said.contains("reset"), "{said}");
    }
}
