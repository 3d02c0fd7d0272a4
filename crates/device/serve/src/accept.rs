//! Accepts connections, and serves the requests of each.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;
use wakeai_daemon::{Busy, accept_each, part};

use super::connections::{ConnectionPlace, Connections, Open};
use super::server::UploadServer;
use super::service::handle;

/// The time to send an answer that was made just before the server stops.
const LAST_ANSWER: Duration = Duration::from_millis(100);
/// The longest time, and the most bytes, for which a connection is read after its last answer. A client that watches for
/// answers while it sends needs a round trip and the buffers of both ends; one that only looks after it has sent has some time
/// for that.
const LINGER_TIME: Duration = Duration::from_secs(5);
const LINGER_BYTES: usize = 256 << 20;
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
    server: Rc<UploadServer>,
    listener: TcpListener,
    connections: Rc<Connections>,
    acceptor: Option<TlsAcceptor>,
) {
    let serve = async |(stream, from): (TcpStream, SocketAddr)| loop {
        match connections.admit(from.ip()) {
            Ok(open) => {
                let (server, acceptor) = (Rc::clone(&server), acceptor.clone());
                spawn_local(connection(server, stream, ConnectionPlace(open), acceptor));
                break;
            }
            Err(Busy::OverShare) => break server.counters.over_share.one(),
            // Meanwhile further clients wait in the kernel's queue.
            Err(Busy::Full) => connections.freed().await,
        }
    };
    accept_each(|| listener.accept(), || (), serve).await;
}

async fn connection(
    server: Rc<UploadServer>,
    stream: TcpStream,
    place: ConnectionPlace,
    acceptor: Option<TlsAcceptor>,
) {
    let counters = &server.counters;
    server.open.send_modify(|open| *open += 1);
    counters.accepted.one();
    counters.active.one();
    counters.most_active.raise_to(counters.active.get());
    let _ = stream.set_nodelay(true);
    if *server.open.borrow() > LARGE_RECEIVE_BUFFERS {
        let _ = SockRef::from(&stream).set_recv_buffer_size(RECEIVE_BUFFER);
    }
    let patience: Duration = server.config.limits.head_timeout.into();
    let mut stopping = server.stopping.subscribe();
    let mut left = None;
    match acceptor {
        None => left = requests(&server, stream, &place.0).await,
        Some(acceptor) => {
            let handshake = tokio::time::timeout(patience, acceptor.accept(stream));
            tokio::select! {
                done = handshake => match done {
                    Ok(Ok(stream)) => {
                        let stream = requests(&server, stream, &place.0).await;
                        left = stream.map(|stream| stream.into_inner().0);
                    }
                    _ => counters.failed_handshakes.one(),
                },
                () = place.0.close.notified() => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        }
    }
    if let Some(stream) = left {
        tokio::select! {
            () = part(&stream, LINGER_TIME, LINGER_BYTES) => {}
            () = place.0.close.notified() => {}
        }
    }
    counters.active.less_one();
    server.open.send_modify(|open| *open -= 1);
}

/// Serves the requests of one connection. Returns the stream if the client may still send what nobody reads.
async fn requests<S: AsyncRead + AsyncWrite + Unpin>(
    server: &Rc<UploadServer>,
    stream: S,
    open: &Rc<Open>,
) -> Option<S> {
    let mut stopping = server.stopping.subscribe();
    let service = service_fn(|request| {
        let (server, open) = (Rc::clone(server), Rc::clone(open));
        Box::pin(async move {
            open.set_busy();
            let answer = handle(server, Rc::clone(&open), request).await;
            open.set_idle();
            answer
        })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from(server.config.limits.head_timeout))
        .max_buf_size(buffer_bytes(*server.open.borrow()))
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut is_stopping = false;
    let has_unread = loop {
        tokio::select! {
            ended = poll_fn(|context| connection.poll_without_shutdown(context)) => {
                let Err(error) = ended else { break open.has_unread.get() };
                tracing::debug!(%error, "a connection ended");
                server.counters.broken.one();
                break error.is_parse() || open.has_unread.get();
            }
            () = open.close.notified() => return None,
            _ = stopping.wait_for(|stopping| *stopping), if !is_stopping => {
                is_stopping = true;
                std::pin::Pin::new(&mut connection).graceful_shutdown();
                if open.has_no_request() {
                    // The last answer may still be on its way. A request whose head is incomplete is dropped.
                    let last = poll_fn(|context| connection.poll_without_shutdown(context));
                    let _ = tokio::time::timeout(LAST_ANSWER, last).await;
                    break false;
                }
            }
        }
    };
    let mut stream = connection.into_parts().io.into_inner();
    let shut = tokio::time::timeout(LAST_ANSWER, stream.shutdown()).await;
    (has_unread && matches!(shut, Ok(Ok(())))).then_some(stream)
}
