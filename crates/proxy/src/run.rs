//! From start to the last thing put back.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet, spawn_local};
use wakeai_host::{Lease, Role, drop_privileges};
use wakeai_kernel::Control;

use crate::algorithm;
use crate::config::Config;
use crate::counters::Report;
use crate::error::ProxyError;
use crate::listen::listen;
use crate::privileges;
use crate::session::{Entry, serve};
use crate::shared::Shared;
use crate::transparent::{self, Taken};

/// Threads that look names up; the rest is done by one.
const RESOLVERS: usize = 4;
/// File descriptors of the process itself.
const OWN_FILES: u64 = 64;
/// After a failure to accept that is not the client's, such as no memory.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What a running proxy tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It listens on these addresses for SOCKS5 and CONNECT; the rules of the transparent mode are
    /// made.
    Listening(Vec<SocketAddr>),
    /// The counts, because they were asked for or because this is the end.
    Report(Report),
}

/// Runs a proxy in the calling thread's network namespace until `shutdown` is ready, and puts
/// everything back. SIGUSR1 asks for a report.
///
/// # Errors
///
/// [`ProxyError`] where it cannot start; then nothing is left changed.
pub fn run(
    config: Config,
    shutdown: impl Future<Output = ()>,
    mut tell: impl FnMut(Event),
) -> Result<(), ProxyError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(RESOLVERS)
        .build()
        .map_err(ProxyError::system("start the event loop"))?;
    let mut lease = None;
    let tasks = LocalSet::new();
    let outcome = tasks.block_on(&runtime, async {
        let mut shutdown = std::pin::pin!(shutdown);
        // Polled once before anything is changed, so that its signal handlers are in place.
        let polled = std::future::poll_fn(|cx| Poll::Ready(shutdown.as_mut().poll(cx)));
        if polled.await.is_ready() {
            return Ok(());
        }
        let mut asked =
            signal(SignalKind::user_defined1()).map_err(ProxyError::system("wait for SIGUSR1"))?;
        let (shared, listeners) = start(config, &mut lease)?;
        if shared.config.confined {
            drop_privileges(&privileges::kept(&shared.config))?;
        }
        let explicit = listeners.iter().filter(|listener| listener.entry == Entry::Explicit);
        tell(Event::Listening(explicit.map(|listener| listener.address).collect()));
        let slots = Arc::new(Semaphore::new(shared.config.connections));
        let mut accepting = JoinSet::new();
        for listener in listeners {
            accepting.spawn_local(accept(Rc::clone(&shared), listener, Arc::clone(&slots)));
        }
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                _ = asked.recv() => tell(Event::Report(shared.counters.report())),
            }
        }
        tell(Event::Report(shared.counters.report()));
        Ok(())
    });
    // Connections first: they use what is put back.
    drop(tasks);
    runtime.shutdown_background();
    for (change, reason) in lease.into_iter().flat_map(|lease| lease.release(&unload)) {
        tracing::warn!(%change, reason, "not put back; the next command does it");
    }
    outcome
}

/// Removes the shared parts, as the last that held them.
fn unload() -> Result<bool, Box<dyn std::error::Error>> {
    match Control::unload() {
        Err(error) if error.is_missing() => {
            // To unmount a bpffs that nobody else uses takes more than a proxy has kept.
            tracing::info!(%error, "left to the next command, or to `wakeai sweep`");
            Ok(true)
        }
        other => other.map_err(Into::into),
    }
}

struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    entry: Entry,
    /// Whether the sources that are allowed matter: not for this machine's own connections.
    checked: bool,
}

fn start(
    mut config: Config,
    lease: &mut Option<Lease>,
) -> Result<(Rc<Shared>, Vec<Listener>), ProxyError> {
    config.connections = within_files(config.connections, &config);
    let targets = algorithm::prepare(&config, lease)?;
    let shared = Rc::new(Shared::new(config, targets));
    let config = &shared.config;
    let mut listeners = Vec::new();
    for &address in &config.listen {
        let failed = |source| ProxyError::Listen { address, source };
        let socket = listen(address, |_| Ok(())).map_err(failed)?;
        listeners.push((socket, Entry::Explicit, true));
    }
    if config.transparent.is_any() {
        if !transparent::is_privileged() {
            return Err(ProxyError::NotPrivileged);
        }
        let lease = match lease {
            Some(lease) => lease,
            None => lease.insert(Lease::take(Role::Command)?),
        };
        for listener in transparent::take_hold(lease, config.transparent, &config.access)? {
            let checked = listener.taken == Taken::Forwarded;
            listeners.push((listener.socket, Entry::Transparent, checked));
        }
    }
    let opened = listeners.into_iter().map(|(socket, entry, checked)| {
        if let Some(name) = shared.client_algorithm() {
            socket.set_tcp_congestion(name.as_bytes())?;
        }
        let socket = TcpListener::from_std(socket.into())?;
        let address = socket.local_addr()?;
        Ok(Listener { socket, address, entry, checked })
    });
    let opened = opened.collect::<Result<_, _>>().map_err(ProxyError::system("listen"))?;
    Ok((Rc::clone(&shared), opened))
}

/// Raises the limit of open files as far as it takes, and returns how many connections there can
/// be then: two files each, and two for each pipe.
fn within_files(connections: usize, config: &Config) -> usize {
    let wanted_connections = connections as u64;
    let pipes = (crate::pipes::most(config.memory) as u64).min(2 * wanted_connections);
    let others = OWN_FILES + 2 * pipes;
    let wanted = 2 * wanted_connections + others;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return connections };
    if soft >= wanted {
        return connections;
    }
    let raise = |files, hard| setrlimit(Resource::RLIMIT_NOFILE, files, hard).map(|()| files);
    let raised = raise(wanted, hard.max(wanted)).or_else(|_| raise(hard.min(wanted), hard));
    let files = raised.unwrap_or(soft);
    if files >= wanted {
        return connections;
    }
    // Where pipes run out, bytes are copied; so they get no more than a quarter.
    let fit = ((files - others.min(files / 4)) / 2).max(1);
    tracing::warn!(files, connections = fit, "the limit of open files allows fewer connections");
    connections.min(usize::try_from(fit).unwrap_or(usize::MAX))
}

async fn accept(shared: Rc<Shared>, listener: Listener, slots: Arc<Semaphore>) {
    loop {
        let (client, from) = match listener.socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        if !is_welcome(&shared, &listener, &client, from) {
            shared.counters.denied_sources.one();
            tracing::debug!(%from, "not allowed");
            continue;
        }
        // While there is no slot, clients wait in the kernel's queue.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let shared = Rc::clone(&shared);
        let entry = listener.entry;
        spawn_local(async move {
            let _present = Present::new(&shared);
            serve(&shared, entry, client, from).await;
            drop(slot);
        });
    }
}

fn is_welcome(shared: &Shared, listener: &Listener, client: &TcpStream, from: SocketAddr) -> bool {
    if listener.checked && !shared.config.access.allows_source(from.ip()) {
        return false;
    }
    // Who asks a transparent listener for itself came around the rules, and would go in circles.
    listener.entry == Entry::Explicit || client.local_addr().is_ok_and(|to| to != listener.address)
}

/// Counts a connection while it is there.
struct Present<'a>(&'a Shared);

impl<'a> Present<'a> {
    fn new(shared: &'a Shared) -> Self {
        let counters = &shared.counters;
        counters.accepted.one();
        counters.active.one();
        let more = counters.active.get().saturating_sub(counters.most_active.get());
        counters.most_active.add(more);
        Self(shared)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.counters.active.less_one();
    }
}
