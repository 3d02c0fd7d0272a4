//! Decides when a station sends its presence messages. The messages of all stations together take
//! at most 0.5 % of the airtime.

use wakeai_units::{Bytes, Duration, Instant, Rate};
use wakeai_wifi::{Contention, LEGACY_RATES, Standard};

use super::BootId;
use super::codec::{MAX_INTERVAL, MESSAGE_LEN};

/// The messages of all stations together take at most one part in this many of the airtime, which
/// is 0.5 %.
pub const AIR_PARTS: u64 = 200;
/// The shortest time between two messages of a station.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// The number of first messages at the shortest interval. The number of stations is not known yet
/// when these messages are sent.
const OPENING_MESSAGES: u32 = 2;
/// The debt is airtime that the station has used and not yet paid off (see [`Schedule`]). News is
/// sent early only where the debt is afterwards at most the airtime of this many messages.
const MOST_OWED: u64 = 5;
/// The number of messages with the same news. They are [`AGAIN_AFTER`] apart. Where regular
/// messages are at most twice that time apart, only two are sent.
const NEWS_MESSAGES: u32 = 3;
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// The largest random delay of the message about the begin or the end of a turn. The delay is short
/// because the peers wait for this message.
const TURN_SPREAD: Duration = Duration::from_millis(20);
/// The number of messages about the end of a turn.
const TURN_END_MESSAGES: u32 = 3;
/// The largest number of queries and answers of a fleet between two presence messages.
const MOST_BESIDES: u32 = 2;

/// The IPv4 and UDP headers, bytes.
const IP_UDP: usize = 28;
/// The MAC header with `QoS`, LLC/SNAP, CCMP and FCS (802.11-2020 §9.3.2, §12.5.3), bytes.
const MAC: usize = 26 + 8 + 16 + 4;
/// The MAC acknowledgement, bytes.
const ACK: usize = 14;
const SIFS: Duration = Standard::N.sifs();
const SLOT: Duration = Standard::N.slot();
const BEST_EFFORT: Contention = Contention::of(Standard::N);
/// The time of a channel access: AIFS of best effort and the mean backoff in the smallest
/// contention window. The backoff is counted in full, although the stations' backoffs overlap on a
/// busy medium.
const ACCESS: Duration = Duration::from_micros(
    SIFS.as_micros()
        + BEST_EFFORT.aifsn as u64 * SLOT.as_micros()
        + BEST_EFFORT.cw_min as u64 * SLOT.as_micros() / 2,
);
/// The OFDM preamble, the SIGNAL field and the signal extension at 2.4 GHz.
const OFDM_PREAMBLE: Duration = Duration::from_micros(26);
/// The long preamble of the DSSS rates.
const DSSS_PREAMBLE: Duration = Duration::from_micros(192);

/// The airtime of one presence message. The message is sent twice. The first transmission is the
/// frame to the access point with its acknowledgement, at `link_rate` (the basic rate where
/// `link_rate` is not known). The second is the access point's broadcast at `basic_rate`. The
/// result is an upper estimate: contention, the security header and the padding to a whole OFDM
/// symbol are counted in full.
pub fn airtime(basic_rate: Rate, link_rate: Option<Rate>) -> Duration {
    airtime_of(MESSAGE_LEN, basic_rate, link_rate)
}

/// The airtime of a message of `length` bytes, estimated as in [`airtime`].
pub fn airtime_of(length: usize, basic_rate: Rate, link_rate: Option<Rate>) -> Duration {
    let uplink = link_rate.unwrap_or(basic_rate).max(basic_rate);
    let data = length + IP_UDP + MAC;
    let crossing = |rate, bytes| ACCESS + frame(rate, bytes);
    crossing(uplink, data) + SIFS + frame(basic_rate, ACK) + crossing(basic_rate, data)
}

