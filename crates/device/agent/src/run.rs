//! The life of an agent: it starts, runs its event loop, and undoes all its changes at the end.

use std::cell::Cell;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration as Wait;

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::User;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use wakeai_api::Transfer;
use wakeai_api::config::{Config, Group};
use wakeai_daemon::metrics::Endpoint;
use wakeai_daemon::{NotifyState, is_over, notify};
use wakeai_host::{
    Capability, DEFAULT_ALGORITHM, Guard, Lease, MakeError, NetnsId, OtherChange, Role, Told,
    WatchOthers, block_signals, check_socket_path, holders, read_sysctl, require_privileges,
    serving_user, set_sysctl, since_boot,
};
use wakeai_kernel::{
    Bounded, Control, EgressHook, Snapshotter, SupervisedBounds, move_connections, netns_cookie,
    parts, prepare_to_move, receive_windows, release,
};

use crate::actuator::Actuator;
use crate::controller::AssociatedController;
use crate::datagrams::Datagrams;
use crate::departures::Departures;
use crate::distributions::Distributions;
use crate::error::AgentError;
use crate::exchange::exchange;
use crate::identity;
use crate::interface::Interface;
use crate::key::GroupKeys;
use crate::metrics::page;
use crate::report::Report;
use crate::server::Server;
use crate::station::{Clients, Health, Kernel, Network, Radio, Station, open_presence};
use crate::transfers::Transfers;
use crate::versions::OtherVersions;
use crate::wifi::{Association, Wifi, WifiError};

/// The capabilities that the agent keeps after its start. It needs them for its BPF programs and
/// for the network settings of its namespace. It gives up all other capabilities while it has only
/// one thread.
const KEPT_CAPABILITIES: [Capability; 3] =
    [Capability::CAP_BPF, Capability::CAP_PERFMON, Capability::CAP_NET_ADMIN];
/// The time between two queries of nl80211.
const WIFI_INTERVAL: Wait = Wait::from_secs(1);

/// Runs the agent of the calling thread's network namespace until `shutdown` is ready. Then undoes
/// the agent's changes. The agent serves in a second process: as the user of that name, if `user` is given. The process
/// must have only one thread. It gives up most privileges permanently.
///
/// # Errors
/// [`AgentError`] if the agent cannot start. All changes are undone in this case.
pub fn run(
    config: Config,
    user: Option<&str>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), AgentError> {
    let user = user.map(serving_user).transpose()?;
    // Signals are blocked until their handlers are installed, so that each signal leads to an orderly end.
    let mask = block_signals()?;
    let outcome = start(config, user.as_ref(), mask, shutdown);
    let _ = mask.thread_set_mask(); // cannot fail: this mask was valid before
    outcome
}

/// The agent's event loop. Nothing in it blocks, and privileges can be given up only in one thread.
pub(crate) fn event_loop() -> Result<tokio::runtime::Runtime, AgentError> {
    wakeai_daemon::event_loop(1).map_err(AgentError::system("start the event loop"))
}

/// Checks that the socket of the local API can be made at the configured path. The socket of a
/// running agent at this path is not an error.
///
/// # Errors
/// [`MakeError`], which says what exists at this path.
pub(crate) fn check_socket(config: &Config) -> Result<(), MakeError> {
    let Some(path) = &config.api.socket else { return Ok(()) };
    match check_socket_path(path) {
        Err(MakeError::Listened(_)) if is_an_agents(path) => Ok(()),
        other => other,
    }
}

/// Whether a running agent listens at `path`. The result is also true if the leases (the records of
/// changes) cannot be read.
fn is_an_agents(path: &Path) -> bool {
    let Ok(holders) = holders() else { return true };
    let agents = holders.iter().filter(|holder| matches!(holder.role, Role::Agent { .. }));
    agents.flat_map(|holder| &holder.changes).any(|change| change.socket() == Some(path))
}

