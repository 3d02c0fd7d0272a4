//! What a station's flows reserve, and what became of it.

use wakeai_control::{Share, Standing};
use wakeai_scenario::result::{FlowReservation, ReservationStanding};
use wakeai_units::{Duration, Instant, Rate};

use crate::flow::FlowState;

/// The reservation of one station.
#[derive(Debug, Default)]
pub(crate) struct Reserving {
    /// The flows that ask for one.
    pub(crate) flows: Vec<u32>,
    standing: Standing,
    /// The last that was more than waiting.
    result: Option<FlowReservation>,
    admitted: Duration,
    last_tick: Option<Instant>,
}

impl Reserving {
    /// What the flows that are running ask for together.
    pub(crate) fn wanted(&self, now: Instant, flows: &[FlowState]) -> Option<Rate> {
        let flows = self.flows.iter().map(|flow| &flows[*flow as usize]);
        let running = flows.filter(|flow| flow.start <= now && !flow.is_over());
        let sum: Rate = running.filter_map(|flow| flow.reserves).sum();
        (sum > Rate::ZERO).then_some(sum)
    }

    /// Takes what the agent says at a tick. Whether that is something else than before.
    pub(crate) fn on_tick(&mut self, now: Instant, standing: Standing) -> bool {
        let elapsed = self.last_tick.map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.last_tick = Some(now);
        if self.standing.is_admitted() {
            self.admitted += elapsed;
        }
        let changed = self.standing != standing;
        self.standing = standing;
        let was_admitted =
            self.result.is_some_and(|one| one.standing == ReservationStanding::Admitted);
        if let Some(result) = in_result(standing)
            && (standing.is_admitted() || !was_admitted)
        {
            self.result = Some(result);
        }
        changed
    }

    /// What to say of each of its flows.
    pub(crate) fn result(&self) -> FlowReservation {
        let nothing = FlowReservation::without(ReservationStanding::Waiting);
        let result = self.result.unwrap_or(nothing);
        FlowReservation { admitted_s: self.admitted.as_secs_f64(), ..result }
    }
}

fn in_result(standing: Standing) -> Option<FlowReservation> {
    let of = |share: Share| Some(f64::from(share.ppm()) / f64::from(Share::WHOLE.ppm()));
    let without = FlowReservation::without;
    match standing {
        Standing::None | Standing::Waiting => None,
        Standing::Unmeasured => Some(without(ReservationStanding::Unmeasured)),
        Standing::Refused { share, taken, limit } => Some(FlowReservation {
            share: of(share),
            taken: of(taken),
            limit: of(limit),
            ..without(ReservationStanding::Refused)
        }),
        Standing::Admitted { share } => {
            Some(FlowReservation { share: of(share), ..without(ReservationStanding::Admitted) })
        }
    }
}

/// The value of an event row.
pub(crate) fn event_value(standing: Standing) -> u32 {
    match standing {
        Standing::None | Standing::Waiting => 0,
        Standing::Admitted { .. } => 1,
        Standing::Refused { .. } => 2,
        Standing::Unmeasured => 3,
    }
}
