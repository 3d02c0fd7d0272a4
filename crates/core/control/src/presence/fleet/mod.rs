//! Queries and answers of a fleet. With a query a station asks all stations of its access point for
//! their figures, and the others send answers.
//!
//! A station asks only on request. Its query has a challenge, a number that is unpredictable
//! without the group key. The others broadcast their figures with this challenge, so an answer
//! cannot be older than the query. A station answers only stations in its table of peers. It
//! answers at a random time in a window. The window grows with the number of stations, so that all
//! answers together take at most 0.5 % of the air. It is never longer than 300 s, even where the
//! answers then take more than 0.5 % of the air. `presence::schedule` counts the queries and answers of a station like its presence
//! messages.

mod codec;
mod figures;

use std::collections::BTreeMap;

use wakeai_units::{Duration, Instant};

pub(super) use codec::MOST_QUERIES;
pub use codec::{ANSWER_LEN, FleetCodec, FleetContent, FleetMessage, QUERY_LEN};
pub use figures::{AgentFigures, FAULT_KINDS, Label, StationFigures};

use super::schedule::{AIR_PARTS, splitmix};
use super::{BootId, Challenge};
use crate::StationId;

/// The longest window for answers. It is long enough for 1024 stations at a basic rate (the rate of
/// broadcasts) of 6 Mbit/s.
const LONGEST_WINDOW: Duration = Duration::from_secs(300);
/// A station waits for answers for the sum of its window, a quarter of the window, and this time.
/// The additional time is for stations with a longer window: each station computes the window from
/// the number of stations that it knows, and others may know more.
const GRACE: Duration = Duration::from_secs(1);
/// An answer is kept for this long, so that it can be shown where the answer to a later query is
/// lost.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// The window in which `stations` stations answer. An answer takes `cost` of airtime.
pub(super) fn window(stations: usize, cost: Duration) -> Duration {
    let parts = AIR_PARTS.saturating_mul(stations as u64);
    cost.saturating_mul(parts).min(LONGEST_WINDOW)
}

/// The state of this station's last query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetQuery {
    /// The place of the query among this station's queries, from 1.
    pub number: u64,
    /// The time since the query was sent; `None` while it is not sent yet.
    pub age: Option<Duration>,
    /// The longest time until the end of the query; `None` while it is not sent yet.
    pub left: Option<Duration>,
    /// Whether the query has ended: all live peers have answered, or the time for answers is over.
    pub done: bool,
}

/// The last answer of a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetAnswer {
    /// The station.
    pub station: StationId,
    /// The [`FleetQuery::number`] of the answered query.
    pub query: u64,
    /// The time since the answer was received.
    pub age: Duration,
    /// The difference between the clocks of that station and of this one; `None` unless both know
    /// the time.
    pub clock: Option<ClockOffset>,
    /// The figures.
    pub figures: StationFigures,
}

/// The difference between the clocks of two stations, from a query and its answer (Cristian, 1989).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The time by which the other clock is ahead, ns; negative where it is behind.
    pub ahead_nanos: i64,
    /// The largest error of `ahead_nanos`: half of the round trip.
    pub error: Duration,
}

impl ClockOffset {
    /// The offset of another station's clock. That clock showed `theirs` when the other station
    /// sent the answer. Between the arrival of the query there and this answer, the time `held`
    /// passed. This station's clock showed `asked` when the query was sent, and `ours` when the
    /// answer came.
    fn new(asked: Duration, held: Duration, theirs: Duration, ours: Duration) -> Option<Self> {
        let nanos = |span: Duration| i128::from(span.as_nanos());
        let round_trip = nanos(ours) - nanos(asked) - nanos(held);
        let middle = (nanos(ours) + nanos(asked) + nanos(held)) / 2;
        let ahead_nanos = i64::try_from(nanos(theirs) - middle).ok()?;
        let error = Duration::from_nanos(u64::try_from(round_trip).ok()? / 2);
        Some(Self { ahead_nanos, error })
    }
}

struct Asking {
    number: u64,
    challenge: Challenge,
    sent: Option<Sent>,
}

#[derive(Clone, Copy)]
struct Sent {
    at: Instant,
    until: Instant,
}

struct Told {
    query: u64,
    at: Instant,
    clock: Option<ClockOffset>,
    figures: Box<StationFigures>,
}

struct Owed {
    station: StationId,
    challenge: Challenge,
    heard: Instant,
}