fn start(
    config: Config,
    user: Option<&User>,
    mask: SigSet,
    shutdown: impl Future<Output = ()>,
) -> Result<(), AgentError> {
    require_privileges("the agent", &KEPT_CAPABILITIES)?;
    let key = GroupKeys::load(&config.key_file)?;
    let interface = Interface::find(&config.interface)?;
    let station = match config.station {
        Some(station) => station,
        None => derived_station(&config, interface)?,
    };
    let group = config.api.group.as_ref().map(group_id).transpose()?;
    let asks_wifi = event_loop()?.block_on(ask_wifi(&config, interface))?;
    let netns = NetnsId::current().map_err(AgentError::system("read this network namespace"))?;
    let role = Role::Agent { netns, interface: config.interface.clone() };
    check_socket(&config)?; // before any BPF program is loaded
    let endpoint = config.metrics.map(Endpoint::bind).transpose()?;
    let lease = Lease::take(role)?;

    let controller = AssociatedController::new(&config, station, key);
    let started = set_up(config, controller, interface, group, netns, &lease);
    let outcome = match started {
        Ok((mut station, server, guard, hook)) => {
            let supervised = supervised(&station, hook, &lease)?;
            let outcome = serve_apart(user, &lease, &supervised, |told| {
                serve(&mut station, server, endpoint, asks_wifi, mask, shutdown, told)
            });
            undo_changes(&mut station, guard, supervised.departures.as_ref(), &lease);
            outcome
        }
        Err(error) => Err(error),
    };
    for (change, reason) in release(lease) {
        tracing::warn!(%change, reason, "could not be undone; the next wakeai command will undo it");
    }
    tracing::info!("stopped");
    outcome
}

/// The bounds of an agent, for the process that supervises it. The agent's own check at each tick covers the
/// registration and the pins.
struct Supervised<'a> {
    bounds: Option<SupervisedBounds>,
    /// Attaches the program that governs datagrams while the agent has a heartbeat.
    hook: Option<EgressHook>,
    /// Whether the log says that it cannot be attached.
    is_told: Cell<bool>,
    /// The queueing discipline behind the program.
    departures: Option<Departures<'a>>,
}

impl WatchOthers for Supervised<'_> {
    fn holds(&self, _: &OtherChange) -> Result<(), String> {
        Ok(())
    }

    fn take_back(&self) {
        match self.bounds.as_ref().map(SupervisedBounds::take_back) {
            Some(Ok(taken)) if !taken.is_empty() => {
                tracing::warn!(interfaces = ?taken, "the agent has no heartbeat: its bounds are taken back");
            }
            Some(Err(error)) => tracing::debug!(%error, "the heartbeat cannot be read"),
            _ => {}
        }
        let Some(hook) = &self.hook else { return };
        let looked = hook.look();
        if let Some(departures) = &self.departures {
            departures.follow(*looked.as_ref().unwrap_or(&false));
        }
        if let Err(error) = looked
            && !self.is_told.replace(true)
        {
            tracing::warn!(%error, "datagrams of UDP are neither counted nor governed");
        }
    }
}

/// Serves in a second process, as this user where one is given. The calling process reads nothing that others write, and
/// takes the bounds back while the serving process hangs.
fn serve_apart(
    user: Option<&User>,
    lease: &Lease,
    supervised: &Supervised<'_>,
    serve: impl FnOnce(&Told) -> Result<(), AgentError>,
) -> Result<(), AgentError> {
    let kept: &[Capability] = &KEPT_CAPABILITIES;
    let serve = |told: &Told| {
        let Err(error) = serve(told) else { return 0 };
        tracing::error!(%error, "the serving process ends");
        1
    };
    // A bound of a receive window does not expire, so a process that is left alone takes it back.
    let orphaned = Signal::SIGTERM;
    Ok(wakeai_host::serve_apart(user, lease, [kept, kept], supervised, orphaned, serve)?)
}

/// Serves until `shutdown` is ready. Then clears the bounds. `told` says what other programs have
/// changed of what the agent holds on the host.
fn serve(
    station: &mut Station,
    server: Server,
    endpoint: Option<Endpoint>,
    asks_wifi: bool,
    mask: SigSet,
    shutdown: impl Future<Output = ()>,
    told: &Told,
) -> Result<(), AgentError> {
    tokio::task::LocalSet::new().block_on(&event_loop()?, async {
        let mut shutdown = std::pin::pin!(shutdown);
        let is_over = is_over(shutdown.as_mut()).await;
        let hangup = signal(SignalKind::hangup()).map_err(AgentError::system("wait for SIGHUP"))?;
        let taken = mask.thread_set_mask().map_err(std::io::Error::from);
        taken.map_err(AgentError::system("take signals again"))?;
        if is_over {
            return Ok(());
        }
        if asks_wifi {
            let wifi = Wifi::open().map_err(AgentError::system("ask nl80211"))?;
            station.radio.answers = Some(watch_wifi(wifi, station.config.interface.clone()));
        }
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn_local(Rc::new(server).serve());
        if let Some(endpoint) = endpoint {
            let report = station.clients.report.subscribe();
            serving.spawn_local(endpoint.serve(move || page(&report.borrow())));
        }
        tracing::info!(interface = station.config.interface, "started");
        station.begin();
        let status = format!("interface {}", station.config.interface);
        notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
        station.run(shutdown, hangup, told).await;
        notify(&[NotifyState::Stopping, NotifyState::Status("undoing all changes")]);
        serving.abort_all();
        clear_bounds(station);
        Ok(())
    })
}

