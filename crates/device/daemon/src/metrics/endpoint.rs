//! The HTTP endpoint. It shares a thread with the program that it belongs to. Therefore the size of a request, the
//! time for a request with its answer, and the number of clients are limited.

use std::convert::Infallible;
use std::future::{poll_fn, ready};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE, HOST, HeaderValue, VARY};
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use wakeai_net::{Local, is_this_machine};

use super::format::Format;
use super::page::Page;
use crate::{METHODS, accept_each, listen, part};

/// The path of the page with the metrics.
pub const PATH: &str = "/metrics";
/// The largest number of clients at once. Further clients wait in the kernel's queue.
const MOST_CLIENTS: usize = 4;
/// The length of the kernel's queue of connections.
const BACKLOG: i32 = 16;
/// The longest time of a connection, from its acceptance to the end of the answer. Prometheus itself waits
/// for 10 s.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest head of a request, in bytes. hyper does not allow a smaller limit.
const LARGEST_HEAD: usize = 8192;
/// The largest number of header fields in a request.
const HEADERS: usize = 32;
/// The longest time in which a client closes after its answer, and the most bytes that are read of it meanwhile.
const PARTING: Duration = Duration::from_secs(1);
const PARTING_BYTES: usize = 1 << 20;

/// The endpoint cannot listen at its address.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program listens at this address.
    #[error(
        "cannot serve figures on {0}: another program listens there; end it, or state another port"
    )]
    Taken(SocketAddr),
    /// The kernel refused.
    #[error("cannot serve figures on {address}: {source}")]
    System {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
}

impl BindError {
    /// Whether a privilege is missing.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// A listening socket for requests for metrics.
#[derive(Debug)]
pub struct Endpoint(TcpListener);

impl Endpoint {
    /// Listens at the address. This call needs no event loop.
    ///
    /// # Errors
    /// [`BindError`], for example if another program listens at the address.
    pub fn bind(address: Local) -> Result<Self, BindError> {
        let address = address.get();
        listen(address, BACKLOG, |_| Ok(())).map(Self).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::Taken(address),
            _ => BindError::System { address, source },
        })
    }

    /// Serves forever, on the `LocalSet` of the calling task. The endpoint calls `page` for each request for metrics.
    /// `page` must not block.
    pub async fn serve(self, page: impl Fn() -> Page + 'static) {
        let listener = match tokio::net::TcpListener::from_std(self.0) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!(%error, "figures cannot be served");
                return;
            }
        };
        let page = Rc::new(page);
        let places = Arc::new(Semaphore::new(MOST_CLIENTS));
        let accept = async || {
            let place = Arc::clone(&places).acquire_owned().await;
            let place = place.expect("the semaphore is never closed");
            Ok((listener.accept().await?.0, place))
        };
        let serve = async |(stream, place)| {
            let page = Rc::clone(&page);
            tokio::task::spawn_local(async move {
                // A client that is too slow gets no answer. Its connection is closed.
                let _ = timeout(PATIENCE, connection(stream, &*page)).await;
                drop(place);
            });
        };
        accept_each(accept, || (), serve).await;
    }
}

/// Answers one request.
async fn connection(stream: TcpStream, page: &impl Fn() -> Page) {
    let service = service_fn(|request| ready(Ok::<_, Infallible>(answer(&request, page))));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .header_read_timeout(PATIENCE)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = poll_fn(|context| connection.poll_without_shutdown(context)).await {
        tracing::debug!(%error, "a request for figures failed");
    }
    // A client that does not close meanwhile is closed.
    part(&connection.into_parts().io.into_inner(), PARTING, PARTING_BYTES).await;
}

fn answer(request: &Request<Incoming>, page: impl Fn() -> Page) -> Response<Full<Bytes>> {
    if let Some(refusal) = wrong_host(request) {
        return refusal;
    }
    if !METHODS.contains(&request.method().as_str()) {
        return refused(StatusCode::NOT_IMPLEMENTED, format!("{PATH} takes GET and HEAD\n"));
    }
    if request.uri().path() != PATH {
        return refused(StatusCode::NOT_FOUND, format!("the figures are at {PATH}\n"));
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let words = format!("{PATH} takes GET and HEAD\n");
        let mut response = refused(StatusCode::METHOD_NOT_ALLOWED, words);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let format = Format::accepted(request.headers().get_all(ACCEPT));
    let mut response = Response::new(Full::from(page().text(format)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    response
}

/// The answer to a request that does not name this machine. A request of HTTP/1.1 has one Host, and none has two (RFC 9112
/// section 3.2). The host of a target in absolute form counts instead of it (section 3.2.2).
fn wrong_host(request: &Request<Incoming>) -> Option<Response<Full<Bytes>>> {
    let fields: Vec<_> = request.headers().get_all(HOST).iter().collect();
    let is_needed = request.version() != Version::HTTP_10;
    if fields.len() > 1 || (fields.is_empty() && is_needed) {
        return Some(refused(StatusCode::BAD_REQUEST, "a request has one Host\n".to_owned()));
    }
    let field = fields.first().map(|host| host.to_str().unwrap_or_default());
    let host = request.uri().authority().map_or(field, |authority| Some(authority.as_str()));
    if host.is_none_or(is_this_machine) {
        return None;
    }
    let words = "Host has to be an IP address or localhost\n".to_owned();
    Some(refused(StatusCode::MISDIRECTED_REQUEST, words))
}

fn refused(status: StatusCode, words: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(words));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
