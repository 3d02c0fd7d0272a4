//! What a tick publishes: the report for the local API and the metrics, the figures for the fleet, and the state
//! for systemd.

use wakeai_api::{BoundsReport, Peer, State, Status};
use wakeai_control::presence::{AgentFigures, Label};
use wakeai_control::{Bounds, Controller, Decision, Direction, Observation, RttView};
use wakeai_daemon::{NotifyState, notify};
use wakeai_host::{DEFAULT_ALGORITHM, read_sysctl};
use wakeai_kernel::TcpSnapshot;
use wakeai_units::{Duration, Instant, Rate};

use super::{Station, connection};
use crate::counters::{self, Counts};
use crate::datagrams::Datagrams;
use crate::report::{self, Connections, Report};

impl Station {
    pub(super) fn publish(
        &mut self,
        now: Instant,
        link_rate: Option<Rate>,
        snapshots: Vec<TcpSnapshot>,
    ) {
        let state = self.state(now);
        self.notify_state(state);
        self.describe(now, state);
        let controller = self.controller.controller();
        let nothing = Observation::default();
        let seen = controller.map_or(&nothing, Controller::observation);
        let connections = connections(seen, snapshots);
        let status = self.status(now, state, seen, link_rate);
        let peers = self.peers();
        self.distributions.observe(&connections, &peers);
        let controller = self.controller.controller();
        let decision = controller.map(Controller::decision);
        let bounds = decision.map_or(Bounds::NONE, |decision| decision.bounds);
        let own = &self.controller.common_law;
        let report = Report {
            peers,
            airtime: decision.and_then(|decision| decision.airtime(Direction::Up)),
            distributions: self.distributions.clone(),
            bounds: BoundsReport {
                why: decision.map(Decision::reasons).unwrap_or_default(),
                history: self.controller.history(),
                ..report::bounds(self.config.law_name(), bounds)
            },
            targets: report::targets(seen, decision.and_then(|decision| decision.share)),
            counts: self.counts(),
            differing: report::differing(controller.into_iter().flat_map(Controller::peers), own),
            status: Some(status),
            connections,
        };
        self.clients.report.send_replace(report);
    }

    fn status(
        &self,
        now: Instant,
        state: State,
        seen: &Observation,
        link_rate: Option<Rate>,
    ) -> Status {
        let controller = self.controller.controller();
        let own = &self.controller.common_law;
        let rtt = |pick: fn(&RttView) -> Duration| {
            seen.up.rtt.as_ref().map(|rtt| pick(rtt).as_millis_f64())
        };
        let presence = self.network.presence.as_ref().filter(|_| self.network.is_up());
        let datagrams = self.kernel.datagrams.as_ref();
        Status {
            state,
            pid: std::process::id(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: now.saturating_since(self.health.started).as_secs_f64(),
            netns: self.netns,
            interface: self.config.interface.clone(),
            station: self.controller.station().to_string(),
            bssid: self.controller.bssid().map(|bssid| bssid.to_string()),
            link_rate_mbps: link_rate.map(Rate::as_mbps_f64),
            presence_to: presence.map(|presence| presence.to.to_string()),
            presence: controller.map(|of| counters::presence(of.counters())).unwrap_or_default(),
            law: self.config.law_name().to_owned(),
            law_version: Some(own.version),
            default_algorithm: read_sysctl(DEFAULT_ALGORITHM).ok(),
            senders: seen.senders,
            peers: seen.live_peers as usize,
            delivery_rate_mbps: seen.up.delivery_rate.as_mbps_f64(),
            rtt_ms: rtt(|rtt| rtt.current),
            min_rtt_ms: rtt(|rtt| rtt.min),
            growth_ms: rtt(|rtt| rtt.growth),
            received: controller.and_then(|of| report::received(&of.figures().announced.down)),
            reservation: match controller {
                Some(controller) => report::reservation(controller),
                None => self.controller.wanted().map(report::postponed),
            },
            turn: controller.and_then(Controller::turn).map(|turn| turn.to_string()),
            connections: Vec::new(), // `Report::status` adds them
            connections_left_out: self.kernel.left_out,
            datagrams: datagrams.map(|of| report::datagrams(of.flows())),
            departure_times: datagrams.and_then(Datagrams::departs),
            not_governed_mbps: datagrams.and_then(Datagrams::not_governed).map(Rate::as_mbps_f64),
            other_versions: self.network.other_versions.shown(now),
            other_laws: report::other_laws(controller.into_iter().flat_map(Controller::peers), own),
            drifts: self.health.drifts.last().map(report::drift).collect(),
        }
    }

    fn peers(&self) -> Vec<Peer> {
        let own = &self.controller.common_law;
        let of = |controller: &Controller| {
            let shown = |peer| report::peer(&peer, controller.admits(peer.station), own);
            controller.peers().map(shown).collect()
        };
        self.controller.controller().map(of).unwrap_or_default()
    }

    /// If the state has changed, logs it and notifies systemd.
    fn notify_state(&mut self, state: State) {
        if self.health.notified != Some(state) {
            tracing::info!(state = state.words(), "state");
            let status = format!("{}: {}", self.config.interface, state.words());
            notify(&[NotifyState::Status(&status)]);
            self.health.notified = Some(state);
        }
    }

    /// Gives the controller the agent's figures. The controller sends them in its answer to a query
    /// to the fleet.
    fn describe(&mut self, now: Instant, state: State) {
        let (faults, lasting) = self.health.faults.figures();
        let figures = AgentFigures {
            software: Label::new(env!("CARGO_PKG_VERSION")),
            state: Label::new(state.name()),
            law: Label::new(self.config.law_name()),
            uptime: now.saturating_since(self.health.started),
            faults,
            lasting,
        };
        if let Some(controller) = self.controller.controller_mut() {
            controller.set_agent_figures(figures);
        }
    }

    fn counts(&self) -> Counts {
        let drifts = self.health.drifts.counts();
        Counts {
            agent: self.counters.report(),
            presence: self.controller.counters(),
            faults: self.health.faults.counts(),
            drifts: drifts.map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }
}

fn connections(seen: &Observation, snapshots: Vec<TcpSnapshot>) -> Connections {
    let views = seen.up.connections.iter().map(Some).chain(std::iter::repeat(None));
    let sends = snapshots.iter().zip(views).map(|(snapshot, view)| {
        view.map_or_else(|| connection(snapshot, false).has_data(), |view| view.active)
    });
    let sends = sends.collect();
    Connections::new(snapshots, sends)
}
