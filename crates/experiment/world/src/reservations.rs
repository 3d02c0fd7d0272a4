//! Reservations: the rate that each station asks its peers to leave free, and whether they did so
//! in a run.

use wakeai_control::{ReservationState, Share};
use wakeai_results::result::{FlowReservation, ReservationOutcome};
use wakeai_scenario::{Expanded, Flow, Node};
use wakeai_units::{Duration, Instant, Rate};

/// For each station, the sum of the rates that its flows reserve; `None` where none reserves.
pub fn reserved(expanded: &Expanded) -> Vec<Option<Rate>> {
    let mut rates = vec![None; expanded.stations.len()];
    for flow in expanded.flows.iter().filter(|flow| flow.reserve) {
        if let (Node::Station(station), Some(rate)) = (flow.from, flow.rate) {
            let sum: &mut Option<Rate> = &mut rates[station];
            *sum = Some(sum.unwrap_or(Rate::ZERO).saturating_add(rate));
        }
    }
    rates
}

/// The states of one station's reservation in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReservationLog {
    state: ReservationState,
    /// The result: the last state other than waiting. A reservation that was ever admitted stays
    /// admitted here.
    result: Option<FlowReservation>,
    admitted: Duration,
    updated_at: Option<Instant>,
}

impl ReservationLog {
    /// Takes the reservation's state at `now`, and returns whether it has changed.
    pub fn update(&mut self, now: Instant, state: ReservationState) -> bool {
        let elapsed = self.updated_at.map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.updated_at = Some(now);
        if self.state.is_admitted() {
            self.admitted += elapsed;
        }
        let changed = self.state != state;
        self.state = state;
        let was_admitted =
            self.result.is_some_and(|one| one.outcome == ReservationOutcome::Admitted);
        if let Some(result) = in_result(state)
            && (state.is_admitted() || !was_admitted)
        {
            self.result = Some(result);
        }
        changed
    }

    /// The result for each flow of the reservation.
    pub fn result(&self) -> FlowReservation {
        let waiting = FlowReservation::without(ReservationOutcome::Waiting);
        let result = self.result.unwrap_or(waiting);
        FlowReservation { admitted_s: self.admitted.as_secs_f64(), ..result }
    }
}

fn in_result(state: ReservationState) -> Option<FlowReservation> {
    // The largest number stands for all larger shares, too.
    let of = |share: Share| {
        let ppm = Some(share.ppm()).filter(|ppm| *ppm < u32::MAX)?;
        Some(f64::from(ppm) / f64::from(Share::WHOLE.ppm()))
    };
    let without = FlowReservation::without;
    match state {
        ReservationState::None | ReservationState::Waiting => None,
        ReservationState::Unmeasured => Some(without(ReservationOutcome::Unmeasured)),
        ReservationState::Refused { share, taken, limit } => Some(FlowReservation {
            share: of(share),
            taken: of(taken),
            limit: of(limit),
            ..without(ReservationOutcome::Refused)
        }),
        ReservationState::Admitted { share } => {
            Some(FlowReservation { share: of(share), ..without(ReservationOutcome::Admitted) })
        }
    }
}

/// The result of a flow's `reserve`; `None` for a flow without that key. `of_station` returns the
/// log of a station, if it runs an agent.
pub fn of_flow<'a>(
    flow: &Flow,
    of_station: impl FnOnce(usize) -> Option<&'a ReservationLog>,
) -> Option<FlowReservation> {
    let log = match flow.from {
        Node::Station(station) => of_station(station),
        Node::Server => None,
    };
    let without = FlowReservation::without(ReservationOutcome::NoAgent);
    flow.reserve.then(|| log.map_or(without, ReservationLog::result))
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;

    #[test]
    fn a_station_reserves_the_sum_of_its_flows_rates() {
        let text = r#"
            name = "x"
            duration = "60s"
            access_point = { standard = "802.11g" }
            stations = [{ name = "camera", count = 2 }]
            flows = [
                { from = "camera", to = "server", rate = "2Mbit/s", reserve = true },
                { from = "camera1", to = "server", rate = "3Mbit/s", reserve = true },
                { from = "camera", to = "server" },
            ]
        "#;
        let rates = [Some(Rate::from_mbps(5)), Some(Rate::from_mbps(2))];
        assert_eq!(reserved(&Scenario::parse(text).unwrap().expand(1)), rates);
    }

    const ADMITTED: ReservationState =
        ReservationState::Admitted { share: Share::from_percent(40) };

    fn refused() -> ReservationState {
        let percent = Share::from_percent;
        ReservationState::Refused { share: percent(40), taken: percent(60), limit: percent(80) }
    }

    /// The result after these states, which are updated once per second.
    fn after(states: &[ReservationState]) -> FlowReservation {
        let mut log = ReservationLog::default();
        for (at, state) in (0..).zip(states) {
            log.update(Instant::ZERO + Duration::from_secs(at), *state);
        }
        log.result()
    }

    #[test]
    fn a_reservation_admitted_once_stays_the_result_with_its_time() {
        let found = after(&[
            ReservationState::Waiting,
            ADMITTED,
            ADMITTED,
            refused(),
            ReservationState::Waiting,
        ]);
        assert_eq!(found.outcome, ReservationOutcome::Admitted);
        assert_eq!((found.share, found.taken, found.admitted_s), (Some(0.4), None, 2.0));
    }

    #[test]
    fn a_share_too_large_for_its_number_is_null_and_the_words_say_so() {
        let refused = |share| {
            after(&[ReservationState::Refused { share, taken: share, limit: Share::WHOLE }])
        };
        let saturated = Share::of(Rate::from_mbps(5), Rate::from_bps(1_000)).unwrap();
        let found = refused(saturated);
        assert_eq!((found.share, found.taken, found.limit), (None, None, Some(1.0)));
        assert_eq!(
            found.words(),
            "refused: over 429497 % asked, over 429497 % taken, 100.0 % in all"
        );
        let largest = refused(Share::from_ppm(u32::MAX - 1));
        assert_eq!(largest.share, Some(FlowReservation::LARGEST_SHARE));
    }

    #[test]
    fn without_admission_the_last_state_is_the_result() {
        let found = after(&[ReservationState::Unmeasured, refused(), ReservationState::Waiting]);
        assert_eq!(found.outcome, ReservationOutcome::Refused);
        assert_eq!((found.taken, found.limit, found.admitted_s), (Some(0.6), Some(0.8), 0.0));
        assert_eq!(after(&[ReservationState::None]).outcome, ReservationOutcome::Waiting);
    }
}
