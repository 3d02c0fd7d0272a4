//! Starts a server, serves its clients, and stops.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinSet, LocalSet};
use tokio_rustls::TlsAcceptor;

use super::config::Config;
use super::connections::{Busy, Connections, Open, Place};
use super::counters::Report;
use super::error::ServeError;
use super::files::Directory;
use super::server::Server;
use super::service::handle;
use super::store::Store;
use super::sweep::sweep;
use super::tls;
use super::tokens::Tokens;

/// The length of the accept queue; the kernel limits it to `net.core.somaxconn`.
const BACKLOG: i32 = 1024;
/// The pause after an accept that failed because memory or file descriptors were short.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// The threads that wait for the disk.
const DISK_THREADS: usize = 16;
/// The most bytes of a request's head, and of what is read of a body at a time.
const BUFFER_BYTES: usize = 1 << 16;
/// The most header fields of a request.
const HEADERS: usize = 64;
/// The time for bodies and answers at the end.
const STOP_TIME: Duration = Duration::from_secs(10);

/// A report of a running server to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server listens on this address.
    Listening(SocketAddr),
    /// The counts, on request or at the end.
    Report(Report),
}

/// Runs a server until `shutdown` is ready. What clients have sent by then is kept. Upon SIGUSR1 it reports its counts.
///
/// # Errors
///
/// The server cannot start.
pub fn run(
    config: Config,
    shutdown: impl Future<Output = ()>,
    mut tell: impl FnMut(Event),
) -> Result<(), ServeError> {
    check(&config)?;
    let acceptor = config.tls.as_ref().map(tls::acceptor).transpose()?;
    let tokens = config.tokens.as_deref().map(Tokens::read).transpose()?;
    let path = &config.directory;
    let failed = |source: io::Error| match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EWOULDBLOCK) => ServeError::Held { path: path.clone() },
        _ => ServeError::Directory { path: path.clone(), source },
    };
    let directory = Directory::open(path).map_err(failed)?;
    let store = Store::open(directory, &config.limits).map_err(failed)?;
    let socket = listen(config.listen)
        .map_err(|source| ServeError::Listen { address: config.listen, source })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(DISK_THREADS)
        .build()
        .map_err(ServeError::system("start the event loop"))?;
    let server = Rc::new(Server::new(config, tokens, store));
    let tasks = LocalSet::new();
    let outcome = tasks.block_on(&runtime, serve(&server, socket, acceptor, shutdown, &mut tell));
    drop(tasks);
    runtime.shutdown_timeout(STOP_TIME);
    outcome
}

/// Refuses to serve other machines without TLS and tokens.
fn check(config: &Config) -> Result<(), ServeError> {
    let address = config.listen;
    if address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    if config.tls.is_none() {
        return Err(ServeError::NeedsTls { address });
    }
    if config.tokens.is_none() {
        return Err(ServeError::NeedsTokens { address });
    }
    Ok(())
}

fn listen(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

async fn serve(
    server: &Rc<Server>,
    socket: Socket,
    acceptor: Option<TlsAcceptor>,
    shutdown: impl Future<Output = ()>,
    tell: &mut impl FnMut(Event),
) -> Result<(), ServeError> {
    let mut asked =
        signal(SignalKind::user_defined1()).map_err(ServeError::system("wait for SIGUSR1"))?;
    let listener = TcpListener::from_std(socket.into()).map_err(ServeError::system("listen"))?;
    let address = listener.local_addr().map_err(ServeError::system("listen"))?;
    let limits = &server.config.limits;
    let connections = Connections::new(limits.connections, limits.client_connections);
    let mut open = JoinSet::new();
    let mut sweeping = JoinSet::new();
    sweeping.spawn_local(sweep(Rc::clone(server)));
    let mut shutdown = std::pin::pin!(shutdown);
    tell(Event::Listening(address));
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            _ = asked.recv() => tell(Event::Report(report(server, &connections))),
            Some(_) = open.join_next(), if !open.is_empty() => {}
            (stream, place) = accept(server, &listener, &connections) => {
                open.spawn_local(connection(Rc::clone(server), stream, place, acceptor.clone()));
            }
        }
    }
    drop(listener);
    sweeping.abort_all();
    server.stopping.send_replace(true);
    let stopped = tokio::time::timeout(STOP_TIME, async {
        let mut bodies = server.bodies.subscribe();
        let _ = bodies.wait_for(|bodies| *bodies == 0).await;
        while open.join_next().await.is_some() {}
    });
    if stopped.await.is_err() {
        tracing::warn!("a client did not take its last answer");
    }
    tell(Event::Report(report(server, &connections)));
    Ok(())
}

fn report(server: &Server, connections: &Connections) -> Report {
    Report { evicted: connections.evicted.get(), ..server.counters.report() }
}

/// The next connection that has a place.
async fn accept(
    server: &Server,
    listener: &TcpListener,
    connections: &Rc<Connections>,
) -> (TcpStream, Place) {
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
                Ok(open) => return (stream, Place(open)),
                Err(Busy::Client) => {
                    server.counters.over_share.one();
                    break;
                }
                // Further clients wait in the kernel's queue meanwhile.
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
    counters.accepted.one();
    counters.active.one();
    counters.most_active.add(counters.active.get().saturating_sub(counters.most_active.get()));
    let _ = stream.set_nodelay(true);
    let patience: Duration = server.config.limits.head_timeout.into();
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
            }
        }
    }
    counters.active.less_one();
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
        .max_buf_size(BUFFER_BYTES)
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
            }
        }
    }
}
