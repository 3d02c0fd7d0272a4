//! The limit of a flow of datagrams by an agent: a virtual queue, as the kernel's program has it, and where the host's
//! queueing discipline obeys departure times, the datagrams that wait in it.

use std::collections::VecDeque;

use wakeai_connection::{Bounds, Figures};
use wakeai_control::{Connection, Limit};
use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::packet::{IP_UDP_HEADERS, Packet};

/// A datagram that finds a longer backlog is dropped, except where the backlog is no more than [`INITIAL`]. The constants are
/// those of `crates/device/kernel/bpf/egress.bpf.c`.
const HORIZON: Duration = Duration::from_millis(100);
/// The same where datagrams wait. Each waits for so long at most, and for the end of a burst.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// The part of the longest backlog beyond which datagrams are marked CE. A marked datagram does not count in the backlog that is
/// compared with it, as if it had been dropped.
const MARK_PERCENT: u64 = 50;
/// The same where datagrams wait.
const MARK_PERCENT_WAITING: u64 = 80;
/// So many bytes fit into the virtual queue at any rate: the initial window of QUIC (RFC 9002 section 7.2).
const INITIAL: Bytes = Bytes::new(14_720);
/// The bit of an agent's id for a flow of datagrams. The ids of TCP connections are below it.
pub(crate) const DATAGRAMS: u64 = 1 << 32;

/// A virtual queue, which is served at the rate of the limit. A datagram that finds it full is dropped. One that it takes
/// leaves the host at once, or, where the host's queueing discipline obeys departure times, when the queue has served
/// it. So a flow below its limit loses nothing, and none of its datagrams is delayed.
#[derive(Debug)]
pub(crate) struct Policer {
    /// The timer at which a datagram departs, or the queue has room again for a socket that waits for it.
    pub(crate) timer: u32,
    limit: Option<Rate>,
    /// The time at which the virtual queue is empty.
    empty_at: Instant,
    /// The time at which it would be empty if the datagrams with CE had been dropped.
    unmarked_empty_at: Instant,
    /// The datagrams that wait; `None` where the host's queueing discipline obeys no departure times.
    waiting: Option<Waiting>,
    /// What the queue has taken: packets, and packets and bytes of payload since the last tick (0.5 s).
    sent: u64,
    recent: (u64, u64),
}

/// The datagrams of a flow that wait for their departure times, in their order.
#[derive(Debug)]
struct Waiting {
    queue: VecDeque<(Instant, Packet)>,
    /// The time between two bursts.
    burst: Duration,
    /// What the host's clock is ahead of the simulation's. Bursts begin at multiples of `burst` on the host's clock, and so those of
    /// several hosts at several times.
    clock: Duration,
}

impl Waiting {
    /// Takes a packet that the virtual queue serves at `served`, which is later than `now` where there is a backlog. It departs at the
    /// end of the burst in which this lies, and not before an earlier packet. Returns it where it does not wait.
    fn take(&mut self, now: Instant, served: Instant, packet: Packet) -> Option<Packet> {
        let at = if served > now { self.end_of_burst(served) } else { now };
        let at = self.queue.back().map_or(at, |(last, _)| at.max(*last));
        if at == now && self.queue.is_empty() {
            return Some(packet);
        }
        self.queue.push_back((at, packet));
        None
    }

    fn end_of_burst(&self, time: Instant) -> Instant {
        let burst = self.burst.as_nanos();
        let past = (time + self.clock).as_nanos().checked_rem(burst).unwrap_or(0);
        if past > 0 { time + Duration::from_nanos(burst - past) } else { time }
    }
}

impl Policer {
    /// A flow without a limit. `clock` is what its host's clock is ahead of the simulation's, where the host's queueing discipline
    /// obeys departure times.
    pub(crate) fn new(timer: u32, clock: Option<Duration>) -> Self {
        let waiting =
            clock.map(|clock| Waiting { queue: VecDeque::new(), burst: Duration::ZERO, clock });
        let empty_at = Instant::ZERO;
        let unmarked_empty_at = Instant::ZERO;
        Self { timer, limit: None, empty_at, unmarked_empty_at, waiting, sent: 0, recent: (0, 0) }
    }

    /// Limits the flow from now on. When the rate rises, what is in the queue is served faster.
    pub(crate) fn set_limit(&mut self, now: Instant, bounds: Bounds) {
        let rate = bounds.rate.map(|rate| rate.max(Rate::from_bps(1)));
        if let (Some(before), Some(after)) = (self.limit, rate)
            && after > before
        {
            let (before, after) = (before.bits_per_second(), after.bits_per_second());
            for empty_at in [&mut self.empty_at, &mut self.unmarked_empty_at] {
                let backlog = empty_at.saturating_since(now);
                *empty_at = now + backlog.mul_div(before, after).unwrap_or_default();
            }
        }
        self.limit = rate;
        self.waiting.iter_mut().for_each(|waiting| waiting.burst = bounds.burst);
    }

    fn horizon(&self) -> Duration {
        if self.waiting.is_some() { LONGEST_WAIT } else { HORIZON }
    }