/// The result of taking an authentic query or answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The query will be answered.
    Query,
    /// The answer was taken in.
    Answer,
    /// The boot id of the query's sender is not in the table of peers.
    Unproven,
    /// The answer is to a query of another station, or to an earlier query of this station.
    Unasked,
    /// The query is not new, or the answer is the second one of its station to the same query.
    Replayed,
    /// There is no room for the query or the answer.
    Full,
}

/// The queries of this station, and the queries of others that this station has to answer.
///
/// Order of calls: [`Fleet::ask`] where the figures are wanted, and [`Fleet::handle_query`] and
/// [`Fleet::handle_answer`] for authentic messages. When [`Fleet::next_timeout`] has come:
/// [`Fleet::take_query`] and [`Fleet::take_answer`] where the schedule affords a message, or
/// a later [`Fleet::not_before`] where it does not.
pub(super) struct Fleet {
    key: [u8; 32],
    boot: BootId,
    random: u64,
    limit: usize,
    /// The number of queries so far.
    asked: u64,
    asking: Option<Asking>,
    /// The last answer of each station. At most `limit` answers are kept.
    told: BTreeMap<StationId, Told>,
    /// The queries that this station has to answer: at most one per station, and [`MOST_QUERIES`]
    /// in all.
    owed: Vec<Owed>,
    answer_at: Instant,
    /// The earliest time of the next query or answer.
    pub(super) not_before: Instant,
}

impl Fleet {
    pub(super) fn new(group_key: &[u8; 32], boot: BootId, limit: usize) -> Self {
        let key = blake3::derive_key("Wakeai fleet v1 query", group_key);
        let random = boot.0.iter().fold(1_u64, |seed, byte| splitmix(seed ^ u64::from(*byte)));
        Self {
            key,
            boot,
            random,
            limit,
            asked: 0,
            asking: None,
            told: BTreeMap::new(),
            owed: Vec::new(),
            answer_at: Instant::ZERO,
            not_before: Instant::ZERO,
        }
    }

    /// Plans a query, unless one is under way. Returns the number of the query. `peers` are the
    /// live peers.
    pub(super) fn ask(&mut self, now: Instant, peers: impl Iterator<Item = StationId>) -> u64 {
        if self.query(now, peers).is_none_or(|query| query.done) {
            self.asked += 1;
            let challenge = Challenge::new(&self.key, self.boot, self.asked);
            self.asking = Some(Asking { number: self.asked, challenge, sent: None });
        }
        self.asked
    }

    /// The state of the last query. `peers` are the live peers.
    pub(super) fn query(
        &self,
        now: Instant,
        peers: impl Iterator<Item = StationId>,
    ) -> Option<FleetQuery> {
        let Asking { number, sent, .. } = *self.asking.as_ref()?;
        let Some(Sent { at, until }) = sent else {
            return Some(FleetQuery { number, age: None, left: None, done: false });
        };
        let told = |peer| self.told.get(&peer).is_some_and(|told| told.query == number);
        // Without known peers the query lasts its whole time, because unknown stations may answer.
        let mut peers = peers.peekable();
        let done = now >= until || peers.peek().is_some() && peers.all(told);
        let left = if done { Duration::ZERO } else { until.saturating_since(now) };
        Some(FleetQuery { number, age: Some(now.saturating_since(at)), left: Some(left), done })
    }

    /// The last answer of each station.
    pub(super) fn answers(&self, now: Instant) -> impl Iterator<Item = FleetAnswer> {
        self.told.iter().map(move |(station, told)| FleetAnswer {
            station: *station,
            query: told.query,
            age: now.saturating_since(told.at),
            clock: told.clock,
            figures: *told.figures,
        })
    }

    /// Removes the answers that are older than `KEPT_FOR`.
    pub(super) fn expire(&mut self, now: Instant) {
        self.told.retain(|_, told| now.saturating_since(told.at) <= KEPT_FOR);
    }

    /// Takes a query of a peer. This station will answer the query within `window`.
    pub(super) fn handle_query(
        &mut self,
        now: Instant,
        station: StationId,
        challenge: Challenge,
        window: Duration,
    ) -> Taken {
        self.owed.retain(|owed| owed.station != station);
        if self.owed.len() == MOST_QUERIES {
            return Taken::Full;
        }
        if self.owed.is_empty() {
            self.random = splitmix(self.random);
            let part = window.mul_div(self.random >> 32, 1 << 32).unwrap_or(Duration::ZERO);
            self.answer_at = now + part;
        }
        self.owed.push(Owed { station, challenge, heard: now });
        Taken::Query
    }