fn frame(rate: Rate, bytes: usize) -> Duration {
    let (preamble, padding) = if rate < LEGACY_RATES[0] {
        (DSSS_PREAMBLE, Duration::ZERO)
    } else {
        // The service and tail bits and the padding of the last symbol take at most two symbols.
        (OFDM_PREAMBLE, Duration::from_micros(8))
    };
    let rate = rate.max(Rate::from_bps(1_000_000)); // no 802.11 rate is lower
    let payload = rate.time_for(Bytes::new(bytes as u64)).unwrap_or(Duration::ZERO);
    preamble + payload + padding
}

/// The upper limit of [`longest_interval`]. A peer is live for three announced intervals. In three
/// of these, a thousand stations can send one message each within the 0.5 % of the airtime.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// The limit of the interval that a peer may announce. This station knows `stations` stations, and
/// a message takes `cost` of airtime. The limit is the time in which the largest debt, five
/// messages, is paid off. It is computed for twice as many stations and eight more, because
/// this station may have just started. It then knows fewer stations than its peers, and their
/// intervals are longer.
pub(super) fn longest_interval(stations: usize, cost: Duration) -> Duration {
    let stations = stations.saturating_mul(2).saturating_add(8) as u64;
    let owed = cost.saturating_mul(MOST_OWED).saturating_mul(AIR_PARTS).saturating_mul(stations);
    owed.clamp(MIN_INTERVAL, LONGEST_INTERVAL)
}

/// Decides when this station sends its presence messages.
///
/// Each message adds its [`airtime`] to this station's debt. As time passes, the station's equal
/// part of the 0.5 % pays the debt off. The next message waits until the debt is zero. News (a
/// change that the peers should know soon) is sent early as long as the debt is at most five
/// messages. In return the wait after news is longer.
///
/// Order of calls: [`Schedule::news`] where there is news, then [`Schedule::due`], and
/// [`Schedule::sent`] where a message is due. For queries and answers: [`Schedule::affords`], and
/// [`Schedule::sent_besides`] where one is sent.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    random: u64,
    /// The time at which the next message may be due.
    pub(crate) next: Instant,
    last: Instant,
    sent: u32,
    urgent: bool,
    /// The time of the next repetition of the news, and the number of repetitions that are left.
    /// News is repeated because broadcasts are not retransmitted, and most are lost when many
    /// stations begin to send.
    again: Option<(Instant, u32)>,
    cost: Duration,
    debt: Duration,
    paid_at: Instant,
    turn: TurnMessages,
    /// The number and the airtime of the queries and answers of a fleet since the last presence
    /// message. The next presence message adds this airtime to the debt. Because the debt does not
    /// grow earlier, that message comes within the interval that was announced before. It announces
    /// a longer interval, in which the queries and answers are paid off.
    besides: (u32, Duration),
}

/// The messages of a station that sends in its turn. They follow at the shortest interval, so that
/// the peers soon notice the end of the turn. They are not counted in the debt. Only a few stations
/// send at a time, so these messages of all stations together take about another 0.5 % of the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnMessages {
    /// It is not the station's turn.
    None,
    /// It is the station's turn.
    Sending,
    /// The turn has ended. This number of messages about the end are still to be sent.
    Ended(u32),
}

impl Schedule {
    /// A schedule with the first message within half a second of `now`. The time depends on the
    /// boot id, so that stations that are switched on together do not send at the same time.
    pub(crate) fn new(now: Instant, boot: BootId) -> Self {
        let seed = boot.0.iter().fold(0_u64, |seed, byte| splitmix(seed ^ u64::from(*byte)));
        let mut this = Self {
            random: seed,
            next: now,
            last: now,
            sent: 0,
            urgent: false,
            again: None,
            cost: Duration::ZERO,
            debt: Duration::ZERO,
            paid_at: now,
            turn: TurnMessages::None,
            besides: (0, Duration::ZERO),
        };
        this.next = now + this.part_of(MIN_INTERVAL);
        this
    }

