//! The figures of a run's flows, from the meters of receivers and senders.

use std::collections::BTreeMap;

use wakeai_scenario::Expanded;
use wakeai_scenario::result::MeasuredFlow;
use wakeai_units::{Duration, Instant};
use wakeai_world::reservations::{ReservationLog, of_flow};
use wakeai_world::{ReceiverMeter, SenderMeter, Span};

use crate::traffic::FlowPlan;

/// The figures of the flows of a run that ended at `end`, in the order of the scenario.
/// `reservations` has the reservations by the station whose agent made them.
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

/// A flow starts late if its first data arrives later than this time plus two round trips after its
/// start.
const LATE_START: Duration = Duration::from_secs(1);

/// The flows that started late, each with the time from its start to the arrival of its first data.
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
