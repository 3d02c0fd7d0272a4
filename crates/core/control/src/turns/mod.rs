//! Turns: of the stations that have transfers, only a few send at a time.
//!
//! If all transfers send at the same time, all of them end late. If they send one after another,
//! most end early, and the last one ends no later, because the air carries at least as much with
//! few senders. So a station that has a transfer announces a request. The request has a *ticket*,
//! which is one above the largest ticket that the station has received (Lamport's bakery), and the
//! time that the transfer needs alone. The stations are served in the order of tickets, and
//! stations with equal tickets in the order of station ids. A station begins when the stations
//! before it need at most [`OVERLAP`] together. So its window has grown by the time when they end.
//!
//! Announcements may be lost, old or false, so three further rules apply:
//!
//! - A station may have its turn and not announce that it sends, or may fall silent. The others
//!   pass it over after [`PATIENCE`].
//! - A turn ends after [`TURN`] where another station waits. A station that then has more to send
//!   goes to the end of the order with a new ticket.
//! - A trial shows whether the stations before a waiting station leave air unused. A station that
//!   has been the first of the waiting stations for [`FIRST_FOR`] sends for [`TRIAL`]. The trial
//!   succeeds in two cases. In the first case other transfers send, and the station delivers more
//!   than 1.6 times `A / n`: `A` is the rate that it reaches alone, and `n` is the number of
//!   stations whose transfers send, itself included. In the second
//!   case its own rate and all announced rates together use less than 80 % of the air, and its
//!   queueing delay is below 20 ms. After success the station continues to send, and announces
//!   this. For [`FREE_FOR`] the others then do not count the time that the first station in the
//!   order still needs. So the next waiting station may begin, as if one station fewer were before
//!   it.
//!
//! Only transfers that request turns wait. Other connections and stations without agents do not
//! wait.

mod order;
mod request;

use wakeai_units::{Bytes, Duration, Instant, Rate};

use self::order::Order;
pub use self::request::{Permission, Turn, TurnState};
use self::request::{Request, RequestPhase};
use crate::{Observation, PeerView, StationId};

/// A station begins when the stations before it need at most this time together. Each announces the
/// time that it needs alone, and these times are added.
const OVERLAP: Duration = Duration::from_millis(1_500);
/// The largest number of stations that a station ignores after successful trials.
const MOST_LEFT_OUT: usize = 6;
/// A station listens for this long after its request. In this time it receives the requests of
/// others that began at the same time.
const LISTENS_FOR: Duration = Duration::from_millis(600);
/// When another station has its turn and has not announced for this long that it sends, this
/// station passes the other one over.
const PATIENCE: Duration = Duration::from_millis(1_800);
/// The longest turn.
const TURN: Duration = Duration::from_secs(60);
/// The time for which a station has to be the first of the waiting stations before it makes a
/// trial.
const FIRST_FOR: Duration = Duration::from_secs(2);
/// The duration of a trial.
const TRIAL: Duration = Duration::from_secs(1);
/// After a trial of this station or of another one, this station makes no trial for this long. It
/// is also the time for which stations are ignored after a successful trial.
const FREE_FOR: Duration = Duration::from_secs(18);

/// Decides when the transfers of this station may send.
///
/// Order of calls: [`Turns::want`] where transfers begin or end; [`Turns::on_tick`] at each tick;
/// [`Turns::update`] after each message, at each tick and at [`Turns::next_timeout`].
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    station: StationId,
    own: Option<Request>,
    order: Order,
    /// The number of stations before this one that are ignored, and the time until which they are
    /// ignored.
    left_out: (usize, Instant),
    /// The earliest time of the next trial.
    next_trial: Instant,
    /// The time at which [`Self::update`] is due again.
    pub(crate) next_timeout: Option<Instant>,
}

impl Turns {
    pub(crate) fn new(now: Instant, station: StationId) -> Self {
        Self {
            station,
            own: None,
            order: Order::default(),
            left_out: (0, now),
            next_trial: now,
            next_timeout: None,
        }
    }

    /// Takes the number of bytes that the station's transfers have left; `None` where it has no
    /// transfers. A new request goes to the end of the order. `seen` is the observation of the last
    /// tick, and `peers` are the live peers.
    pub(crate) fn want(
        &mut self,
        now: Instant,
        left: Option<Bytes>,
        seen: &Observation,
        peers: &[PeerView],
    ) {
        let time = |left| request::alone(seen).time_for(left).unwrap_or(Duration::MAX);
        match (left, &mut self.own) {
            (None, _) => (self.own, self.next_timeout) = (None, None),
            (Some(left), Some(own)) => own.left = time(left),
            (Some(left), None) => {
                self.order.hear(now, peers);
                let phase = RequestPhase::Listening { until: now + LISTENS_FOR };
                let ticket = self.order.next_ticket();
                self.own = Some(Request { ticket, phase, left: time(left) });
            }
        }
    }

