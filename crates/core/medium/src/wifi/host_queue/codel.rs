//! CoDel (RFC 8289) drops packets at the head of a queue while packets wait above a target for
//! longer than an interval. It drops at a rising rate until the wait is below the target again.

use wakeai_units::{Duration, Instant};

/// The target: a wait that is tolerated permanently (RFC 8289 section 4.3). mac80211 gives stations
/// four times the usual 5 ms, because a station may have to wait for several others before its
/// turn.
pub(super) const TARGET: Duration = Duration::from_millis(20);
/// The time for which the wait must be above the target before packets are dropped. It is a round
/// trip (section 4.2).
pub(super) const INTERVAL: Duration = Duration::from_millis(100);

/// Where dropping begins again within this many intervals, it resumes at its former rate (section
/// 5.3).
const MEMORY_INTERVALS: u64 = 16;

/// A packet in a queue.
#[derive(Clone, Debug)]
pub(super) struct Waiting<T> {
    pub(super) item: T,
    pub(super) bytes: u32,
    /// The time of its arrival.
    pub(super) since: Instant,
}

/// The state of one queue (RFC 8289 section 5.1). It outlives the queue's packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Codel {
    /// The time from which packets are dropped, where the wait stays above the target until then.
    drop_from: Option<Instant>,
    is_dropping: bool,
    drop_next: Instant,
    /// The drops since dropping began, and the value of this number when dropping last began.
    count: u32,
    last_count: u32,
}

impl Codel {
    /// The packet that is sent next; `None` where the queue is empty. `take` removes the head of
    /// the queue, and says whether another packet is behind it. `drop` gets the dropped packets.
    /// The last packet is never dropped. (RFC 8289 spares the last packet of full length; mac80211
    /// does not tell CoDel that length.)
    pub(super) fn dequeue<T>(
        &mut self,
        now: Instant,
        mut take: impl FnMut() -> Option<(Waiting<T>, bool)>,
        mut drop: impl FnMut(Waiting<T>),
    ) -> Option<Waiting<T>> {
        let mut next = take();
        let mut above = self.is_above_target(now, next.as_ref());
        if self.is_dropping {
            self.is_dropping = above;
            while self.is_dropping && now >= self.drop_next {
                drop(next?.0);
                self.count = self.count.saturating_add(1);
                next = take();
                above = self.is_above_target(now, next.as_ref());
                self.is_dropping = above;
                if above {
                    self.drop_next = next_drop(self.drop_next, self.count);
                }
            }
        } else if above {
            drop(next?.0);
            next = take();
            self.is_above_target(now, next.as_ref());
            self.is_dropping = true;
            let since_last = self.count.saturating_sub(self.last_count);
            let recent = now.saturating_since(self.drop_next) < INTERVAL * MEMORY_INTERVALS;
            self.count = if since_last > 1 && recent { since_last } else { 1 };
            self.last_count = self.count;
            self.drop_next = next_drop(now, self.count);
        }
        next.map(|(packet, _)| packet)
    }

    /// Whether the wait has been above the target for an interval, counting the wait of `next`.
    fn is_above_target<T>(&mut self, now: Instant, next: Option<&(Waiting<T>, bool)>) -> bool {
        let is_long = |(packet, more): &(Waiting<T>, bool)| {
            *more && now.saturating_since(packet.since) >= TARGET
        };
        if !next.is_some_and(is_long) {
            self.drop_from = None;
            return false;
        }
        now >= *self.drop_from.get_or_insert(now + INTERVAL)
    }
}

