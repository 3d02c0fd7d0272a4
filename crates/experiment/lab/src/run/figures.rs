//! The figures of a run's flows, from the meters of receivers and senders.

use std::collections::BTreeMap;

use wakeai_results::result::MeasuredFlow;
use wakeai_scenario::Expanded;
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

/// A flow starts late if the lab opens its connection later than this after its start.
const LATE_START: Duration = Duration::from_secs(1);

/// The flows that started late in a run that ended at `end`, each with the time from its start until the lab
/// opened its connection (for TCP: sent the first SYN), or until the end of the run. `opened` has this time
/// for each flow whose connection was opened. How long the SYN waits then, and whether it is lost, is decided by the queues of
/// the scenario.
pub(super) fn late_starts(
    span: Span,
    plans: &[FlowPlan],
    opened: &[Option<Instant>],
    end: Instant,
) -> Vec<(usize, Duration)> {
    let late = plans.iter().zip(opened).filter_map(|(plan, opened)| {
        let late = opened.unwrap_or(end).saturating_since(span.origin + plan.start);
        tracing::debug!(flow = plan.index, start = %plan.start, %late, "opened");
        (late > LATE_START).then_some((plan.index, late))
    });
    late.collect()
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;
    use crate::traffic::{SenderFacts, plan};

    #[test]
    fn a_flow_starts_late_where_the_lab_opens_its_connection_late_whatever_arrives() {
        let text = "name = \"x\"\nduration = \"20s\"\naccess_point = { standard = \"802.11g\" }\n\
                    stations = [{ name = \"a\", count = 4 }]\n\
                    flows = [{ from = \"a\", to = \"server\", start = \"5s\" }]\n";
        let scenario = Scenario::parse(text).unwrap();
        let facts = SenderFacts { cubic_by_default: true, bounded: false, behind: None };
        let plans = plan(&scenario, &scenario.expand(1), &[facts; 5]).unwrap();
        let origin = Instant::ZERO + Duration::from_secs(100);
        let span = Span::new(origin, &scenario);
        let at = |millis| Some(origin + Duration::from_millis(millis));
        let opened = [at(5_000), at(6_000), at(6_001), None];
        let late = late_starts(span, &plans, &opened, span.end);
        assert_eq!(late, [(2, Duration::from_millis(1_001)), (3, Duration::from_secs(15))]);
        let ends_before_the_start = origin + Duration::from_secs(4);
        assert!(late_starts(span, &plans, &[None; 4], ends_before_the_start).is_empty());
    }
}
