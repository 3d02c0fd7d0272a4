//! The result of a run: takes the figures from flows, medium and agents at its end.

use wakeai_medium::Counters;
use wakeai_results::result::{Drops, MeasuredFlow, SimulatedFlow};
use wakeai_scenario::{Expanded, Flow};
use wakeai_units::{Bytes, Duration, Instant, Segments};
use wakeai_world::reservations::of_flow;
use wakeai_world::{Outcome, ReceiverMeter, frame_counts};

use crate::carrier::Observer;
use crate::flow::{FlowState, Source};
use crate::simulation::Simulation;

/// The result of a run with all details.
#[derive(Debug)]
pub struct SimOutcome {
    /// The figures of the report.
    pub outcome: Outcome,
    /// The medium's counters: drops, collisions, airtime.
    pub counters: Counters,
    /// The details of the flows, in the order of the scenario.
    pub flows: Vec<FlowDetail>,
}

/// The figures of a flow that are not in a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowDetail {
    /// The time from the flow's start until its first connection was established; `None` where none
    /// was established, and for UDP.
    pub opened: Option<Duration>,
    /// For each step of time in which data arrived: the end of the step, from the run's time zero,
    /// and the bytes received by then. It is empty unless [`crate::Job::progress`] asks for it.
    pub progress: Vec<(Duration, Bytes)>,
    /// The mean congestion window over the samples of the flow's connections after the warmup,
    /// rounded; `None` without samples.
    pub mean_window: Option<Segments>,
}

impl<O: Observer> Simulation<O> {
    /// The figures of a run that ended at `end`, and the observer.
    pub(crate) fn finish(mut self, expanded: Expanded, end: Instant) -> (SimOutcome, O) {
        if let Some((sampler, _)) = &mut self.sampler {
            sampler.sample_air(end, &self.carrier.medium);
        }
        for connection in self.connections.iter().flatten() {
            self.flows[connection.flow as usize].take_account(connection);
        }
        for flow in &mut self.flows {
            flow.meter.end(end);
        }
        let span = self.carrier.span;
        let all = || expanded.flows.iter().zip(&self.flows);
        let meter = &self.senders.meter;
        let measured = all().enumerate().map(|(index, (flow, state))| {
            let log = |station: usize| {
                let host = &self.stations[station];
                host.agent.is_some().then_some(&host.reserving.log)
            };
            let measured = meter.measured(index, measured(flow, state, end));
            MeasuredFlow { reservation: of_flow(flow, log), ..measured }
        });
        let measured = measured.collect();
        let progress = |meter: &ReceiverMeter| {
            let steps = meter.progress().iter();
            steps.map(|(at, bytes)| (span.since(*at), Bytes::new(*bytes))).collect()
        };
        let details = all().enumerate().map(|(index, (_, state))| FlowDetail {
            mean_window: self.senders.mean_window(index),
            opened: state.totals.opened,
            progress: progress(&state.meter),
        });
        let details = details.collect();
        let counters = self.carrier.medium.counters().clone();
        let (rtt, errors) = self.senders.meter.finish();
        let outcome = Outcome {
            stations: expanded.stations,
            end: span.since(end),
            flows: measured,
            rtt,
            errors: Some(errors),
            lateness: None,
            packets_digest: None,
            frames: Some(frame_counts(&counters)),
            drops: Some(drops(&counters)),
            wall_s: None,
            field: None,
        };
        (SimOutcome { outcome, counters, flows: details }, self.carrier.observer)
    }
}

/// The packets dropped in each place.
fn drops(counters: &Counters) -> Drops {
    Drops {
        hosts: counters.stations.iter().map(|station| station.queue_drops).sum(),
        access_point: counters.access_point.queue_drops,
        wired_up: counters.wired_up.queue_drops + counters.wired_up.losses,
        wired_down: counters.wired_down.queue_drops + counters.wired_down.losses,
        air: counters.contenders().map(|sender| sender.retry_drops).sum(),
    }
}

fn measured(flow: &Flow, state: &FlowState, end: Instant) -> MeasuredFlow {
    let (meter, totals) = (&state.meter, &state.totals);
    let measured = meter.measured(flow, end);
    let stream = match &state.source {
        Source::Tcp(stream) => stream,
        Source::Udp(_) => return measured,
        Source::Quic(_) => {
            return MeasuredFlow {
                algorithm: flow.algorithm.as_deref().map(str::to_owned),
                ..measured
            };
        }
    };
    MeasuredFlow {
        algorithm: Some(stream.algorithm.clone()),
        simulated: Some(SimulatedFlow {
            syn_timeouts: totals.syn_timeouts,
            syn_wait_s: totals.syn_wait.as_secs_f64(),
            longest_stall_s: meter.longest_stall(end).as_secs_f64(),
        }),
        ..measured
    }
}
