//! What becomes of a station's reservation in a run.

use wakeai_control::{ReservationState as Standing, Share};
use wakeai_scenario::result::{FlowReservation, ReservationStanding};
use wakeai_scenario::{Flow, Node};
use wakeai_units::{Duration, Instant};

/// What an agent has said of its reservation so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    standing: Standing,
    /// The last that was more than waiting.
    result: Option<FlowReservation>,
    admitted: Duration,
    last_look: Option<Instant>,
}

impl Course {
    /// Takes what the agent says now. Whether that is something else than before.
    pub fn look(&mut self, now: Instant, standing: Standing) -> bool {
        let elapsed = self.last_look.map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.last_look = Some(now);
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
    pub fn result(&self) -> FlowReservation {
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

/// What became of a flow's `reserve`, where it has one; `of_station` knows the reservations of those
/// stations that run an agent.
pub fn of_flow<'a>(
    flow: &Flow,
    of_station: impl FnOnce(usize) -> Option<&'a Course>,
) -> Option<FlowReservation> {
    let course = match flow.from {
        Node::Station(station) => of_station(station),
        Node::Server => None,
    };
    let without = FlowReservation::without(ReservationStanding::NoAgent);
    flow.reserve.then(|| course.map_or(without, Course::result))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMITTED: Standing = Standing::Admitted { share: Share::from_percent(40) };

    fn refused() -> Standing {
        let percent = Share::from_percent;
        Standing::Refused { share: percent(40), taken: percent(60), limit: percent(80) }
    }

    /// After one look a second.
    fn after(standings: &[Standing]) -> FlowReservation {
        let mut course = Course::default();
        for (at, standing) in (0..).zip(standings) {
            course.look(Instant::ZERO + Duration::from_secs(at), *standing);
        }
        course.result()
    }

    #[test]
    fn what_was_admitted_once_is_said_and_for_how_long() {
        let found = after(&[Standing::Waiting, ADMITTED, ADMITTED, refused(), Standing::Waiting]);
        assert_eq!(found.standing, ReservationStanding::Admitted);
        assert_eq!((found.share, found.taken, found.admitted_s), (Some(0.4), None, 2.0));
    }

    #[test]
    fn else_the_last_that_was_said() {
        let found = after(&[Standing::Unmeasured, refused(), Standing::Waiting]);
        assert_eq!(found.standing, ReservationStanding::Refused);
        assert_eq!((found.taken, found.limit, found.admitted_s), (Some(0.6), Some(0.8), 0.0));
        assert_eq!(after(&[Standing::None]).standing, ReservationStanding::Waiting);
    }
}
