//! The agent's event loop. It handles one station on one interface in one thread.

mod publish;

use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration as Wait;

use tokio::signal::unix::Signal;
use tokio::sync::watch;
use wakeai_api::config::{Bssid, Config};
use wakeai_api::{State, Transfer};
use wakeai_control::{Actuation, Connection, Controller, Limit, StationTick, TICK};
use wakeai_daemon::{NotifyState, notify, watchdog_enabled};
use wakeai_host::{Drifts, Told, since_boot};
use wakeai_kernel::{Bounded, Snapshotter, TcpSnapshot, move_connections};
use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::actuator::Actuator;
use crate::controller::AssociatedController;
use crate::counters::{Counters, Fault, Faults};
use crate::datagrams::Datagrams;
use crate::distributions::Distributions;
use crate::exchange::Answering;
use crate::fleet::{self, FleetRequests};
use crate::interface::Interface;
use crate::key::GroupKeys;
use crate::link_rate::LinkRate;
use crate::presence::PresenceSocket;
use crate::report::Report;
use crate::versions::OtherVersions;
use crate::wifi::{Association, LastAssociation};

/// The time between heartbeats. Bounds expire when six of these intervals (1.5 s) have passed
/// without a heartbeat.
const HEARTBEAT: Duration = Duration::from_millis(250);
/// The largest number of idle connections that a tick reads. Idle connections do not influence a
/// decision.
const IDLE_LISTED: u32 = 1_000;
/// A connection is idle when it has nothing to send and has sent nothing for this long.
const IDLE_AFTER: Duration = Duration::from_secs(10);
/// While a tick brings no more than this, bytes, receive windows are written once per tick. It is an
/// initial window (RFC 6928), which is less than what makes the kernel enlarge a buffer.
const MUCH: u64 = 10 * 1448;
/// After this long without a successful tick the agent stops the heartbeat, so that its bounds
/// expire. Its state is then [`State::Blind`].
const BLIND_AFTER: Duration = Duration::from_secs(2);

/// The state of the event loop.
pub(crate) struct Station {
    pub(crate) config: Config,
    pub(crate) netns: u64,
    pub(crate) controller: AssociatedController,
    pub(crate) kernel: Kernel,
    pub(crate) radio: Radio,
    pub(crate) network: Network,
    pub(crate) clients: Clients,
    pub(crate) counters: Rc<Counters>,
    pub(crate) health: Health,
    pub(crate) distributions: Distributions,
}

/// The station's connections and their bounds in the kernel.
pub(crate) struct Kernel {
    /// The bounds. It is `None` with the law `none`, which changes nothing in the kernel.
    pub(crate) actuator: Option<Actuator>,
    /// The flows of UDP. It is `None` with the law `none`, and where the kernel lacks the feature.
    pub(crate) datagrams: Option<Datagrams>,
    pub(crate) snapshotter: Snapshotter,
    /// The number of idle connections that the last tick did not read.
    pub(crate) left_out: u32,
    /// The bytes that the connections of the last tick had received, and whether they had received much
    /// since the tick before.
    pub(crate) received: (u64, bool),
}

/// The interface, and the presence messages over it.
pub(crate) struct Network {
    pub(crate) interface: Option<Interface>,
    pub(crate) presence: Option<PresenceSocket>,
    pub(crate) other_versions: OtherVersions,
}

impl Network {
    fn is_up(&self) -> bool {
        self.interface.is_some_and(|interface| interface.up)
    }

    /// The interface's index. It is `None` unless the interface exists, is up and has an address.
    fn index(&self) -> Option<u32> {
        let usable = self.interface.filter(|interface| interface.up && interface.addressed);
        usable.map(|interface| interface.index)
    }
}

/// What nl80211 says of the association.
#[derive(Default)]
pub(crate) struct Radio {
    /// The answers of nl80211. It is `None` if the agent does not ask nl80211.
    pub(crate) answers: Option<watch::Receiver<Result<Option<Association>, String>>>,
    pub(crate) association: LastAssociation,
    pub(crate) link_rate: LinkRate,
}