/// The time of the next drop. The throughput of TCP is proportional to the inverse root of the drop
/// rate, so the interval is divided by the root of the count (RFC 8289 section 4.4, Mathis et al.).
/// The root has 16 bits of fraction.
fn next_drop(last: Instant, count: u32) -> Instant {
    let root = (u64::from(count.max(1)) << 32).isqrt();
    last + Duration::from_nanos((INTERVAL.as_nanos() << 16) / root)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// A queue that is served every `served_us`, from 0 to `until_ms`. It begins with `burst`
    /// packets, and gets another every `every_us`. Returns the times of the drops, in ms, and the
    /// waits of the packets that were sent, in us.
    fn run(every_us: u64, served_us: u64, burst: u64, until_ms: u64) -> (Vec<u64>, Vec<u64>) {
        let mut codel = Codel::default();
        let mut queue: VecDeque<Waiting<()>> = VecDeque::new();
        let (mut dropped, mut waits) = (Vec::new(), Vec::new());
        let packet = |since| Waiting { item: (), bytes: 1_500, since };
        queue.extend((0..burst).map(|_| packet(at(0))));
        for us in 0..until_ms * 1_000 {
            if us % every_us == 0 {
                queue.push_back(packet(at(us)));
            }
            if us % served_us == 0 {
                let take = || queue.pop_front().map(|packet| (packet, !queue.is_empty()));
                let next = codel.dequeue(at(us), take, |_| dropped.push(us / 1_000));
                waits.extend(next.map(|packet| (at(us) - packet.since).as_micros()));
            }
        }
        (dropped, waits)
    }

    #[test]
    fn nothing_is_dropped_while_the_wait_is_below_the_target() {
        // Each packet has 19 packets before it, a millisecond each.
        let (dropped, waits) = run(1_000, 1_000, 19, 5_000);
        assert_eq!(dropped, []);
        assert_eq!(waits.iter().max(), Some(&19_000));
    }

    #[test]
    fn a_burst_that_is_gone_within_an_interval_loses_nothing() {
        let (dropped, waits) = run(10_000, 1_000, 100, 5_000);
        assert_eq!(dropped, []);
        assert!(waits.iter().max() > Some(&90_000));
    }

    #[test]
    fn a_standing_wait_loses_one_after_an_interval_and_then_ever_more_often() {
        let (dropped, _) = run(1_000, 1_000, 500, 1_000);
        // The first packet has waited for the target at 20 ms. From then on the drops are 100,
        // 100/sqrt(2) and 100/sqrt(3) ms apart.
        assert_eq!(dropped[..4], [120, 220, 291, 349]);
    }

    #[test]
    fn a_standing_wait_comes_down_to_about_the_target() {
        let (dropped, waits) = run(1_000, 1_000, 200, 10_000);
        let end = &waits[waits.len() - 1_000..];
        assert!(end.iter().all(|wait| *wait <= 21_000), "{:?}", end.iter().max());
        assert!((179..=185).contains(&dropped.len()), "{} dropped", dropped.len());
    }

    #[test]
    fn dropping_that_begins_again_soon_goes_on_at_its_pace() {
        let mut codel = Codel::default();
        let packet = |since| Some((Waiting { item: (), bytes: 1_500, since }, true));
        let drops = |codel: &mut Codel, from_ms: u64, to_ms: u64, wait_ms: u64| {
            let mut times = Vec::new();
            for ms in from_ms..to_ms {
                let since = at((ms - wait_ms) * 1_000);
                codel.dequeue(at(ms * 1_000), || packet(since), |_| times.push(ms));
            }
            times
        };
        let first = drops(&mut codel, 100, 1_100, 50);
        assert_eq!(first[..3], [200, 300, 371]);
        assert_eq!(drops(&mut codel, 1_100, 1_110, 1), []);
        let again = drops(&mut codel, 1_110, 1_400, 50);
        assert_eq!(again[0], 1_210);
        let gap = again[1] - again[0];
        assert!(gap < 30, "after {} drops they are {gap} ms apart", first.len());
        assert_eq!(drops(&mut codel, 1_400, 1_410, 1), []);
        let much_later = drops(&mut codel, 10_000, 10_300, 50);
        assert_eq!(much_later[..2], [10_100, 10_200]);
    }

    #[test]
    fn the_last_packet_goes_however_long_it_has_waited() {
        let mut codel = Codel::default();
        for ms in 1_000..5_000 {
            let take = || Some((Waiting { item: (), bytes: 1_500, since: at(0) }, false));
            assert!(codel.dequeue(at(ms * 1_000), take, |_| panic!("dropped")).is_some());
        }
    }
}
