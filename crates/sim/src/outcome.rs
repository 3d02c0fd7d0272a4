//! What a run came to.

use wakeai_connection::EventKind;
use wakeai_medium::Counters;
use wakeai_scenario::result::{Drops, MeasuredFlow, SimulatedFlow};
use wakeai_scenario::{Expanded, Flow};
use wakeai_units::{Bytes, Duration, Instant, Segments};
use wakeai_world::reservations::of_flow;
use wakeai_world::{Outcome, SenderMeter, Span};

use crate::connection::Connection;
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

/// Between two samples of a connection.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(1);

/// What the senders do: for the report and the records, and for [`FlowDetail`].
#[derive(Debug)]
pub(crate) struct Senders {
    pub(crate) meter: SenderMeter,
    span: Span,
    /// By flow: the sum of the windows of its samples after the warmup, segments, and their number.
    windows: Vec<(u64, u64)>,
    /// By flow: [`FlowDetail::k`], where it was asked for.
    k: Option<Vec<Vec<(Duration, Duration)>>>,
}

impl Senders {
    pub(crate) fn new(span: Span, meter: SenderMeter, flows: usize, keeps_k: bool) -> Self {
        let k = keeps_k.then(|| vec![Vec::new(); flows]);
        Self { meter, span, windows: vec![(0, 0); flows], k }
    }

    /// An ACK has come to a sender that has something out, and is not handled yet.
    pub(crate) fn sample(&mut self, now: Instant, connection: &mut Connection) {
        let figures = connection.sender.figures();
        if figures.packets_out == Segments::ZERO {
            return;
        }
        connection.next_sample = now + SAMPLE_INTERVAL;
        let flow = connection.flow as usize;
        if self.span.counts(now) {
            let (sum, count) = &mut self.windows[flow];
            *sum += u64::from(figures.cwnd.get());
            *count += 1;
        }
        if let (Some(histories), Some(k)) = (&mut self.k, figures.k)
            && histories[flow].last().is_none_or(|(_, last)| *last != k)
        {
            histories[flow].push((self.span.since(now), k));
        }
        self.meter.sample(now, connection.place(), figures);
    }

    /// Something has happened to a sender.
    pub(crate) fn event(&mut self, now: Instant, connection: &Connection, kind: EventKind) {
        let (place, cwnd) = (connection.place(), connection.sender.figures().cwnd);
        self.meter.event(now, place, kind, cwnd);
        if let Some(code) = kind.error() {
            self.meter.event(now, place, EventKind::Error(code), cwnd);
        }
    }

    fn mean_window(&self, flow: usize) -> Option<Segments> {
        let (sum, count) = self.windows[flow];
        let mean = (sum + count / 2).checked_div(count)?;
        Some(Segments::new(u32::try_from(mean).unwrap_or(u32::MAX)))
    }
}

impl<O: Observer> Simulation<O> {
    /// The figures of a run that ended at `end`; and the observer.
    pub(crate) fn finish(mut self, expanded: Expanded, end: Instant) -> (SimOutcome, O) {
        for connection in self.connections.iter().flatten() {
            self.flows[connection.flow as usize].take_account(connection);
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
        let mut k = self.senders.k.take().into_iter().flatten();
        let details = all().enumerate().map(|(index, (_, state))| FlowDetail {
            mean_window: self.senders.mean_window(index),
            k: k.next().unwrap_or_default(),
            opened: state.totals.opened,
            syn_timeouts: state.totals.syn_timeouts,
            syn_wait: state.totals.syn_wait,
            longest_stall: state.meter.longest_stall(end),
            progress: {
                let steps = state.meter.progress().iter();
                steps.map(|(at, bytes)| (span.since(*at), Bytes::new(*bytes))).collect()
            },
        });
        let details = details.collect();
        let counters = self.carrier.network.counters().clone();
        let (rtt, errors) = self.senders.meter.finish();
        let outcome = Outcome {
            stations: expanded.stations,
            end: span.since(end),
            flows: measured,
            rtt,
            errors,
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
    let (meter, totals) = (&state.meter, &state.totals);
    let measured = meter.measured(flow, end);
    let Source::Tcp(stream) = &state.source else { return measured };
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