/// The event loop's ends of the channels to the clients of the local API.
pub(crate) struct Clients {
    pub(crate) report: watch::Sender<Report>,
    /// The rate that the clients want to reserve.
    pub(crate) reserve: watch::Receiver<Option<Rate>>,
    /// The transfers of the clients, and the decision on whether they may send.
    pub(crate) transfers: Answering<Option<Bytes>, Transfer>,
    /// The requests for the view of the fleet.
    pub(crate) fleet: FleetRequests,
}

/// What hinders the agent, since when, and what systemd knows of it.
pub(crate) struct Health {
    pub(crate) faults: Faults,
    /// What other programs have changed of what the agent holds on the host.
    pub(crate) drifts: Drifts,
    pub(crate) started: Instant,
    /// The time of the last tick that wrote all bounds.
    pub(crate) last_good: Instant,
    /// The number of messages that were refused because of their timestamps, as of the last tick.
    pub(crate) stale: u64,
    pub(crate) watchdog: bool,
    /// The last state that systemd was notified of.
    pub(crate) notified: Option<State>,
}

impl Health {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            faults: Faults::default(),
            drifts: Drifts::default(),
            started: now,
            last_good: now,
            stale: 0,
            watchdog: watchdog_enabled().is_some(),
            notified: None,
        }
    }

    /// Whether a tick has written all bounds in the last seconds.
    fn sees(&self, now: Instant) -> bool {
        now.saturating_since(self.last_good) < BLIND_AFTER
    }
}

/// When the loop has something to do for the controller. The ticks are those of the loop, which come a little late each
/// time. The controller's own grid of ticks is then ahead of them, and would keep the loop awake until its tick.
fn due(next_tick: Instant, controller: Option<&Controller>) -> Instant {
    let transmit = controller.map(Controller::next_transmit);
    transmit.map_or(next_tick, |transmit| transmit.min(next_tick))
}

impl Station {
    /// Does the first tick and the first heartbeat. From then on bounds also apply to new
    /// connections.
    pub(crate) fn begin(&mut self) {
        let now = since_boot();
        self.tick(now);
        self.heartbeat(now);
    }