    fn mark_percent(&self) -> u64 {
        if self.waiting.is_some() { MARK_PERCENT_WAITING } else { MARK_PERCENT }
    }

    /// The longest backlog that a datagram may find, at this rate.
    fn room(&self, rate: Rate) -> Duration {
        rate.time_for(INITIAL).unwrap_or(Duration::MAX).max(self.horizon())
    }

    /// The time from which on the queue takes a datagram.
    pub(crate) fn opens_at(&self) -> Instant {
        let Some(rate) = self.limit else { return Instant::ZERO };
        Instant::ZERO + self.empty_at.saturating_since(Instant::ZERO + self.room(rate))
    }

    /// Takes a packet, which it may mark. Returns it where it leaves at once; otherwise it waits, or is lost.
    pub(crate) fn take(&mut self, now: Instant, mut packet: Packet) -> Option<Packet> {
        if now < self.opens_at() {
            return None;
        }
        let len = payload(&packet);
        let mut served = now;
        if let Some(rate) = self.limit {
            let taken = rate.time_for(len).unwrap_or(Duration::ZERO);
            served = self.empty_at.max(now);
            self.empty_at = served + taken;
            let unmarked = self.unmarked_empty_at.max(now);
            let is_long =
                unmarked.saturating_since(now) > self.room(rate) * self.mark_percent() / 100;
            if !(is_long && packet.mark()) {
                self.unmarked_empty_at = unmarked + taken;
            }
        }
        self.sent += 1;
        self.recent = (self.recent.0 + 1, self.recent.1 + len.get());
        match &mut self.waiting {
            Some(waiting) => waiting.take(now, served, packet),
            None => Some(packet),
        }
    }

    /// The next packet that departs by now.
    pub(crate) fn depart(&mut self, now: Instant) -> Option<Packet> {
        let waiting = self.waiting.as_mut()?;
        waiting.queue.pop_front_if(|(at, _)| *at <= now).map(|(_, packet)| packet)
    }

    /// When the next packet departs.
    pub(crate) fn departs_at(&self) -> Option<Instant> {
        self.waiting.as_ref()?.queue.front().map(|(at, _)| *at)
    }

    /// The flow as the agent observes it at a tick.
    pub(crate) fn observed(&mut self, flow: u32) -> Connection {
        let (packets, bytes) = std::mem::take(&mut self.recent);
        let mss = Bytes::new(bytes.checked_div(packets).unwrap_or(0));
        let figures = Figures { delivered: self.sent, mss, ..Figures::default() };
        let id = DATAGRAMS | u64::from(flow);
        Connection { id, figures, limit: Limit::Rate, ..Connection::default() }
    }
}

