//! The figures of a run's flows, from the meters of receivers and senders.

use std::collections::BTreeMap;

use wakeai_scenario::Expanded;
use wakeai_scenario::result::MeasuredFlow;
use wakeai_units::{Duration, Instant};
use wakeai_world::reservations::{ReservationLog, of_flow};
use wakeai_world::{ReceiverMeter, SenderMeter, Span};

use crate::traffic::FlowPlan;

/// The figures of the flows of a run that ended at `end`, in the order of the scenario.
/// `reservations` has the stations that run an agent.
pub(super) fn measured(
    expanded: &Expanded,
    plans: &[FlowPlan],
    meters: &[ReceiverMeter],
    senders: &SenderMeter,
    reservations: &BTreeMap<usize, ReservationLog>,
    end: Instant,
) -> Vec<MeasuredFlow> {
    let all = expanded.flows.iter().zip(plans).zip(meters).enumerate();
    all.map(|(index, ((flow, plan), meter))| MeasuredFlow {
        algorithm: plan.algorithm.clone(),
        reservation: of_flow(flow, |station| reservations.get(&station)),
        ..senders.measured(index, meter.measured(flow, end))
    })
    .collect()
}

/// A note names the flows whose first data arrived later than this and two round trips after their
/// start.
const LATE_START: Duration = Duration::from_secs(1);

/// The flows whose first data arrived late, and the time from their start to its arrival.
pub(super) fn late_starts(
    span: Span,
    plans: &[FlowPlan],
    meters: &[ReceiverMeter],
) -> Vec<(usize, Duration)> {
    let late = plans.iter().zip(meters).filter_map(|(plan, meter)| {
        let first = span.since(meter.first().unwrap_or(span.end));
        tracing::debug!(flow = plan.index, start = %plan.start, first = %first, "first data");
        let late = first.saturating_sub(plan.start);
        (late > plan.round_trip.saturating_mul(2) + LATE_START).then_some((plan.index, late))
    });
    late.collect()
}
