//! Starts a proxy, serves its clients, and undoes its changes on the host.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::rc::Rc;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::User;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinSet, LocalSet, spawn_local};
use tokio::time::MissedTickBehavior;
use wakeai_daemon::metrics::Endpoint;
use wakeai_daemon::{Busy, Client, Shares, accept_each, event_loop, is_over, raise_open_files};
use wakeai_host::{
    Capability, Drift, LOST_STATUS, Lease, LeaseError, RoutingError, Told, Watch, become_user,
    block_signals, drop_privileges, serving_user,
};
use wakeai_kernel::{Bounded, Control, release};

use crate::algorithm;
use crate::config::{Config, Intercepted};
use crate::counters::Report;
use crate::error::ProxyError;
use crate::figures::page;
use crate::listen::{Listener, listen};
use crate::obstacles;
use crate::session;
use crate::shared::{ATTEMPTS, LOOKUPS, Shared, Slot};
use crate::transparent;

/// The address on which a proxy listens by default.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1080));
/// The number of file descriptors that the process itself, its name lookups and its attempts at
/// further addresses need.
const OWN_FILES: u64 = 128 + ATTEMPTS as u64;
/// The time between two looks at what the proxy holds on the host.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A report of a running proxy to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The proxy listens on these addresses for SOCKS5 and CONNECT, and the rules of the
    /// transparent mode exist.
    Listening(Vec<SocketAddr>),
    /// The counts, on request or at the end.
    Report(Report),
}

/// Runs a proxy in the calling thread's network namespace until `shutdown` is ready, and then
/// undoes its changes. Upon SIGUSR1 it reports its counts.
///
/// # Errors
///
/// The proxy cannot start. Every change is then undone.
pub fn run(
    config: Config,
    shutdown: impl Future<Output = ()>,
    mut tell: impl FnMut(Event),
) -> Result<(), ProxyError> {
    check(&config)?;
    let user = config.user.as_deref().map(serving_user).transpose()?;
    // Signals are blocked until their handlers are installed, so that each signal leads to an
    // orderly end.
    let mask = block_signals()?;
    let mut lease = None;
    let outcome = start(config, &mut lease).and_then(|started| match (user, &lease) {
        (Some(user), Some(lease)) => serve_apart(&user, lease, started, mask, shutdown, &mut tell),
        (user, lease) => {
            let config = &started.shared.config;
            if let Some(user) = user {
                become_user(user.uid, user.gid)?;
                drop_privileges(&to_serve(config))?;
            } else if config.confined {
                drop_privileges(&to_undo(config))?;
            }
            let mut watch = lease.as_ref().map(|lease| (Watch::new(lease), lease));
            let mut look = || match &mut watch {
                Some((watch, lease)) => watch.look(lease, &registered),
                None => Vec::new(),
            };
            serve_all(started, mask, shutdown, &mut tell, &mut look)
        }
    });
    for (change, reason) in lease.into_iter().flat_map(release) {
        tracing::warn!(%change, reason, "this change was not undone; the next command of wakeai undoes it");
    }
    let _ = mask.thread_set_mask();
    outcome
}

/// Serves as this user in a second process. The calling process keeps the lease meanwhile.
fn serve_apart(
    user: &User,
    lease: &Lease,
    started: Started,
    mask: SigSet,
    shutdown: impl Future<Output = ()>,
    tell: &mut impl FnMut(Event),
) -> Result<(), ProxyError> {
    let config = &started.shared.config;
    let (to_serve, to_undo) = (to_serve(config), to_undo(config));
    let serve = |told: &Told| {
        let served = serve_all(started, mask, shutdown, tell, &mut || told.take());
        let Err(error) = served else { return 0 };
        tracing::error!(%error, "the serving process ends");
        if error.is_lost() { LOST_STATUS } else { 1 }
    };
    let kept: [&[_]; 2] = [&to_serve, &to_undo];
    Ok(wakeai_host::serve_apart(Some(user), lease, kept, &registered, Signal::SIGKILL, serve)?)
}

/// Whether the algorithms are still registered.
fn registered() -> Result<(), String> {
    Control::check_registered().map_err(|error| error.to_string())
}

/// Refuses contradictory options before anything is changed.
fn check(config: &Config) -> Result<(), ProxyError> {
    let listed = !config.access.from.is_empty() && !config.access.to.is_empty();
    match (config.intercepts(Intercepted::Forwarded), config.in_interfaces.is_empty()) {
        (true, true) if !listed => Err(ProxyError::ForwardedFromAnywhere),
        (false, false) => Err(ProxyError::NothingForwarded),
        _ => Ok(()),
    }
}

