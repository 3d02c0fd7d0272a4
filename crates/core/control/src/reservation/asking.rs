//! This station's request for a reservation. Decides when the request is announced, and which
//! ticket it has.

use wakeai_units::{Duration, Instant, Rate};

use crate::{Observation, Reservation, ReservationState, Share};

/// The time for which a station listens after its start, before it makes a request. In this time it
/// receives the tickets of earlier requests.
const LISTENS_FOR: Duration = Duration::from_secs(2);
/// A station that has sent nothing for this long withdraws its request.
const QUIET_FOR: Duration = Duration::from_secs(2);
/// A low estimate of the rate that a station reaches alone, percent of its PHY rate. TCP gets 45 %
/// of 54 Mbit/s without aggregation, and a larger part with aggregation.
pub(super) const EFFICIENCY_PERCENT: u64 = 40;

/// The rate that this station wants, and the announced request for this rate.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    started: Instant,
    pub(super) wanted: Option<Rate>,
    last_data: Option<Instant>,
    /// The request to announce. Its claim (the share of the airtime that the others have to leave
    /// free) is always zero in this field: `Reservations::announced` puts in the claim on which
    /// `ClaimControl` has decided.
    pub(super) asked: Option<Reservation>,
}

impl Asking {
    pub(super) fn new(now: Instant) -> Self {
        Self { started: now, wanted: None, last_data: None, asked: None }
    }

    /// Sets the wanted rate. A change of the rate leads to a new request with a new ticket.
    pub(super) fn want(&mut self, rate: Option<Rate>) {
        self.wanted = rate.filter(|rate| *rate > Rate::ZERO);
        self.asked = self.asked.filter(|asked| Some(asked.rate) == self.wanted);
    }

    /// Makes, keeps or withdraws the request. `last_ticket` is the largest ticket among the peers'
    /// requests.
    pub(super) fn on_tick(&mut self, now: Instant, seen: &Observation, last_ticket: u64) {
        if seen.up.is_active() {
            self.last_data = Some(now);
        }
        let has_data = self.last_data.is_some_and(|at| now.saturating_since(at) < QUIET_FOR);
        let listened = now.saturating_since(self.started) >= LISTENS_FOR;
        if !has_data || !listened {
            self.asked = None;
        } else if self.asked.is_none() {
            self.asked = self.wanted.and_then(|rate| ask(rate, seen, last_ticket));
        }
    }

    /// The state while no request is announced.
    pub(super) fn state(&self, seen: &Observation) -> ReservationState {
        match self.wanted {
            None => ReservationState::None,
            Some(rate) if self.last_data.is_some() && share_of(rate, seen).is_none() => {
                ReservationState::Unmeasured
            }
            Some(_) => ReservationState::Waiting,
        }
    }
}

fn ask(rate: Rate, seen: &Observation, last_ticket: u64) -> Option<Reservation> {
    let ticket = last_ticket.saturating_add(1);
    let share = share_of(rate, seen)?;
    Some(Reservation { rate, share, ticket, claim: Share::ZERO, short: false })
}

/// The share of the airtime that `rate` takes: `rate / Max_i`, with `Max_i` the rate that the
/// station reaches alone. Where `Max_i` is unknown, a low estimate from the PHY rate is used. The
/// result is `None` where the PHY rate is unknown, too.
fn share_of(rate: Rate, seen: &Observation) -> Option<Share> {
    let known = |rate: &Rate| *rate > Rate::ZERO;
    let by_phy = |rate: Rate| rate.mul_div(EFFICIENCY_PERCENT, 100);
    let alone = seen.up.max_rate.filter(known);
    let alone = alone.or_else(|| seen.link_rate.and_then(by_phy).filter(known));
    Share::of(rate, alone?).map(|share| share.max(Share::from_ppm(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::example;
    use crate::{ConnectionView, OwnTraffic};

    fn at(half_seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(500) * half_seconds
    }

    fn seen(sending: bool) -> Observation {
        let connections = vec![ConnectionView { active: sending, ..example() }];
        let max_rate = Some(Rate::from_mbps(24));
        let up = OwnTraffic { connections, max_rate, ..OwnTraffic::default() };
        Observation { up, ..Observation::default() }
    }

    fn wants(mbps: u64) -> Asking {
        let mut asking = Asking::new(at(0));
        asking.want(Some(Rate::from_mbps(mbps)));
        asking
    }

    #[test]
    fn it_listens_first_and_takes_the_next_ticket() {
        let mut asking = wants(6);
        let seen = seen(true);
        asking.on_tick(at(3), &seen, 4);
        assert_eq!((asking.asked, asking.state(&seen)), (None, ReservationState::Waiting));
        asking.on_tick(at(4), &seen, 4);
        let asked = asking.asked.unwrap();
        assert_eq!((asked.ticket, asked.share), (5, Share::from_percent(25)));
    }

    #[test]
    fn a_station_that_stops_sending_gives_up_and_asks_again() {
        let mut asking = wants(6);
        asking.on_tick(at(4), &seen(true), 4);
        asking.on_tick(at(7), &seen(false), 4);
        assert!(asking.asked.is_some(), "a pause of less than 2 s keeps the request");
        asking.on_tick(at(8), &seen(false), 4);
        assert_eq!(asking.asked, None);
        asking.on_tick(at(9), &seen(true), 4);
        assert!(asking.asked.is_some());
    }

    #[test]
    fn another_rate_gets_a_new_ticket() {
        let mut asking = wants(6);
        asking.on_tick(at(4), &seen(true), 4);
        asking.want(Some(Rate::from_mbps(6)));
        assert!(asking.asked.is_some());
        asking.want(Some(Rate::from_mbps(7)));
        assert_eq!(asking.asked, None);
        asking.want(None);
        asking.on_tick(at(5), &seen(true), 4);
        assert_eq!((asking.asked, asking.state(&seen(true))), (None, ReservationState::None));
    }

    #[test]
    fn without_a_measured_rate_the_phy_rate_gives_a_low_estimate() {
        let mut asking = wants(6);
        let mut seen = seen(true);
        seen.up.max_rate = None;
        asking.on_tick(at(4), &seen, 4);
        assert_eq!((asking.asked, asking.state(&seen)), (None, ReservationState::Unmeasured));
        seen.link_rate = Some(Rate::from_mbps(60));
        asking.on_tick(at(5), &seen, 4);
        assert_eq!(asking.asked.unwrap().share, Share::from_percent(25));
    }
}