    /// Takes the announcements of the live peers, and decides anew what this station does.
    pub(crate) fn update(&mut self, now: Instant, peers: &[PeerView]) {
        self.order.hear(now, peers);
        let additional =
            self.order.in_state(TurnState::Additional) + usize::from(self.is_additional());
        if additional > 0 && additional >= self.left_out(now) {
            self.left_out = (additional.min(MOST_LEFT_OUT), now + FREE_FOR);
        }
        let alone = peers.is_empty();
        self.next_timeout = None;
        let Some(mut own) = self.own else { return };
        own.phase = self.decide(now, own, alone);
        if let RequestPhase::Sending { since } | RequestPhase::Additional { since } = &mut own.phase
        {
            if now >= *since + TURN && self.order.in_state(TurnState::Waiting) > 0 {
                // The turn is over. The station goes to the end of the order with a new ticket.
                own.ticket = self.order.next_ticket().max(own.ticket.saturating_add(1));
                own.phase = RequestPhase::Waiting { first_since: None };
                own.phase = self.decide(now, own, alone);
            } else {
                *since = if now >= *since + TURN { now } else { *since };
                let over_at = *since + TURN;
                self.wake_at(over_at);
            }
        }
        self.own = Some(own);
    }

    fn decide(&mut self, now: Instant, own: Request, alone: bool) -> RequestPhase {
        let place = self.order.place(now, (own.ticket, self.station), self.left_out(now));
        if let Some(at) = place.changes_at {
            self.wake_at(at);
        }
        if self.order.in_state(TurnState::Trying) > 0 {
            self.next_trial = now + FREE_FOR;
        }
        match own.phase {
            RequestPhase::Listening { until } if now < until && !alone => {
                self.wake_at(until);
                own.phase
            }
            RequestPhase::Sending { .. } | RequestPhase::Additional { .. } => own.phase,
            _ if alone || place.is_turn => RequestPhase::Sending { since: now },
            RequestPhase::Trial { .. } => own.phase,
            RequestPhase::Listening { .. } => self.wait(now, None, place.waiting),
            RequestPhase::Waiting { first_since } => self.wait(now, first_since, place.waiting),
        }
    }

    /// Returns the phase of a waiting station. A trial begins where its time has come. `before` is
    /// the number of waiting stations before this one.
    fn wait(&mut self, now: Instant, first_since: Option<Instant>, before: usize) -> RequestPhase {
        if before > 0 {
            return RequestPhase::Waiting { first_since: None };
        }
        let since = first_since.unwrap_or(now);
        let at = (since + FIRST_FOR).max(self.next_trial);
        if now >= at {
            self.next_trial = now + FREE_FOR;
            return RequestPhase::Trial { since: now, best: Rate::ZERO };
        }
        self.wake_at(at);
        RequestPhase::Waiting { first_since: Some(since) }
    }

    /// Judges a trial at its end, by the station's largest delivery rate in one tick of the trial.
    pub(crate) fn on_tick(&mut self, now: Instant, seen: &Observation) {
        let Some(own) = &mut self.own else { return };
        let RequestPhase::Trial { since, best } = &mut own.phase else { return };
        *best = (*best).max(seen.up.delivery_rate);
        if now >= *since + TRIAL {
            own.phase = if request::finds_unused(seen, *best) {
                RequestPhase::Additional { since: now }
            } else {
                RequestPhase::Waiting { first_since: Some(now) }
            };
        }
    }

    /// What the station's transfers may do. Without a request the permission is to send, so that a
    /// transfer without turns does not wait.
    pub(crate) fn permission(&self) -> Permission {
        self.own.map_or(Permission::Send, |own| own.permission())
    }

    /// The request as this station announces it.
    pub(crate) fn announced(&self) -> Option<Turn> {
        self.own.map(|own| own.announced())
    }

    fn is_additional(&self) -> bool {
        matches!(self.own, Some(Request { phase: RequestPhase::Additional { .. }, .. }))
    }

    /// The number of stations before this one that are ignored now.
    fn left_out(&self, now: Instant) -> usize {
        let (left_out, until) = self.left_out;
        if now < until { left_out } else { 0 }
    }

    fn wake_at(&mut self, at: Instant) {
        self.next_timeout = Some(self.next_timeout.map_or(at, |next| next.min(at)));
    }
}