    /// Takes an answer of another station. `ours` is this station's Unix time now, and `theirs` is
    /// the Unix time in the answer.
    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        station: StationId,
        queries: &[(Challenge, Duration)],
        figures: Box<StationFigures>,
        (ours, theirs): (Option<Duration>, Option<Duration>),
    ) -> Taken {
        let sent = self.asking.as_ref().and_then(|asking| Some((asking, asking.sent?)));
        let Some((asking, sent)) = sent else { return Taken::Unasked };
        let Some((_, held)) = queries.iter().find(|(of, _)| *of == asking.challenge) else {
            return Taken::Unasked;
        };
        let query = asking.number;
        if self.told.get(&station).is_some_and(|told| told.query == query) {
            return Taken::Replayed;
        }
        if self.told.len() >= self.limit && !self.told.contains_key(&station) {
            let oldest = self.told.iter().min_by_key(|(_, told)| told.at);
            match oldest.map(|(id, told)| (*id, told.query)) {
                Some((id, of)) if of < query => self.told.remove(&id),
                _ => return Taken::Full,
            };
        }
        let clock = ours.zip(theirs).and_then(|(ours, theirs)| {
            let asked = ours.saturating_sub(now.saturating_since(sent.at));
            ClockOffset::new(asked, *held, theirs, ours)
        });
        self.told.insert(station, Told { query, at: now, clock, figures });
        Taken::Answer
    }

    /// The time at which the next query or answer is due; `None` where none is planned.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let query = self.asking.as_ref().filter(|asking| asking.sent.is_none());
        let query = query.map(|_| self.not_before);
        let answer = (!self.owed.is_empty()).then(|| self.answer_at.max(self.not_before));
        query.into_iter().chain(answer).min()
    }

    /// Takes the planned query, which the caller sends now. `window` is the window for the answers,
    /// as this station computes it.
    pub(super) fn take_query(&mut self, now: Instant, window: Duration) -> Option<Challenge> {
        let asking = self.asking.as_mut().filter(|asking| asking.sent.is_none())?;
        // Other stations may know more stations, and then have a longer window.
        let until = now + window.saturating_add(window / 4).saturating_add(GRACE);
        asking.sent = Some(Sent { at: now, until });
        Some(asking.challenge)
    }

    /// Takes the queries that this station answers now, each with the time since its arrival.
    pub(super) fn take_answer(&mut self, now: Instant) -> Option<Vec<(Challenge, Duration)>> {
        if self.owed.is_empty() || now < self.answer_at {
            return None;
        }
        let owed = self.owed.drain(..);
        Some(owed.map(|owed| (owed.challenge, now.saturating_since(owed.heard))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn fleet(limit: usize) -> Fleet {
        Fleet::new(&[7; 32], BootId([1; 16]), limit)
    }

    fn none() -> impl Iterator<Item = StationId> {
        std::iter::empty()
    }

    /// Asks at the time `now`, and returns the challenge in the query.
    fn asks(fleet: &mut Fleet, now: Instant) -> Challenge {
        fleet.ask(now, none());
        fleet.take_query(now, WINDOW).expect("it is due")
    }

    fn answer(fleet: &mut Fleet, now: Instant, station: u64, to: Challenge) -> Taken {
        let queries = [(to, Duration::ZERO)];
        let figures = Box::default();
        fleet.handle_answer(now, StationId(station), &queries, figures, (None, None))
    }

    #[test]
    fn a_station_without_peers_waits_also_where_it_has_earlier_answers() {
        let mut fleet = fleet(10);
        let first = asks(&mut fleet, at(0));
        assert_eq!(answer(&mut fleet, at(1), 5, first), Taken::Answer);
        let later = at(30_000);
        let _ = asks(&mut fleet, later);
        assert!(!fleet.query(later, none()).expect("it asks").done);
        let known = [StationId(5)].into_iter();
        assert!(!fleet.query(later, known).expect("it asks").done, "that answer was to the first");
        assert!(fleet.query(at(60_000), none()).expect("it asked").done);
    }

    #[test]
    fn an_answer_counts_once_and_only_for_the_last_query() {
        let mut fleet = fleet(10);
        assert_eq!(answer(&mut fleet, at(0), 5, Challenge(1)), Taken::Unasked, "nothing was asked");
        let first = asks(&mut fleet, at(0));
        assert_eq!(answer(&mut fleet, at(1), 5, Challenge(first.0 ^ 1)), Taken::Unasked);
        assert_eq!(answer(&mut fleet, at(2), 5, first), Taken::Answer);
        assert_eq!(answer(&mut fleet, at(3), 5, first), Taken::Replayed);
        let second = asks(&mut fleet, at(20_000));
        assert_ne!(first, second);
        assert_eq!(
            answer(&mut fleet, at(20_001), 6, first),
            Taken::Unasked,
            "to the earlier query"
        );
        let known: Vec<_> = fleet.answers(at(20_001)).collect();
        assert_eq!((known.len(), known[0].query), (1, 1), "the earlier answer is kept");
        assert_eq!(known[0].age, Duration::from_millis(19_999));
    }

    #[test]
    fn a_query_ends_when_all_peers_have_answered_or_its_time_is_over() {
        let peers = || [5, 6].into_iter().map(StationId);
        let mut fleet = fleet(10);
        assert_eq!(fleet.ask(at(0), peers()), 1);
        let waiting = fleet.query(at(0), peers()).expect("it was asked");
        assert_eq!((waiting.age, waiting.done), (None, false));
        let challenge = fleet.take_query(at(0), WINDOW).expect("it is due");
        assert_eq!(fleet.take_query(at(0), WINDOW), None, "sent once");
        answer(&mut fleet, at(1), 5, challenge);
        assert!(!fleet.query(at(2), peers()).unwrap().done);
        assert_eq!(fleet.ask(at(2), peers()), 1, "another client joins it");
        answer(&mut fleet, at(3), 6, challenge);
        assert!(fleet.query(at(4), peers()).unwrap().done);
        assert_eq!(fleet.ask(at(5), peers()), 2);
        fleet.take_query(at(5), WINDOW);
        let running = fleet.query(at(13_000), peers()).unwrap();
        assert!(!running.done && running.left == Some(Duration::from_millis(505)), "{running:?}");
        assert!(fleet.query(at(13_505), peers()).unwrap().done);
    }

    #[test]
    fn answers_take_bounded_memory_and_old_ones_make_room() {
        let mut fleet = fleet(4);
        let first = asks(&mut fleet, at(0));
        for station in 0..1_000 {
            let taken = answer(&mut fleet, at(station), station, first);
            assert_eq!(taken, if station < 4 { Taken::Answer } else { Taken::Full });
        }
        let second = asks(&mut fleet, at(20_000));
        for station in 100..1_000 {
            let taken = answer(&mut fleet, at(20_000 + station), station, second);
            assert_eq!(taken, if station < 104 { Taken::Answer } else { Taken::Full });
            assert_eq!(fleet.told.len(), 4);
        }
        fleet.expire(at(20_103) + KEPT_FOR);
        assert_eq!(fleet.told.len(), 1, "only the last answer is young enough");
    }

    #[test]
    fn one_answer_answers_the_queries_of_four_stations() {
        let mut fleet = fleet(10);
        for station in 0..6 {
            let challenge = Challenge(100 + station);
            let taken = fleet.handle_query(at(station), StationId(station), challenge, WINDOW);
            assert_eq!(taken, if station < 4 { Taken::Query } else { Taken::Full });
        }
        // A later query of a station replaces its earlier query.
        assert_eq!(fleet.handle_query(at(7), StationId(0), Challenge(7), WINDOW), Taken::Query);
        let due = fleet.next_timeout().expect("an answer is due");
        assert!(due < at(0) + WINDOW);
        assert_eq!(fleet.take_answer(at(0)), None, "not yet");
        let answered = fleet.take_answer(due.max(at(8))).expect("it is due");
        let mut numbers: Vec<u64> = answered.iter().map(|(challenge, _)| challenge.0).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [7, 101, 102, 103]);
        assert_eq!(fleet.next_timeout(), None);
    }

    #[test]
    fn the_offset_of_a_clock_is_found_within_half_of_the_round_trip() {
        let millis = Duration::from_millis;
        for ahead in [-86_400_000_i64, -3, 0, 250, 86_400_000] {
            // The query takes 2 ms, the other station waits 500 ms, and the answer takes 8 ms.
            let epoch = 1_700_000_000_000_i64;
            let theirs = millis((epoch + 502 + ahead) as u64);
            let ours = millis((epoch + 510) as u64);
            let found = ClockOffset::new(millis(epoch as u64), millis(500), theirs, ours).unwrap();
            assert_eq!(found.error, millis(5));
            assert!((found.ahead_nanos - ahead * 1_000_000).abs() <= 5_000_000, "{found:?}");
        }
        let impossible = ClockOffset::new(millis(0), millis(500), millis(1), millis(400));
        assert_eq!(impossible, None, "held for longer than the round trip");
    }
}