/// Serves until `shutdown` is ready, and then closes every connection. `look` tells what other
/// programs have changed of what the proxy holds. The proxy ends where it is not put back: its
/// clients' connections would hang or go past it.
fn serve_all(
    started: Started,
    mask: SigSet,
    shutdown: impl Future<Output = ()>,
    tell: &mut impl FnMut(Event),
    look: &mut dyn FnMut() -> Vec<Drift>,
) -> Result<(), ProxyError> {
    let runtime = event_loop(LOOKUPS).map_err(ProxyError::system("start the event loop"))?;
    let tasks = LocalSet::new();
    let outcome = tasks.block_on(&runtime, async {
        let mut asked =
            signal(SignalKind::user_defined1()).map_err(ProxyError::system("wait for SIGUSR1"))?;
        let mut shutdown = std::pin::pin!(shutdown);
        let is_over = is_over(shutdown.as_mut()).await;
        mask.thread_set_mask()
            .map_err(|errno| ProxyError::system("take signals again")(errno.into()))?;
        if is_over {
            return Ok(());
        }
        let Started { shared, listeners, endpoint } = started;
        tell(Event::Listening(shared.listening.clone()));
        let _accepting = accept_all(&shared, listeners, endpoint)?;
        let mut looks = tokio::time::interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let lost = loop {
            tokio::select! {
                () = &mut shutdown => break None,
                _ = asked.recv() => tell(Event::Report(shared.counters.report())),
                _ = looks.tick() => {
                    let lost = shared.take_in(look());
                    if lost.is_some() {
                        break lost;
                    }
                }
            }
        };
        tell(Event::Report(shared.counters.report()));
        lost.map_or(Ok(()), |drift| Err(ProxyError::Lost(Box::new(drift))))
    });
    // Connections end first, because they use the rules and algorithms that are removed afterwards.
    drop(tasks);
    runtime.shutdown_background();
    outcome
}

/// Starts a task for each listener, and one for the metrics. They end when the set is dropped.
fn accept_all(
    shared: &Rc<Shared>,
    listeners: Vec<Listener>,
    endpoint: Option<Endpoint>,
) -> Result<JoinSet<()>, ProxyError> {
    // A slot is the right to one connection. Explicit clients, which name their destination, have
    // other slots than intercepted clients, so that neither kind can use up those of the other.
    let is_explicit = |listener: &Listener| listener.intercepted.is_none();
    let has_both = listeners.iter().any(is_explicit) && !listeners.iter().all(is_explicit);
    let total = shared.config.connections;
    let each = if has_both { total.div_ceil(2) } else { total };
    let (explicit, transparent) = (Shares::new(each, None), Shares::new(each, None));
    let mut accepting = JoinSet::new();
    if let Some(endpoint) = endpoint {
        let mut slots = vec![("explicit", explicit.clone()), ("transparent", transparent.clone())];
        slots.retain(|(kind, _)| {
            listeners.iter().any(|one| is_explicit(one) == (*kind == "explicit"))
        });
        let shared = Rc::clone(shared);
        accepting.spawn_local(endpoint.serve(move || page(&shared, &slots)));
    }
    for Listener { socket, address, intercepted } in listeners {
        let failed = ProxyError::system("listen");
        let socket = TcpListener::from_std(socket).map_err(failed)?;
        let slots = if intercepted.is_some() { &transparent } else { &explicit }.clone();
        let listener = Listener { socket, address, intercepted };
        accepting.spawn_local(accept(Rc::clone(shared), listener, slots));
    }
    Ok(accepting)
}

/// The state that a start with all privileges creates. Serving then uses it with fewer privileges.
struct Started {
    shared: Rc<Shared>,
    listeners: Vec<Listener>,
    /// The socket at which Prometheus reads the metrics.
    endpoint: Option<Endpoint>,
}

fn start(mut config: Config, lease: &mut Option<Lease>) -> Result<Started, ProxyError> {
    if config.listen.is_empty() && config.transparent.is_empty() {
        config.listen.push(DEFAULT_LISTEN);
    }
    config.connections = within_files(config.connections, &config);
    let endpoint = config.metrics.map(Endpoint::bind).transpose()?;
    let targets = algorithm::prepare(&config, lease)?;
    let mut shared = Shared::new(config, targets);
    let config = &shared.config;
    let mut listeners = Vec::new();
    for &address in &config.listen {
        listeners.push(listen(address, None, |_| Ok(()))?);
    }
    let listening = listeners.iter().map(|listener| listener.address).collect();
    if !config.transparent.is_empty() {
        if !transparent::is_privileged() {
            return Err(ProxyError::NotPrivileged);
        }
        let taken = transparent::intercept(algorithm::lease(lease)?, config);
        listeners.extend(taken.map_err(named)?);
        obstacles::check(config)?;
    }
    for listener in &listeners {
        if let Some(name) = shared.client_algorithm() {
            let set = SockRef::from(&listener.socket).set_tcp_congestion(name.as_bytes());
            set.map_err(ProxyError::system("listen"))?;
        }
    }
    shared.listening = listening;
    Ok(Started { shared: Rc::new(shared), listeners, endpoint })
}