/// Does everything that needs privileges: registers the algorithms, pins the BPF parts, opens the
/// sockets, and sets the sysctl.
fn set_up(
    config: Config,
    controller: AssociatedController,
    interface: Interface,
    group: Option<u32>,
    netns: NetnsId,
    lease: &Lease,
) -> Result<(Station, Server, Option<Guard>, Option<EgressHook>), AgentError> {
    let rules = config.law.is_some();
    let actuator = if rules { Some(open_actuator(lease, netns)?) } else { None };
    let (datagrams, hook) = if rules { open_datagrams()? } else { (None, None) };
    let snapshotter = Snapshotter::open()?;
    if snapshotter.always_visits_all() {
        tracing::info!(
            "this kernel refuses an iterator: with thousands of connections every tick visits all of them"
        );
    }

    let (report, reports) = watch::channel(Report::default());
    let (reserve, wanted) = watch::channel(config.reserve);
    let path = socket_path(&config, netns);
    let (decisions, transfers) = exchange(Transfer::default());
    let (fleet_clients, fleet) = exchange(Err("nothing was asked yet".to_owned()));
    let clients = Transfers::new(decisions);
    let server = Server::bind(lease, &path, group, reports, reserve, clients, fleet_clients)?;
    let presence = open_presence(&config, interface).map_err(port_taken(&config))?;
    let guard = if rules { set_default(lease)? } else { None };
    let station = Station {
        netns: netns.0,
        controller,
        kernel: Kernel { actuator, datagrams, snapshotter, left_out: 0, received: (0, false) },
        radio: Radio::default(),
        network: Network {
            interface: Some(interface),
            presence: Some(presence),
            other_versions: OtherVersions::default(),
        },
        clients: Clients { report, reserve: wanted, transfers, fleet },
        counters: server.counters(),
        health: Health::new(since_boot()),
        distributions: Distributions::default(),
        config,
    };
    Ok((station, server, guard, hook))
}

/// The error where the presence port cannot be bound.
pub(crate) fn port_taken(config: &Config) -> impl FnOnce(std::io::Error) -> AgentError {
    let (port, interface) = (config.presence.port, &config.interface);
    AgentError::system(format!("bind UDP port {port} on {interface}"))
}

fn open_actuator(lease: &Lease, netns: NetnsId) -> Result<Actuator, AgentError> {
    lease.record(parts())?;
    lease.record(receive_windows(netns))?;
    let mut control = Control::open()?;
    control.watch()?;
    prepare_to_move()?; // both processes move connections
    Ok(Actuator::new(control, cookie()?))
}

fn cookie() -> Result<u64, AgentError> {
    netns_cookie().map_err(AgentError::system("read the namespace's cookie"))
}

/// Loads the program that governs datagrams. Where the kernel lacks what it needs, the agent goes on without it.
fn open_datagrams() -> Result<(Option<Datagrams>, Option<EgressHook>), AgentError> {
    match Datagrams::open(cookie()?) {
        Ok((datagrams, hook)) => Ok((Some(datagrams), Some(hook))),
        Err(error) => {
            tracing::warn!(%error, "datagrams of UDP are neither counted nor governed");
            Ok((None, None))
        }
    }
}

/// If the namespace's default algorithm has a bounded variant, makes this variant the default.
fn set_default(lease: &Lease) -> Result<Option<Guard>, AgentError> {
    let found = read_sysctl(DEFAULT_ALGORITHM)
        .map_err(AgentError::system(format!("read {DEFAULT_ALGORITHM}")))?;
    let Some(bounded) = Bounded::instead_of(&found) else {
        tracing::warn!(
            found,
            "new connections use neither cubic nor reno nor bbr by default: the agent bounds only \
             those that select one of these"
        );
        return Ok(None);
    };
    let failed = AgentError::system(format!("set {DEFAULT_ALGORITHM} to {}", bounded.name));
    let set = set_sysctl(lease, DEFAULT_ALGORITHM, bounded.name);
    set.map(Some).map_err(|error| failed(std::io::Error::other(error.to_string())))
}

/// What the supervising process holds. Where datagrams are governed, it also puts the queueing discipline, before the
/// serving process looks at it.
fn supervised<'a>(
    station: &Station,
    hook: Option<EgressHook>,
    lease: &'a Lease,
) -> Result<Supervised<'a>, AgentError> {
    let actuator = station.kernel.actuator.as_ref();
    let bounds = actuator.map(Actuator::supervised).transpose()?;
    let departures = hook.as_ref().and_then(|_| Departures::put(lease, &station.config));
    Ok(Supervised { bounds, hook, is_told: Cell::new(false), departures })
}

