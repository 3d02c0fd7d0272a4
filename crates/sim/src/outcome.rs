//! What a run came to.

use wakeai_medium::Counters;
use wakeai_scenario::result::{Drops, MeasuredFlow, SimulatedFlow};
use wakeai_scenario::{Expanded, Flow};
use wakeai_units::{Bytes, Duration, Instant, Segments};
use wakeai_world::Outcome;
use wakeai_world::reservations::of_flow;

use crate::flow::{FlowState, Source};
use crate::observer::Observer;
use crate::simulation::Simulation;

/// A run in every detail.
#[derive(Debug)]
pub struct SimOutcome {
    /// What a report is made of.
    pub outcome: Outcome,
    /// What the medium has counted: drops, collisions, air.
    pub counters: Counters,
    /// By flow, in the order of the scenario.
    pub flows: Vec<FlowDetail>,
}

/// What a report does not say of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowDetail {
    /// From its start until its first connection was open; `None` where it never was, and for UDP.
    pub opened: Option<Duration>,
    /// Retransmission timeouts of SYNs, which are not among its other timeouts.
    pub syn_timeouts: u64,
    /// Time that all of its connections spent waiting for those timeouts.
    pub syn_wait: Duration,
    /// The longest time between two arrivals of new data, from the start to the end of the flow.
    pub longest_stall: Duration,
    /// The end of each step in which something arrived, from the run's time zero, and all bytes
    /// that had arrived by then; empty unless [`crate::Job::progress`] asks for it.
    pub progress: Vec<(Duration, Bytes)>,
    /// Each K of CUBIC's curve, and when it was first seen, from the run's time zero; empty as
    /// [`FlowDetail::progress`] is, and under an algorithm without a curve.
    pub k: Vec<(Duration, Duration)>,
    /// The mean congestion window of its connections' samples after the warmup, rounded; `None` without
    /// any.
    pub mean_window: Option<Segments>,
}

impl<O: Observer> Simulation<O> {
    /// The figures of a run that ended at `end`; and the observer.
    pub(crate) fn finish(mut self, expanded: Expanded, end: Instant) -> (SimOutcome, O) {
        for connection in self.connections.iter().flatten() {
            self.flows[connection.flow as usize].take_account(connection);
        }
        let span = self.carrier.span;
        let all = || expanded.flows.iter().zip(&self.flows);
        let measured = all().map(|(flow, state)| {
            let course = |station: usize| {
                let host = &self.stations[station];
                host.agent.is_some().then_some(&host.reserving.course)
            };
            MeasuredFlow { reservation: of_flow(flow, course), ..measured(flow, state, end) }
        });
        let measured = measured.collect();
        let mut k = self.watch.k.take().into_iter().flatten();
        let details = all().enumerate().map(|(index, (_, state))| FlowDetail {
            mean_window: self.watch.mean_window(index),
            k: k.next().unwrap_or_default(),
            opened: state.totals.opened,
            syn_timeouts: state.totals.syn_timeouts,
            syn_wait: state.totals.syn_wait,
            longest_stall: state.meter.stall_until(end),
            progress: {
                let steps = state.meter.progress.iter();
                steps.map(|(at, bytes)| (span.since(*at), Bytes::new(*bytes))).collect()
            },
        });
        let details = details.collect();
        let counters = self.carrier.medium.counters().clone();
        let outcome = Outcome {
            stations: expanded.stations,
            end: span.since(end),
            flows: measured,
            rtt: self.watch.rtt,
            errors: self.watch.errors,
            lateness: None,
            drops: Some(drops(&counters)),
        };
        (SimOutcome { outcome, counters, flows: details }, self.carrier.observer)
    }
}

/// What was lost where.
fn drops(counters: &Counters) -> Drops {
    let stations = || counters.stations.iter();
    Drops {
        hosts: stations().map(|station| station.queue_drops).sum(),
        access_point: counters.access_point.queue_drops,
        wired_up: counters.wired_up.queue_drops,
        wired_down: counters.wired_down.queue_drops,
        air: stations().chain([&counters.access_point]).map(|sender| sender.retry_drops).sum(),
    }
}

fn measured(flow: &Flow, state: &FlowState, end: Instant) -> MeasuredFlow {
    let meter = &state.meter;
    MeasuredFlow {
        station: flow.station(),
        direction: flow.direction(),
        kind: flow.kind,
        algorithm: match &state.source {
            Source::Tcp(stream) => Some(stream.algorithm.clone()),
            Source::Udp(_) => None,
        },
        bytes: Bytes::new(meter.bytes),
        bytes_after_warmup: Bytes::new(meter.after_warmup),
        start: flow.start,
        completion: meter.completed.map(|at| at.saturating_since(state.start)),
        retransmits: state.totals.retransmits,
        timeouts: state.totals.timeouts,
        avr: meter.avr_at(end),
        simulated: matches!(state.source, Source::Tcp(_)).then(|| SimulatedFlow {
            syn_timeouts: state.totals.syn_timeouts,
            syn_wait_s: state.totals.syn_wait.as_secs_f64(),
            longest_stall_s: meter.stall_until(end).as_secs_f64(),
        }),
        reservation: None,
    }
}