/// Only one transparent proxy per network namespace can own the routing entry. If another process owns
/// it, this replaces the general error of the lease by [`ProxyError::Runs`].
fn named(error: ProxyError) -> ProxyError {
    match error {
        ProxyError::Routing(RoutingError::Lease(LeaseError::Held { pid, .. })) => {
            ProxyError::Runs(pid.pid)
        }
        error => error,
    }
}

/// Raises the limit of open files as far as needed. Returns the number of connections that the
/// limit allows: each connection needs two files, and each pipe two.
fn within_files(connections: usize, config: &Config) -> usize {
    let wanted_connections = connections as u64;
    let pipes = (crate::pipes::most(config.memory) as u64).min(2 * wanted_connections);
    let others = OWN_FILES + 2 * pipes;
    let wanted = 2 * wanted_connections + others;
    let files = raise_open_files(wanted);
    if files >= wanted {
        return connections;
    }
    // Pipes get at most a quarter of the files, because bytes can be copied without them.
    let fit = ((files - others.min(files / 4)) / 2).max(1);
    tracing::warn!(files, connections = fit, "the limit of open files allows fewer connections");
    connections.min(usize::try_from(fit).unwrap_or(usize::MAX))
}

async fn accept(shared: Rc<Shared>, listener: Listener<TcpListener>, slots: Shares) {
    let serve = async |(client, from): (TcpStream, SocketAddr)| {
        if !is_welcome(&shared, &listener, &client, from) {
            shared.counters.denied_sources.one();
            tracing::debug!(%from, "this source is not allowed");
            return;
        }
        let share = loop {
            match slots.try_take(Client::at(from.ip())) {
                Ok(share) => break share,
                Err(Busy::OverShare) => {
                    shared.counters.over_share.one();
                    tracing::debug!(%from, "this client holds its share of the connections");
                    return;
                }
                // While no slot is free, further clients wait in the kernel's queue.
                Err(Busy::Full) => slots.given_back().await,
            }
        };
        let slot = Rc::new(Slot::new(&shared, share));
        let intercepted = listener.intercepted;
        spawn_local(async move { session::serve(&slot, intercepted, client, from).await });
    };
    let failed = || shared.counters.accept_failures.one();
    accept_each(|| listener.socket.accept(), failed, serve).await;
}

fn is_welcome(
    shared: &Shared,
    listener: &Listener<TcpListener>,
    client: &TcpStream,
    from: SocketAddr,
) -> bool {
    // Connections that this machine opens itself need not be on the access list.
    if listener.intercepted != Some(Intercepted::Own)
        && !shared.config.access.allows_source(from.ip())
    {
        return false;
    }
    // A client can also connect directly to a transparent listener's address, without being
    // redirected by the nftables rules. Such a connection is refused, because the proxy would take that address for the destination and connect to itself.
    listener.intercepted.is_none() || client.local_addr().is_ok_and(|to| to != listener.address)
}

/// The capabilities for serving connections and for undoing all changes at the end.
fn to_undo(config: &Config) -> Vec<Capability> {
    let mut kept = to_serve(config);
    // CAP_BPF and CAP_PERFMON unload the algorithms, if this proxy is the last process that uses
    // them.
    if config.algorithm.as_deref().and_then(Bounded::named).is_some() {
        kept.extend([Capability::CAP_BPF, Capability::CAP_PERFMON]);
    }
    kept
}

/// The capabilities for serving connections.
fn to_serve(config: &Config) -> Vec<Capability> {
    let mut kept = Vec::new();
    let transparent = !config.transparent.is_empty();
    // CAP_NET_ADMIN allows restricted congestion controls, foreign addresses and marks. nft(8) and
    // ip(8) need it when they undo the changes at the end.
    if transparent || config.algorithm.is_some() {
        kept.push(Capability::CAP_NET_ADMIN);
    }
    // A client's port may be below 1024, and the proxy uses the same port towards the destination.
    if transparent {
        kept.push(Capability::CAP_NET_BIND_SERVICE);
    }
    // Target rates are written into a BPF map.
    if !config.rates.is_empty() {
        kept.push(Capability::CAP_BPF);
    }
    kept
}
