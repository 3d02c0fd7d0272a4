//! The goodput that a station reaches alone (its solo goodput): where the scenario states it, and when a
//! run has measured it.

use std::collections::BTreeMap;

use wakeai_scenario::{ResolvedCondition, StationDirection, first_flows};

use crate::result::{Max, MaxFrom, MeasuredFlow};

/// The solo goodputs that the scenario states.
pub fn given_maxima(condition: &ResolvedCondition) -> BTreeMap<StationDirection, Max> {
    let experiment = &condition.experiment;
    let stations = experiment.expand_stations();
    let given = first_flows(experiment).into_keys().filter_map(|key| {
        let rate = experiment.stations[stations[key.station].group].max?;
        Some((key, Max { mbps: rate.as_mbps_f64(), from: MaxFrom::Given }))
    });
    given.collect()
}

/// Whether the flow of a solo run has reached its speed: in the second half of the time after the warmup it got at
/// most a tenth more than in the first.
pub fn is_settled(flow: &MeasuredFlow) -> bool {
    let second = u128::from(flow.bytes_in_second_half.get());
    let first = u128::from(flow.bytes_after_warmup.get()).saturating_sub(second);
    second * 10 <= first * 11
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::{Direction, FlowKind};
    use wakeai_units::{Bytes, Duration};

    use super::*;

    #[test]
    fn a_flow_is_settled_where_its_second_half_is_at_most_a_tenth_above_the_first() {
        let settled = |first: u64, second: u64| {
            is_settled(&MeasuredFlow {
                station: 0,
                direction: Direction::Up,
                kind: FlowKind::Tcp,
                algorithm: None,
                bytes: Bytes::ZERO,
                bytes_after_warmup: Bytes::new(first + second),
                bytes_in_second_half: Bytes::new(second),
                start: Duration::ZERO,
                completion: None,
                retransmits: 0,
                timeouts: 0,
                avr: None,
                simulated: None,
                reservation: None,
            })
        };
        assert!(settled(0, 0) && settled(100, 90) && settled(100, 110) && settled(9, 0));
        assert!(!settled(100, 111) && !settled(0, 1));
        assert!(settled(1 << 62, 1 << 62));
    }
}
