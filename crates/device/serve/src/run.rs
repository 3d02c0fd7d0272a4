//! Starts a server, serves its clients, and stops.

use std::future::Future;
use std::io;
use std::net::{self, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio_rustls::TlsAcceptor;
use wakeai_daemon::metrics::Endpoint;
use wakeai_daemon::{BACKLOG, event_loop, listen, raise_open_files};

use super::accept::accept;
use super::config::ServeConfig;
use super::connections::Connections;
use super::counters::Report;
use super::error::ServeError;
use super::figures::page;
use super::files::Directory;
use super::server::UploadServer;
use super::store::Store;
use super::sweep::{sweep, watch};
use super::tls;
use super::tokens::Tokens;

/// The number of threads that wait for the disk.
const DISK_THREADS: usize = 64;
/// The time for received bytes to reach the disk when the server stops.
const STOP_TIME: Duration = Duration::from_secs(10);
/// The time for clients to receive their last answers when the server stops.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// The number of open files of the server itself.
const OWN_FILES: u64 = 64;
/// The number of open files per connection: its socket and the file of an upload.
const FILES_PER_CONNECTION: u64 = 2;

/// A report of a running server to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServeEvent {
    /// The server listens on this address.
    Listening(SocketAddr),
    /// The counts, on request or at the end.
    Report(Report),
}

/// Runs a server until `shutdown` is ready. The bytes that clients have sent by then are kept. Upon SIGUSR1 the server
/// reports its counts.
///
/// # Errors
///
/// The server cannot start.
pub fn run(
    config: ServeConfig,
    shutdown: impl Future<Output = ()>,
    mut tell: impl FnMut(ServeEvent),
) -> Result<(), ServeError> {
    check(&config)?;
    let acceptor = config.tls.as_ref().map(tls::acceptor).transpose()?;
    let tokens = config.tokens.as_deref().map(Tokens::read).transpose()?;
    let path = &config.directory;
    let failed = |source: io::Error| match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EWOULDBLOCK) => ServeError::Held(path.clone()),
        _ => ServeError::Directory { path: path.clone(), source },
    };
    let directory = Directory::open(path).map_err(failed)?;
    let store = Store::open(directory, &config.limits).map_err(failed)?;
    let endpoint = config.metrics.map(Endpoint::bind).transpose()?;
    let socket = listen(config.listen, BACKLOG, |_| Ok(()))
        .map_err(|source| ServeError::Listen { address: config.listen, source })?;
    let runtime = event_loop(DISK_THREADS).map_err(ServeError::system("start the event loop"))?;
    raise_files(config.limits.connections);
    let server = Rc::new(UploadServer::new(config, tokens, store));
    let tasks = LocalSet::new();
    let outcome =
        tasks.block_on(&runtime, serve(&server, socket, endpoint, acceptor, shutdown, &mut tell));
    drop(tasks);
    runtime.shutdown_timeout(STOP_TIME);
    outcome
}

/// Raises the limit of open files as far as the connections need and the system allows.
fn raise_files(connections: usize) {
    let wanted = OWN_FILES + FILES_PER_CONNECTION * connections as u64;
    let files = raise_open_files(wanted);
    if files < wanted {
        tracing::warn!(files, wanted, "the limit of open files is lower than the connections need");
    }
}

/// Refuses to serve other machines without TLS and tokens.
fn check(config: &ServeConfig) -> Result<(), ServeError> {
    let address = config.listen;
    if address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    if config.tls.is_none() {
        return Err(ServeError::NeedsTls(address));
    }
    if config.tokens.is_none() {
        return Err(ServeError::NeedsTokens(address));
    }
    Ok(())
}

async fn serve(
    server: &Rc<UploadServer>,
    socket: net::TcpListener,
    endpoint: Option<Endpoint>,
    acceptor: Option<TlsAcceptor>,
    shutdown: impl Future<Output = ()>,
    tell: &mut impl FnMut(ServeEvent),
) -> Result<(), ServeError> {
    let mut asked =
        signal(SignalKind::user_defined1()).map_err(ServeError::system("wait for SIGUSR1"))?;
    // A write beyond the limit of a file's size raises this signal, which would end the process. With a handler, the
    // write fails with an error instead.
    let _too_large = signal(SignalKind::from_raw(Signal::SIGXFSZ as i32))
        .map_err(ServeError::system("handle SIGXFSZ"))?;
    let listener = TcpListener::from_std(socket).map_err(ServeError::system("listen"))?;
    let address = listener.local_addr().map_err(ServeError::system("listen"))?;
    let limits = &server.config.limits;
    let connections = Connections::new(limits.connections, limits.client_connections);
    let mut serving = JoinSet::new();
    serving.spawn_local(sweep(Rc::clone(server)));
    serving.spawn_local(watch(Rc::clone(server)));
    if let Some(endpoint) = endpoint {
        let (server, connections) = (Rc::clone(server), Rc::clone(&connections));
        serving.spawn_local(endpoint.serve(move || page(&server, &report(&server, &connections))));
    }
    serving.spawn_local(accept(Rc::clone(server), listener, Rc::clone(&connections), acceptor));
    let mut shutdown = std::pin::pin!(shutdown);
    tell(ServeEvent::Listening(address));
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            _ = asked.recv() => tell(ServeEvent::Report(report(server, &connections))),
        }
    }
    serving.shutdown().await;
    server.stopping.send_replace(true);
    // What was received is written to disk first, so that clients can resume these uploads later. Then
    // the last answers are sent.
    if !is_zero(&server.bodies, STOP_TIME).await {
        tracing::warn!("not every received byte was stored in time");
    }
    if !is_zero(&server.open, ANSWER_TIME).await {
        tracing::debug!("not every client has closed its connection");
    }
    tell(ServeEvent::Report(report(server, &connections)));
    Ok(())
}

/// Waits until none is left. Returns whether that was so in time.
async fn is_zero(left: &watch::Sender<usize>, time: Duration) -> bool {
    let mut left = left.subscribe();
    tokio::time::timeout(time, left.wait_for(|left| *left == 0)).await.is_ok()
}

fn report(server: &UploadServer, connections: &Connections) -> Report {
    Report { evicted: connections.evicted.get(), ..server.counters.report() }
}