    /// Runs until `shutdown` is ready. Upon SIGHUP (`hangup`) the agent reads the group key again.
    pub(crate) async fn run(
        &mut self,
        shutdown: impl Future<Output = ()>,
        mut hangup: Signal,
        told: &Told,
    ) {
        let mut shutdown = pin!(shutdown);
        let began = since_boot();
        let (mut next_tick, mut next_heartbeat) = (began + TICK, began + HEARTBEAT);
        let mut next_windows = began;
        loop {
            let now = since_boot();
            if now >= next_heartbeat {
                self.heartbeat(now);
                next_heartbeat = now + HEARTBEAT;
            }
            if now >= next_windows {
                next_windows = self.bound_windows(now);
            }
            if now >= next_tick {
                let late = now.saturating_since(next_tick) > TICK / 2;
                self.health
                    .faults
                    .check(Fault::LateTick, if late { Err("a tick came late") } else { Ok(()) });
                for drift in told.take() {
                    self.health.drifts.add(drift);
                }
                self.tick(now);
                let took = since_boot().saturating_since(now);
                self.distributions.tick.observe(took.as_secs_f64());
                next_tick = now + TICK;
                // What the tick has decided is written in the next round, so that neither delays a message for long.
                next_windows = now;
            }
            self.decide_on_transfers(since_boot());
            self.show_fleet(since_boot());
            self.transmit(since_boot());
            self.controller.log_events();
            let due = due(next_tick, self.controller.controller());
            // Waits for at least a millisecond, so that an overdue timeout does not make the loop
            // spin.
            let due = if self.bounds_windows() { due.min(next_windows) } else { due };
            let wait = due.min(next_heartbeat).saturating_since(since_boot());
            let wait = Wait::from(wait).max(Wait::from_millis(1));
            // After an error the socket is read again at the next tick, so that a lasting error does not make the
            // loop spin.
            let heard = self
                .network
                .presence
                .as_ref()
                .filter(|_| !self.health.faults.lasts(Fault::Receive));
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                Some(()) = hangup.recv() => self.reload_keys(),
                () = tokio::time::sleep(wait) => {}
                Ok(()) = self.clients.transfers.changed() => {}
                Ok(()) = self.clients.fleet.changed() => {}
                readable = wait_readable(heard) => self.receive(readable),
            }
        }
    }

    fn bounds_windows(&self) -> bool {
        self.kernel.actuator.as_ref().is_some_and(Actuator::bounds_windows)
    }

    /// Writes the receive windows, where any is bounded. Returns when to write them again.
    fn bound_windows(&mut self, now: Instant) -> Instant {
        let (_, receives) = self.kernel.received;
        match &mut self.kernel.actuator {
            Some(actuator) if actuator.bounds_windows() => {
                actuator.bound_windows(now);
                actuator.next_write(now, receives)
            }
            _ => now + TICK,
        }
    }

    fn heartbeat(&mut self, now: Instant) {
        if self.health.watchdog {
            notify(&[NotifyState::Watchdog]);
        }
        let fresh = self.health.sees(now);
        let index = self.network.index().filter(|_| fresh && self.controller.bssid().is_some());
        if let (Some(index), Some(actuator)) = (index, &self.kernel.actuator) {
            let result = actuator.heartbeat(index);
            self.health.faults.check(Fault::Heartbeat, result);
            if let Some(datagrams) = &self.kernel.datagrams {
                self.health.faults.check(Fault::Datagrams, datagrams.heartbeat());
            }
        }
    }

    fn tick(&mut self, now: Instant) {
        self.counters.ticks.one();
        self.find_interface(now);
        let link_rate = self.find_access_point(now);
        let snapshots = self.read_connections();
        if self.clients.reserve.has_changed().unwrap_or(false) {
            self.controller.reserve(*self.clients.reserve.borrow_and_update());
        }
        let reaches_others = self.kernel.actuator.as_ref().is_some_and(Actuator::reaches_others);
        let convert = |snapshot| connection(snapshot, reaches_others);
        let read = snapshots.as_deref().unwrap_or_default();
        let mut connections: Vec<_> = read.iter().map(convert).collect();
        connections.extend(self.read_datagrams(now));
        self.controller.read_clock();
        let (_, left) = self.clients.transfers.asked();
        let reserve = self.controller.wanted();
        let tick = StationTick { link_rate, connections: &connections, left, reserve };
        let controller = self.controller.controller_mut();
        let actuation = controller.map(|controller| controller.tick(now, &tick));
        self.bound_datagrams(actuation.as_ref());
        if let (Some(index), Some(_)) = (self.network.index(), &snapshots) {
            let result = match (&mut self.kernel.actuator, actuation) {
                (Some(actuator), Some(actuation)) => {
                    let others = snapshots.iter().flatten().any(|one| !applies_bounds(one));
                    actuator.apply(index, &actuation, others)
                }
                (Some(actuator), None) => actuator.clear(now, index),
                (None, _) => Ok(()),
            };
            if self.health.faults.check(Fault::Bound, result).is_some() {
                self.health.last_good = now;
            }
        }
        self.check_clock();
        self.controller.log_events();
        self.publish(now, link_rate, snapshots.unwrap_or_default());
    }

    /// Looks the interface up again. It may be gone, or have a new index, or have lost its address.
    fn find_interface(&mut self, now: Instant) {
        let found = Interface::find(&self.config.interface);
        let is_down = found.as_ref().is_ok_and(|found| !found.up);
        let found = if is_down {
            let problem = format!("{} is down", self.config.interface);
            self.health.faults.failed(Fault::Interface, &problem);
            found.ok()
        } else {
            self.health.faults.check(Fault::Interface, found)
        };
        let before = self.network.interface;
        let gone = before.filter(|before| found.map(|found| found.index) != Some(before.index));
        if let (Some(gone), Some(actuator)) = (gone, &mut self.kernel.actuator) {
            let result = actuator.clear(now, gone.index);
            self.health.faults.check(Fault::Bound, result);
            self.bound_datagrams(None);
        }
        self.network.interface = found;
        self.find_presence();
    }

    /// Keeps the socket of presence messages while the interface keeps its index. The socket also
    /// stays open while the interface is down, because otherwise another user could take the port
    /// in that time. If the index has changed, the old socket holds the port until the new one is
    /// open.
    fn find_presence(&mut self) {
        let Some(found) = self.network.interface else { return };
        match &mut self.network.presence {
            Some(presence) if presence.index == found.index => {
                presence.set_destination(destination(&self.config, self.network.interface));
                if self.health.faults.lasts(Fault::Receive) {
                    self.receive(Ok(()));
                }
            }
            _ if found.up => {
                let opened = open_presence(&self.config, found);
                let opened = self.health.faults.check(Fault::Receive, opened);
                self.network.presence = opened.or(self.network.presence.take());
            }
            _ => {}
        }
    }

    /// Takes the access point from the last answer of nl80211 or from the configuration. Returns the PHY rate.
    fn find_access_point(&mut self, now: Instant) -> Option<Rate> {
        let is_new =
            self.radio.answers.as_ref().is_some_and(|wifi| wifi.has_changed().unwrap_or(false));
        let heard = self.radio.answers.as_mut().map(|wifi| wifi.borrow_and_update().clone());
        let answer = heard.map_or(Some(None), |heard| self.health.faults.check(Fault::Wifi, heard));
        let is_new = is_new && answer.is_some();
        if let Some(answer) = answer {
            self.radio.association.set(now, answer);
        }
        let heard = self.radio.association.get(now);
        if let Some(association) = heard.filter(|_| is_new) {
            let delivered = self
                .controller
                .controller()
                .map(|controller| controller.observation().up.mean_rate);
            self.radio.link_rate.on_poll(&association, delivered.unwrap_or(Rate::ZERO));
        }
        let bssid = self.config.bssid.or_else(|| heard.map(|association| Bssid(association.bssid)));
        let bssid = bssid.filter(|_| self.network.index().is_some());
        if let Err(error) = self.controller.associate(now, bssid) {
            self.health.faults.failed(Fault::Wifi, &error);
        }
        self.config.link_rate.or_else(|| heard.and(self.radio.link_rate.get()))
    }

    /// Reads the connections over the interface, and moves new ones to the bounded algorithms.
    fn read_connections(&mut self) -> Option<Vec<TcpSnapshot>> {
        let index = self.network.index()?;
        let read = self.kernel.snapshotter.snapshot_without_idle(index, IDLE_AFTER, IDLE_LISTED);
        let (snapshots, left_out) = self.health.faults.check(Fault::Snapshot, read)?;
        self.kernel.left_out = left_out;
        let received = snapshots.iter().map(|one| one.receiving.received).sum::<u64>();
        let (before, _) = self.kernel.received;
        self.kernel.received = (received, received.abs_diff(before) > MUCH);
        if self.kernel.actuator.is_some() {
            for bounded in Bounded::ALL {
                self.take_over(bounded, index, &snapshots);
            }
        }
        Some(snapshots)
    }

    /// Reads the flows of UDP over the interface.
    fn read_datagrams(&mut self, now: Instant) -> Vec<Connection> {
        let (Some(index), Some(datagrams)) = (self.network.index(), &mut self.kernel.datagrams)
        else {
            return Vec::new();
        };
        let read = datagrams.read(now, index, &self.config.interface);
        self.health.faults.check(Fault::Datagrams, read).unwrap_or_default()
    }

    /// Writes the rates of the flows of UDP. Without an actuation they have none.
    fn bound_datagrams(&mut self, actuation: Option<&Actuation>) {
        if let Some(datagrams) = &mut self.kernel.datagrams {
            let result = match actuation {
                Some(actuation) => datagrams.apply(actuation),
                None => datagrams.clear(),
            };
            self.health.faults.check(Fault::Datagrams, result);
        }
    }

    fn take_over(&mut self, bounded: Bounded, index: u32, snapshots: &[TcpSnapshot]) {
        if !snapshots.iter().any(|snapshot| *snapshot.algorithm == *bounded.plain) {
            return;
        }
        let report = move_connections(&[bounded.plain], bounded.name, Some(index));
        if let Some(report) = self.health.faults.check(Fault::Move, report) {
            self.counters.connections_moved.add(report.moved.into());
        }
    }

    /// Hands the clients' transfers to the controller, and publishes whether they may send.
    fn decide_on_transfers(&mut self, now: Instant) {
        let (number, left) = self.clients.transfers.asked();
        if left.is_some() || self.clients.transfers.answered() != number {
            self.controller.transfer(now, left);
        }
        let controller = self.controller.controller();
        let transfer = controller.map_or_else(Transfer::default, |controller| {
            let sending = controller.peers().filter(|peer| peer.announced.up.active).count();
            let sending_peers = u32::try_from(sending).unwrap_or(u32::MAX);
            Transfer { permission: controller.permission(), sending_peers }
        });
        self.clients.transfers.answer(number, transfer);
    }

    /// Answers the clients that asked for the view of the fleet.
    fn show_fleet(&mut self, now: Instant) {
        let Some((number, begins)) = fleet::open(&mut self.clients.fleet) else { return };
        let other_versions = self.network.other_versions.shown(now);
        let (station, bssid) = (self.controller.station(), self.controller.bssid());
        let own_law = self.controller.common_law;
        let shown = match (self.controller.controller_mut(), bssid) {
            (Some(controller), Some(bssid)) => {
                if begins || controller.fleet_query().is_none() {
                    controller.ask_fleet(now);
                }
                let query = controller.fleet_query().expect("a query was begun");
                let bssid = bssid.to_string();
                let own = (station, &own_law);
                Ok(fleet::fleet(controller, query, own, bssid, other_versions))
            }
            _ => Err(format!("the agent has no access point: {}", self.state(now).words())),
        };
        self.clients.fleet.answer(number, shown);
    }

    fn transmit(&mut self, now: Instant) {
        let usable = self.network.is_up();
        let Some(controller) = self.controller.controller_mut() else { return };
        while let Some(datagram) = controller.poll_transmit(now) {
            if let Some(presence) = self.network.presence.as_ref().filter(|_| usable) {
                let result = presence.send(&datagram);
                self.health.faults.check(Fault::Send, result);
            }
        }
    }

    /// Reads the group keys again. If this fails, the previous keys stay in use.
    fn reload_keys(&mut self) {
        match GroupKeys::load(&self.config.key_file) {
            Ok(keys) => {
                tracing::info!(accepted = keys.accepted.len() + 1, "group keys read again");
                self.controller.set_keys(keys);
            }
            Err(error) => {
                tracing::error!(%error, "the group keys could not be read; the previous ones stay in use");
            }
        }
    }

    /// Warns the user if the clocks of stations differ. In this case the other stations also refuse
    /// this station's messages.
    fn check_clock(&mut self) {
        let Some(counters) = self.controller.controller().map(Controller::counters) else { return };
        let before = std::mem::replace(&mut self.health.stale, counters.stale);
        match counters.stale.checked_sub(before) {
            Some(0) | None => {}
            Some(_) => self.health.faults.failed(
                Fault::Clock,
                &"stations of the group have clocks that differ from this one's by more than \
                  presence.clock_tolerance; check the time service here and on them",
            ),
        }
    }

    fn receive(&mut self, readable: std::io::Result<()>) {
        let now = since_boot();
        let bssid = self.controller.bssid().map(|bssid| bssid.0);
        let (controller, presence) = (self.controller.controller_mut(), &self.network.presence);
        let others = &mut self.network.other_versions;
        let result = readable.and_then(|()| match (presence, controller) {
            (Some(presence), Some(controller)) => presence.receive(|from, datagram| {
                controller.handle_datagram(now, datagram);
                if let Some(other) = controller.take_other_version() {
                    others.heard(now, from, bssid, other);
                }
            }),
            // Without an access point there are no peers.
            (Some(presence), None) => presence.receive(|_, _| {}),
            (None, _) => Ok(()),
        });
        self.health.faults.check(Fault::Receive, result);
    }

    fn state(&self, now: Instant) -> State {
        if self.network.index().is_none() {
            if self.network.is_up() { State::WaitingForAddress } else { State::WaitingForInterface }
        } else if self.controller.bssid().is_none() {
            State::WaitingForAccessPoint
        } else if self.health.faults.lasts(Fault::Bound)
            || self.health.faults.lasts(Fault::Heartbeat)
        {
            State::WithoutBounds
        } else if !self.health.sees(now) {
            State::Blind
        } else {
            State::Controlling
        }
    }
}