/// The payload of a datagram.
fn payload(packet: &Packet) -> Bytes {
    Bytes::new((wakeai_medium::Packet::len(packet) - IP_UDP_HEADERS) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn limit(kbps: u64) -> Bounds {
        Bounds { rate: Some(Rate::from_bps(kbps * 1000)), ..Bounds::NONE }
    }

    fn policer(kbps: u64) -> Policer {
        let mut policer = Policer::new(0, None);
        policer.set_limit(ms(0), limit(kbps));
        policer
    }

    /// The number of datagrams of 1,000 bytes that pass of `count`.
    fn pass(policer: &mut Policer, now: Instant, count: u32) -> usize {
        (0..count)
            .filter_map(|_| policer.take(now, Packet::Datagram { flow: 0, len: 1000 }))
            .count()
    }

    #[test]
    fn a_flow_below_its_limit_loses_nothing() {
        let mut policer = policer(8_000);
        assert!((0..1_000).all(|tick| pass(&mut policer, ms(tick), 1) == 1), "8 Mbit/s");
    }

    #[test]
    fn a_flow_above_its_limit_has_100_ms_at_once_and_then_its_limit() {
        let mut policer = policer(8_000);
        // A datagram is 1 ms. The last one finds 100 ms.
        assert_eq!(pass(&mut policer, ms(0), 200), 101);
        assert_eq!(policer.opens_at(), ms(1));
        assert_eq!((1..=50).map(|tick| pass(&mut policer, ms(tick), 9)).sum::<usize>(), 50);
    }

    #[test]
    fn at_a_low_rate_an_initial_window_passes() {
        // 14,720 bytes are 1.2 s.
        assert_eq!(pass(&mut policer(100), ms(0), 99), 15);
    }

    #[test]
    fn a_higher_limit_serves_the_queue_faster_and_none_ends_it() {
        let mut policer = policer(8_000);
        pass(&mut policer, ms(0), 100);
        policer.set_limit(ms(0), limit(16_000));
        assert_eq!(pass(&mut policer, ms(0), 200), 101, "50 of 100 ms are left");
        policer.set_limit(ms(0), Bounds::NONE);
        assert_eq!(pass(&mut policer, ms(0), 500), 500);
    }

    #[test]
    fn a_lower_limit_counts_what_has_passed_before() {
        let mut policer = policer(8_000);
        pass(&mut policer, ms(0), 90);
        policer.set_limit(ms(0), limit(4_000));
        assert_eq!(pass(&mut policer, ms(0), 99), 6, "10 ms are left for datagrams of 2 ms");
    }

    /// A policer behind departure times, with this limit in kbit/s and these bursts.
    fn waiting(kbps: u64, burst_ms: u64, clock_ms: u64) -> Policer {
        let mut policer = Policer::new(0, Some(Duration::from_millis(clock_ms)));
        let burst = Duration::from_millis(burst_ms);
        policer.set_limit(ms(0), Bounds { burst, ..limit(kbps) });
        policer
    }

    /// When the datagrams that wait depart, ms.
    fn departures(policer: &mut Policer) -> Vec<u64> {
        let mut departures = Vec::new();
        while let Some(at) = policer.departs_at() {
            assert!(policer.depart(at).is_some());
            departures.push(at.as_nanos() / 1_000_000);
        }
        departures
    }

    #[test]
    fn datagrams_wait_up_to_50_ms_where_the_host_obeys_departure_times() {
        let mut policer = waiting(8_000, 0, 0);
        // A datagram is 1 ms. The first leaves at once, and the last one finds 50 ms.
        assert_eq!(pass(&mut policer, ms(0), 99), 1);
        assert_eq!(departures(&mut policer), (1..=50).collect::<Vec<_>>());
        assert!(policer.depart(ms(999)).is_none());
    }

    #[test]
    fn datagrams_that_wait_depart_at_the_ends_of_bursts_on_the_clock_of_their_host() {
        let mut policer = waiting(8_000, 10, 3);
        pass(&mut policer, ms(0), 13);
        assert_eq!(departures(&mut policer), [vec![7; 7], vec![17; 5]].concat());
    }

    #[test]
    fn a_datagram_never_overtakes_one_that_waits() {
        let mut policer = waiting(8_000, 10, 0);
        pass(&mut policer, ms(0), 3);
        // The virtual queue is empty, and the burst has not ended.
        assert_eq!(pass(&mut policer, ms(5), 1), 0);
        policer.set_limit(ms(5), Bounds::NONE);
        assert_eq!(pass(&mut policer, ms(6), 1), 0);
        assert_eq!(departures(&mut policer), [10; 4]);
        assert_eq!(pass(&mut policer, ms(10), 2), 2, "none waits any more");
    }

    /// The number of datagrams of QUIC that pass of `count`, and of these those that are marked.
    fn marked(policer: &mut Policer, now: Instant, count: u64) -> (usize, usize) {
        let data = |number| wakeai_quic::Data { number, offset: 0, len: 967, is_marked: false };
        let packet = |number| Packet::Quic {
            flow: 0,
            to_sender: false,
            packet: wakeai_quic::Packet::Data(data(number)),
        };
        let passed: Vec<_> =
            (0..count).filter_map(|number| policer.take(now, packet(number))).collect();
        (passed.len(), passed.iter().filter(|packet| is_marked(packet)).count())
    }

    fn is_marked(packet: &Packet) -> bool {
        matches!(packet, Packet::Quic { packet: wakeai_quic::Packet::Data(data), .. } if data.is_marked)
    }

    #[test]
    fn datagrams_that_find_more_than_50_ms_are_marked_and_do_not_count_in_them() {
        let mut policer = policer(8_000);
        // A datagram has 1,000 bytes and is 1 ms. The first 51 find up to 50 ms, and the last one 100 ms.
        assert_eq!(marked(&mut policer, ms(0), 200), (101, 50));
        // The backlog is 99 ms, and without the marked datagrams 49 ms.
        assert_eq!(marked(&mut policer, ms(2), 2), (2, 0));
        assert_eq!(marked(&mut policer, ms(2), 1), (0, 0));
    }

    #[test]
    fn where_datagrams_wait_they_are_marked_from_40_ms_on() {
        let mut policer = waiting(8_000, 0, 0);
        marked(&mut policer, ms(0), 200);
        let mut departs = std::iter::from_fn(|| policer.depart(ms(99)));
        // The first one did not wait, and the 51st finds 50 ms.
        assert_eq!(departs.by_ref().take(40).filter(is_marked).count(), 0);
        assert_eq!((departs.filter(is_marked).count(), policer.departs_at()), (10, None));
    }

    #[test]
    fn at_a_low_rate_half_of_an_initial_window_is_not_marked_and_without_a_limit_none_is() {
        // A datagram is 80 ms, and an initial window 1.2 s.
        assert_eq!(marked(&mut policer(100), ms(0), 99), (15, 7));
        assert_eq!(marked(&mut Policer::new(0, None), ms(0), 99), (99, 0));
    }

    #[test]
    fn an_agent_observes_what_has_left() {
        let mut policer = policer(8_000);
        pass(&mut policer, ms(0), 200);
        let seen = policer.observed(7);
        assert_eq!((seen.id, seen.limit), (DATAGRAMS | 7, Limit::Rate));
        assert_eq!((seen.figures.delivered, seen.figures.mss.get()), (101, 1000));
        assert_eq!(policer.observed(7).figures.mss, Bytes::ZERO, "nothing since");
    }
}