    /// Plans an early message with news: a change that the peers should know soon.
    pub(crate) fn news(&mut self, now: Instant, stations: usize) {
        self.pay(now, stations);
        if self.sent == 0 || self.debt + self.besides.1 > self.cost * (MOST_OWED - 1) {
            return;
        }
        // Users may start several stations together. A random delay keeps the stations from sending
        // at the same time.
        let soon = (self.last + MIN_INTERVAL).max(now) + self.part_of(MIN_INTERVAL / 4);
        if soon < self.next {
            self.next = soon;
            self.urgent = true;
        }
        self.again = Some((self.next + AGAIN_AFTER, NEWS_MESSAGES - 1));
    }

    /// Plans the messages of a station whose turn has begun (`sends`) or ended.
    pub(crate) fn turn(&mut self, now: Instant, sends: bool) {
        self.turn = match (sends, self.turn) {
            (false, TurnMessages::None) => return,
            (false, _) => TurnMessages::Ended(TURN_END_MESSAGES),
            (true, _) => TurnMessages::Sending,
        };
        self.next = self.next.min(now + self.part_of(TURN_SPREAD));
        self.again = None;
    }

    /// Whether a message is due. `stations` is the number of stations at the access point, this one
    /// included. Where this number has grown since the last call, the message may be planned for a
    /// later time instead.
    pub(crate) fn due(&mut self, now: Instant, stations: usize) -> bool {
        if now < self.next {
            return false;
        }
        self.pay(now, stations);
        let in_turn = self.turn != TurnMessages::None;
        if self.sent >= OPENING_MESSAGES && !self.urgent && !in_turn && !self.debt.is_zero() {
            self.plan(now, stations);
            return false;
        }
        true
    }

    /// Counts a message that takes `cost` of airtime. Returns the interval that the message has to
    /// announce. The next message comes within this interval, unless the number of stations grows.
    pub(crate) fn sent(&mut self, now: Instant, stations: usize, cost: Duration) -> Duration {
        self.pay(now, stations);
        self.turn = match self.turn {
            TurnMessages::None => {
                self.debt = self.debt.saturating_add(cost);
                TurnMessages::None
            }
            TurnMessages::Ended(1) => TurnMessages::None,
            TurnMessages::Ended(left) => TurnMessages::Ended(left - 1),
            TurnMessages::Sending => TurnMessages::Sending,
        };
        let (_, besides) = std::mem::take(&mut self.besides);
        self.debt = self.debt.saturating_add(besides);
        self.cost = cost;
        self.sent = self.sent.saturating_add(1);
        self.last = now;
        self.urgent = false;
        self.plan(now, stations);
        let interval = self.next.saturating_since(now);
        if let Some((again, left)) = self.again.take_if(|(again, _)| *again > now) {
            let jittered = again + self.part_of(MIN_INTERVAL);
            if jittered < self.next && self.debt <= self.cost * (MOST_OWED - 1) {
                self.next = jittered;
                self.urgent = true;
                let regular = cost.saturating_mul(AIR_PARTS).saturating_mul(stations as u64);
                let more = left > 1 && regular > AGAIN_AFTER * 2;
                self.again = more.then(|| (jittered + AGAIN_AFTER, left - 1));
            }
        }
        let announced = Duration::from_millis(interval.as_millis() + 1).min(MAX_INTERVAL);
        debug_assert!(self.next <= now + announced, "the next message comes later than announced");
        announced
    }

    /// Whether a query or an answer of a fleet may be sent now. It would take `cost` of airtime.
    /// There are three conditions: this station has sent a presence message, it has sent at most
    /// one query or answer since, and the debt leaves room for news.
    pub(crate) fn affords(&self, now: Instant, stations: usize, cost: Duration) -> bool {
        let (count, besides) = self.besides;
        let paid = self.paid(now, stations);
        let owed = self.debt.saturating_sub(paid).saturating_add(besides).saturating_add(cost);
        self.sent > 0 && count < MOST_BESIDES && owed <= self.cost * (MOST_OWED - 1)
    }