/// Whether the algorithm of a connection applies bounds itself.
fn applies_bounds(snapshot: &TcpSnapshot) -> bool {
    Bounded::named(&snapshot.algorithm).is_some()
}

/// Converts a connection to the type of the crate `control`. `reaches_others` is whether the congestion windows of
/// connections can be bounded whose algorithms apply no bounds.
fn connection(snapshot: &TcpSnapshot, reaches_others: bool) -> Connection {
    let is_bound = reaches_others || applies_bounds(snapshot);
    Connection {
        id: snapshot.socket.cookie,
        figures: snapshot.figures,
        limit: if is_bound { Limit::Window } else { Limit::Nothing },
        receiving: snapshot.receiving,
    }
}

pub(crate) fn open_presence(
    config: &Config,
    interface: Interface,
) -> std::io::Result<PresenceSocket> {
    let to = destination(config, Some(interface));
    PresenceSocket::open(&config.interface, interface.index, to, config.presence.port)
}

/// The destination of presence messages, and the reason for this destination. Every station on the
/// link accepts datagrams to 255.255.255.255. The station's own addresses do not matter
/// (RFC 919 section 7).
pub(crate) fn destination(config: &Config, interface: Option<Interface>) -> (Ipv4Addr, String) {
    let name = &config.interface;
    let own = interface.and_then(|interface| interface.broadcast);
    match (config.presence.broadcast, own, interface.and_then(|interface| interface.address)) {
        (Some(given), ..) => (given, "stated in presence.broadcast".to_owned()),
        (_, Some(own), _) => (own, format!("the broadcast address of {name}")),
        (_, _, Some(_)) => (Ipv4Addr::BROADCAST, format!("{name} has no IPv4 broadcast address")),
        (_, _, None) => (Ipv4Addr::BROADCAST, format!("{name} has no IPv4 address")),
    }
}

async fn wait_readable(presence: Option<&PresenceSocket>) -> std::io::Result<()> {
    match presence {
        Some(presence) => presence.readable().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use wakeai_control::{ControllerConfig, LawConfig, LawName, StationId};

    use super::*;

    #[test]
    fn ticks_that_come_late_do_not_keep_the_loop_awake() {
        let config = ControllerConfig::new(StationId(1), [2; 6], [3; 32]);
        let law = LawConfig::new(LawName::Airtime);
        let mut controller = Controller::new(Instant::ZERO, &config, [4; 16], &law);
        let late = Duration::from_millis(2);
        let (mut now, mut waits) = (Instant::ZERO, 0);
        for _ in 0..1_000 {
            controller.handle_tick(now, None, &[]);
            let next_tick = now + TICK;
            while now < next_tick {
                while controller.poll_transmit(now).is_some() {}
                let at = due(next_tick, Some(&controller));
                assert!(at > now, "something is due that nobody handles");
                now = at + late;
                waits += 1;
            }
        }
        assert!(waits < 2_000, "one for the tick, and one for a message in some: {waits}");
    }
}