fn clear_bounds(station: &mut Station) {
    if let Some(Err(error)) = station.kernel.datagrams.as_mut().map(Datagrams::clear) {
        tracing::warn!(%error, "the rates of datagrams could not be removed; they will expire");
    }
    if let (Some(interface), Some(actuator)) =
        (station.network.interface, &mut station.kernel.actuator)
        && let Err(error) = actuator.clear(since_boot(), interface.index)
    {
        tracing::warn!(%error, "the bounds could not be removed; they will expire");
    }
}

/// Undoes the running agent's changes. It uses only the privileges that the agent has kept.
fn undo_changes(
    station: &mut Station,
    guard: Option<Guard>,
    departures: Option<&Departures<'_>>,
    lease: &Lease,
) {
    clear_bounds(station);
    if let Some(departures) = departures {
        departures.take_back();
    }
    if station.kernel.actuator.is_none() {
        return;
    }
    // The default is restored first, so that no new connection begins with the bounded algorithm.
    if let Some(Err(error)) = guard.map(|guard| guard.restore(lease)) {
        tracing::warn!(%error, "the default algorithm could not be restored; the next wakeai command will restore it");
    }
    for bounded in Bounded::ALL {
        match move_connections(&[bounded.name], bounded.plain, None) {
            Ok(report) if report.moved == 0 && report.failed == 0 => {}
            Ok(report) => {
                tracing::info!(moved = report.moved, "connections are on {} again", bounded.plain);
            }
            Err(error) => tracing::warn!(%error, "connections stay on {}", bounded.name),
        }
    }
}

pub(crate) fn derived_station(config: &Config, interface: Interface) -> Result<u64, AgentError> {
    let missing = || AgentError::NoStation(config.interface.clone());
    let hardware = interface.hardware.ok_or_else(missing)?;
    let machine = fs::read_to_string("/etc/machine-id").map_err(|_| missing())?;
    Ok(identity::station_number(&machine, hardware))
}

pub(crate) fn group_id(group: &Group) -> Result<u32, AgentError> {
    let name = match group {
        Group::Id(id) => return Ok(*id),
        Group::Name(name) => name,
    };
    let found = nix::unistd::Group::from_name(name).ok().flatten();
    found.map(|group| group.gid.as_raw()).ok_or_else(|| AgentError::NoGroup(name.clone()))
}

fn socket_path(config: &Config, netns: NetnsId) -> PathBuf {
    let default = || wakeai_host::state().join(format!("agent-{}.sock", netns.0));
    config.api.socket.clone().unwrap_or_else(default)
}

/// Checks that nl80211 knows the interface. Returns whether the agent has to ask it: it need not if the
/// configuration states both the access point and the PHY rate.
pub(crate) async fn ask_wifi(config: &Config, interface: Interface) -> Result<bool, AgentError> {
    let stated = config.bssid.is_some();
    if stated && config.link_rate.is_some() {
        return Ok(false);
    }
    let asked = async {
        let wifi = Wifi::open().map_err(|error| error.to_string())?;
        match wifi.association(interface.index).await {
            Err(
                error @ (WifiError::NoNl80211 | WifiError::NotWifi(_) | WifiError::NotStation(_)),
            ) => Err(error.to_string()),
            // While an interface is joining a network, nl80211 lists no access point yet.
            Ok(_) | Err(WifiError::Slow | WifiError::Unlisted) => Ok(()),
        }
    };
    match asked.await {
        Ok(()) => Ok(true),
        // If the configuration states the access point, the agent can work without the PHY rate.
        Err(reason) if stated => {
            tracing::info!(reason, "the link rate is unknown: not a Wi-Fi station");
            Ok(false)
        }
        Err(reason) => Err(AgentError::NoWifi { interface: config.interface.clone(), reason }),
    }
}

/// Queries nl80211 periodically in a separate task.
fn watch_wifi(
    wifi: Wifi,
    interface: String,
) -> watch::Receiver<Result<Option<Association>, String>> {
    let (sender, receiver) = watch::channel(Ok(None));
    tokio::task::spawn_local(async move {
        while !sender.is_closed() {
            let answer = match Interface::find(&interface) {
                Ok(found) => wifi.association(found.index).await.map_err(|error| error.to_string()),
                Err(_) => Ok(None), // the event loop counts this fault
            };
            let _ = sender.send_replace(answer); // returns the previous answer
            tokio::time::sleep(WIFI_INTERVAL).await;
        }
    });
    receiver
}
