//! From what was received and watched to what a run reports of its flows.

use std::collections::BTreeMap;

use wakeai_scenario::figures::AvrMeter;
use wakeai_scenario::result::MeasuredFlow;
use wakeai_scenario::{Expanded, Experiment, Flow, FlowKind};
use wakeai_units::Duration;
use wakeai_world::reservations::{Course, of_flow};

use crate::traffic::{FlowPlan, Received};
use crate::watch::FlowCounts;

/// What the figures of a run are of.
#[derive(Clone, Copy)]
pub(super) struct Measures<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) expanded: &'a Expanded,
    pub(super) plans: &'a [FlowPlan],
    /// The end of the run.
    pub(super) end: Duration,
    /// Of the stations that run an agent.
    pub(super) reservations: &'a BTreeMap<usize, Course>,
}

/// The flows in the order of the scenario.
pub(super) fn measured(
    measures: &Measures<'_>,
    received: &[Received],
    counts: &[FlowCounts],
) -> Vec<MeasuredFlow> {
    let Measures { expanded, plans, .. } = *measures;
    let all = expanded.flows.iter().zip(plans).zip(received).zip(counts);
    all.map(|(((flow, plan), received), counts)| MeasuredFlow {
        station: flow.station(),
        direction: flow.direction(),
        kind: flow.kind,
        algorithm: plan.algorithm.clone(),
        bytes: received.bytes,
        bytes_after_warmup: received.bytes_in_window,
        start: plan.start,
        completion: received.completed.map(|at| at.saturating_sub(plan.start)),
        retransmits: counts.retransmits,
        timeouts: counts.timeouts,
        avr: avr(measures, flow, received),
        simulated: None,
        reservation: of_flow(flow, |station| measures.reservations.get(&station)),
    })
    .collect()
}

/// The share of time at or above the target, where a TCP flow has one.
fn avr(measures: &Measures<'_>, flow: &Flow, received: &Received) -> Option<f64> {
    let target = flow.rate.filter(|_| flow.kind == FlowKind::Tcp)?;
    let mut meter = AvrMeter::new(target, measures.experiment.warmup.saturating_sub(flow.start));
    for (at, bytes) in &received.progress {
        meter.on_received(at.saturating_sub(flow.start), *bytes);
    }
    let end = received.completed.unwrap_or(measures.end);
    meter.finish(end.saturating_sub(flow.start))
}

/// What a flow's first data may be late by beyond two round trips, before the user is told.
const STRAGGLING: Duration = Duration::from_secs(1);

/// The flows whose first data came late, and how long after their start.
pub(super) fn stragglers(measures: &Measures<'_>, received: &[Received]) -> Vec<(usize, Duration)> {
    let Measures { experiment, expanded, plans, .. } = *measures;
    let late = plans.iter().zip(received).filter_map(|(plan, received)| {
        let rtt = super::traffic::round_trip(experiment, expanded, plan.index);
        let expected = plan.start + rtt.saturating_mul(2) + STRAGGLING;
        let first = received.first.unwrap_or(experiment.duration);
        tracing::debug!(flow = plan.index, start = %plan.start, first = %first, "first data");
        let late = first.saturating_sub(plan.start);
        (first > expected).then_some((plan.index, late))
    });
    late.collect()
}