    /// Counts a query or an answer of a fleet.
    pub(crate) fn sent_besides(&mut self, cost: Duration) {
        self.besides = (self.besides.0 + 1, self.besides.1.saturating_add(cost));
        debug_assert!(self.besides.0 <= MOST_BESIDES, "it is sent although it was not afforded");
    }

    fn paid(&self, now: Instant, stations: usize) -> Duration {
        now.saturating_since(self.paid_at) / (AIR_PARTS * stations.max(1) as u64)
    }

    fn plan(&mut self, now: Instant, stations: usize) {
        let owed = self.debt.saturating_mul(AIR_PARTS).saturating_mul(stations.max(1) as u64);
        let soon = self.sent < OPENING_MESSAGES || self.turn != TurnMessages::None;
        let wait = if soon { MIN_INTERVAL } else { owed.max(MIN_INTERVAL) };
        // The jitter only lengthens the wait, so the messages do not exceed their part of the
        // airtime.
        let jitter = self.part_of(wait / 8);
        self.next = now + wait.saturating_add(jitter).min(MAX_INTERVAL);
    }

    fn pay(&mut self, now: Instant, stations: usize) {
        debug_assert!(self.paid_at <= now, "the time went back from {} to {now}", self.paid_at);
        let paid = self.paid(now, stations);
        // The added nanosecond makes up for rounding, which would delay a message.
        self.debt = self.debt.saturating_sub(paid + Duration::from_nanos(1));
        self.paid_at = now;
    }

    fn part_of(&mut self, span: Duration) -> Duration {
        self.random = splitmix(self.random);
        span.mul_div(self.random >> 32, 1 << 32).unwrap_or(Duration::ZERO)
    }
}

