//! Accepts connections, and serves the requests of each.

use std::rc::Rc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;

use super::connections::{Busy, Connections, Open, Place};
use super::server::Server;
use super::service::handle;

/// The pause after an accept that failed because memory or file descriptors were short.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// The time to send an answer that was made just before the server stops.
const LAST_ANSWER: Duration = Duration::from_millis(100);
/// The largest number of header fields in a request.
const HEADERS: usize = 64;

/// The largest buffer of a connection, in bytes, if `open` connections are open. It limits each read of a body, and a
/// request's head before it is parsed. A connection may have three buffers for a moment.
fn buffer_bytes(open: usize) -> usize {
    match open {
        ..=16 => 256 << 10,
        _ => 32 << 10,
    }
}

/// The number of connections up to which the kernel chooses the size of a receive buffer, in most cases up to 6 MB.
const LARGE_RECEIVE_BUFFERS: usize = 64;
/// The size of the receive buffer of each further connection, in bytes. 64 connections can still have 1 Gbit/s over 100 ms,
/// and 512 connections that wait for the disk do not take gigabytes of the kernel's memory. To fill so much memory would
/// also take most of the processors' time at the start of many uploads.
const RECEIVE_BUFFER: usize = 208 << 10;

/// Accepts connections and serves each, without end.
pub(crate) async fn accept(
    server: Rc<Server>,
    listener: TcpListener,
    connections: Rc<Connections>,
    acceptor: Option<TlsAcceptor>,
) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "cannot accept");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        loop {
            match connections.admit(from.ip()) {
                Ok(open) => {
                    let connection =
                        connection(Rc::clone(&server), stream, Place(open), acceptor.clone());
                    spawn_local(connection);
                    break;
                }
                Err(Busy::Client) => {
                    server.counters.over_share.one();
                    break;
                }
                // Meanwhile further clients wait in the kernel's queue.
                Err(Busy::All) => connections.freed().await,
            }
        }
    }
}

async fn connection(
    server: Rc<Server>,
    stream: TcpStream,
    place: Place,
    acceptor: Option<TlsAcceptor>,
) {
    let counters = &server.counters;
    server.open.send_modify(|open| *open += 1);
    counters.accepted.one();
    counters.active.one();
    counters.most_active.add(counters.active.get().saturating_sub(counters.most_active.get()));
    let _ = stream.set_nodelay(true);
    if *server.open.borrow() > LARGE_RECEIVE_BUFFERS {
        let _ = SockRef::from(&stream).set_recv_buffer_size(RECEIVE_BUFFER);
    }
    let patience: Duration = server.config.limits.head_timeout.into();
    let mut stopping = server.stopping.subscribe();
    match acceptor {
        None => requests(&server, stream, &place.0).await,
        Some(acceptor) => {
            let handshake = tokio::time::timeout(patience, acceptor.accept(stream));
            tokio::select! {
                done = handshake => match done {
                    Ok(Ok(stream)) => requests(&server, stream, &place.0).await,
                    _ => counters.failed_handshakes.one(),
                },
                () = place.0.close.notified() => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        }
    }
    counters.active.less_one();
    server.open.send_modify(|open| *open -= 1);
}

/// Serves the requests of one connection.
async fn requests(
    server: &Rc<Server>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    open: &Rc<Open>,
) {
    let mut stopping = server.stopping.subscribe();
    let service = service_fn(|request| {
        let (server, open) = (Rc::clone(server), Rc::clone(open));
        async move {
            open.is_busy();
            let answer = handle(server, request).await;
            open.is_idle();
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from(server.config.limits.head_timeout))
        .max_buf_size(buffer_bytes(*server.open.borrow()))
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended");
                    server.counters.broken.one();
                }
                return;
            }
            () = open.close.notified() => return,
            _ = stopping.wait_for(|stopping| *stopping), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
                if open.has_no_request() {
                    // The last answer may still be on its way. A request whose head is incomplete is dropped.
                    let _ = tokio::time::timeout(LAST_ANSWER, connection.as_mut()).await;
                    return;
                }
            }
        }
    }
}