/// `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014). Its numbers only have to spread stations in
/// time.
pub(super) fn splitmix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(station: usize) -> BootId {
        BootId([station as u8 ^ (station >> 8) as u8; 16])
    }

    /// The times at which `stations` stations send during `span`, and the airtime of their
    /// messages. The stations know each other.
    fn sending_times(stations: usize, span: Duration) -> (Vec<Vec<Instant>>, Duration) {
        let cost = airtime(Rate::from_mbps(6), Some(Rate::from_mbps(65)));
        let end = Instant::ZERO + span;
        let mut taken = Duration::ZERO;
        let times = (0..stations).map(|station| {
            let mut schedule = Schedule::new(Instant::ZERO, boot(station));
            let mut times = Vec::new();
            while schedule.next <= end {
                let now = schedule.next;
                if schedule.due(now, stations) {
                    schedule.sent(now, stations, cost);
                    taken += cost;
                    times.push(now);
                }
            }
            times
        });
        (times.collect(), taken)
    }

    #[test]
    fn all_stations_together_take_at_most_half_a_percent_of_the_air() {
        for stations in [1, 2, 6, 40, 200, 1024] {
            let span = Duration::from_secs(3600);
            let (times, taken) = sending_times(stations, span);
            let cost = airtime(Rate::from_mbps(6), Some(Rate::from_mbps(65)));
            // The debt of each station's last message is not paid yet.
            assert!(taken <= span / AIR_PARTS + cost * stations as u64, "{stations}: {taken}");
            assert!(times.iter().all(|times| times.len() > 10), "{stations} stations send");
        }
    }

    #[test]
    fn messages_of_a_station_keep_the_shortest_interval() {
        for stations in [1, 6, 40] {
            for times in sending_times(stations, Duration::from_secs(60)).0 {
                assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= MIN_INTERVAL));
            }
        }
    }

    #[test]
    fn stations_that_start_together_do_not_send_together() {
        let (times, _) = sending_times(40, Duration::from_secs(600));
        let mut all: Vec<Instant> = times.into_iter().flatten().collect();
        all.sort();
        let cost = airtime(Rate::from_mbps(6), Some(Rate::from_mbps(65)));
        let close = all.windows(2).filter(|pair| pair[1] - pair[0] < cost).count();
        assert!(close * 20 < all.len(), "{close} of {}", all.len());
    }

    #[test]
    fn a_message_announces_when_the_next_one_comes() {
        for stations in [1, 6, 40] {
            let cost = airtime(Rate::from_mbps(6), None);
            let mut schedule = Schedule::new(Instant::ZERO, boot(1));
            for _ in 0..100 {
                let now = schedule.next;
                assert!(schedule.due(now, stations));
                let interval = schedule.sent(now, stations, cost);
                assert!(schedule.next <= now + interval);
                assert!(schedule.next + Duration::from_millis(2) >= now + interval);
            }
        }
    }

    #[test]
    fn more_stations_than_planned_for_delay_the_next_message() {
        let cost = airtime(Rate::from_mbps(6), None);
        let mut schedule = Schedule::new(Instant::ZERO, boot(1));
        for _ in 0..10 {
            let now = schedule.next;
            assert!(schedule.due(now, 2));
            schedule.sent(now, 2, cost);
        }
        let now = schedule.next;
        assert!(!schedule.due(now, 40));
        assert!(schedule.next > now + Duration::from_secs(1));
    }

    #[test]
    fn news_comes_early_and_the_next_message_later() {
        let cost = airtime(Rate::from_mbps(6), None);
        let mut schedule = Schedule::new(Instant::ZERO, boot(1));
        let mut sent = Vec::new();
        for message in 0..40 {
            let now = schedule.next;
            if message == 20 {
                continue;
            }
            if schedule.due(now, 40) {
                schedule.sent(now, 40, cost);
                sent.push(now);
            }
        }
        let last = *sent.last().unwrap();
        let soon = last + MIN_INTERVAL * 2;
        schedule.news(soon, 40);
        let early = schedule.next;
        assert!(early <= soon + MIN_INTERVAL);
        assert!(schedule.due(early, 40));
        schedule.sent(early, 40, cost);
        let mut last = early;
        for _ in 1..NEWS_MESSAGES {
            last = schedule.next;
            assert!(schedule.due(last, 40));
            schedule.sent(last, 40, cost);
        }
        let interval = sent[sent.len() - 1] - sent[sent.len() - 2];
        assert!(schedule.next - last > interval, "the next one waits longer");
    }

    /// The schedule of one of `stations` stations after ten messages, and the time of its last
    /// message.
    fn settled(stations: usize, cost: Duration) -> (Schedule, Instant) {
        let mut schedule = Schedule::new(Instant::ZERO, boot(1));
        let mut last = Instant::ZERO;
        for _ in 0..10 {
            last = schedule.next;
            assert!(schedule.due(last, stations));
            schedule.sent(last, stations, cost);
        }
        (schedule, last)
    }

    #[test]
    fn news_is_sent_three_times_within_the_announced_interval() {
        let cost = airtime(Rate::from_mbps(6), None);
        let (mut schedule, last) = settled(40, cost);
        let regular = schedule.next - last;
        schedule.news(last + MIN_INTERVAL, 40);
        let mut last = schedule.next;
        assert!(schedule.due(last, 40));
        let mut announced = schedule.sent(last, 40, cost);
        for message in 2..=3 {
            assert!(announced > regular, "it includes the debt of one more message: {announced}");
            let next = schedule.next;
            let apart = next - last;
            assert!(
                apart >= AGAIN_AFTER && apart <= AGAIN_AFTER + MIN_INTERVAL,
                "{message}: {apart}"
            );
            assert!(schedule.due(next, 40));
            announced = schedule.sent(next, 40, cost);
            last = next;
        }
        assert!(schedule.next - last > regular, "no fourth message: {}", schedule.next);
        assert!(schedule.next <= last + announced);
    }

    #[test]
    fn a_regular_message_before_the_repetition_is_kept() {
        let cost = airtime(Rate::from_mbps(6), Some(Rate::from_mbps(65)));
        let (mut schedule, last) = settled(2, cost);
        schedule.news(last, 2);
        for _ in 0..10 {
            let now = schedule.next;
            assert!(schedule.due(now, 2));
            let announced = schedule.sent(now, 2, cost);
            assert!(announced < MIN_INTERVAL * 4 && schedule.next <= now + announced);
        }
    }

    #[test]
    fn news_at_every_moment_takes_no_more_air() {
        for stations in [2, 40, 400] {
            let cost = airtime(Rate::from_mbps(6), None);
            let (mut schedule, begin) = settled(stations, cost);
            let mut sent = 0_u64;
            let span = Duration::from_secs(3600);
            for step in 0..36_000 {
                let now = begin + span * step / 36_000;
                schedule.news(now, stations);
                if schedule.due(now, stations) {
                    schedule.sent(now, stations, cost);
                    sent += 1;
                }
                assert!(schedule.debt <= cost * MOST_OWED, "{stations}: {}", schedule.debt);
            }
            let part = span / AIR_PARTS / stations as u64;
            assert!(cost * sent <= part + cost * MOST_OWED, "{stations}: {sent}");
        }
    }

    #[test]
    fn queries_and_answers_at_every_moment_take_no_more_air_and_break_no_promise() {
        for stations in [1, 2, 40, 400] {
            let (basic, link) = (Rate::from_mbps(6), Some(Rate::from_mbps(65)));
            let cost = airtime(basic, link);
            let answer = airtime_of(crate::presence::ANSWER_LEN, basic, link);
            let (mut schedule, begin) = settled(stations, cost);
            let (mut taken, mut besides, mut promised) = (Duration::ZERO, 0_u64, schedule.next);
            let span = Duration::from_secs(3600);
            for step in 0..360_000 {
                let now = begin + span * step / 360_000;
                if schedule.due(now, stations) {
                    assert!(now <= promised + span / 360_000, "{stations}: {now} after {promised}");
                    promised = now + schedule.sent(now, stations, cost);
                    taken += cost;
                }
                if schedule.affords(now, stations, answer) {
                    schedule.sent_besides(answer);
                    taken += answer;
                    besides += 1;
                }
                let paid = schedule.paid(now, stations);
                let owed = schedule.debt.saturating_sub(paid) + schedule.besides.1;
                assert!(owed <= cost * MOST_OWED, "{stations}: {owed}");
            }
            let part = span / AIR_PARTS / stations as u64;
            assert!(taken <= part + cost * MOST_OWED, "{stations}: {taken} of {part}");
            assert!(besides > 10, "{stations}: {besides}");
        }
    }

    #[test]
    fn without_a_presence_message_nothing_else_is_sent() {
        let cost = airtime(Rate::from_mbps(6), None);
        let schedule = Schedule::new(Instant::ZERO, boot(1));
        assert!(!schedule.affords(Instant::ZERO + Duration::from_secs(9), 2, cost));
    }

    #[test]
    fn the_airtime_of_a_message_adds_up() {
        // The frame has 264 + 28 + 54 = 346 bytes. The uplink at 65 Mbit/s takes 110 us (access) +
        // 34 us (preamble and padding) + 42.6 us (data) + 16 us (SIFS) + 34 + 18.7 us (ACK at
        // 6 Mbit/s). The broadcast takes 110 + 34 + 461.3 us.
        let micros = airtime(Rate::from_mbps(6), Some(Rate::from_mbps(65))).as_micros();
        assert_eq!(micros, 860);
        assert!(airtime(Rate::from_mbps(1), None) > Duration::from_millis(5));
    }
}
