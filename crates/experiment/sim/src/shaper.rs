//! The shaper of a flow of datagrams, which limits its rate by departure times.

use std::collections::VecDeque;

use wakeai_connection::{Bounds, Figures};
use wakeai_control::{Connection, Limit};
use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::packet::{IP_UDP_HEADERS, Packet};
use crate::timers::Timers;

/// The packets of a flow that wait for their departures at most (the default `flow_limit` of Linux's qdisc
/// fq). A further one is dropped.
const MOST_WAITING: usize = 100;
/// The bit of an agent's id for a flow of datagrams. The ids of TCP connections are below it.
pub(crate) const DATAGRAMS: u64 = 1 << 32;

/// Departure times for the datagrams of a flow.
///
/// A datagram is due when those before it have left at the limit's rate. So a flow below its limit is not
/// delayed. A datagram that is due later waits for the end of the burst to which it belongs.
#[derive(Debug)]
pub(crate) struct Shaper {
    /// The timer of the next departure.
    pub(crate) timer: u32,
    /// The largest rate, and the bytes that leave at once.
    limit: Option<(Rate, Bytes)>,
    /// The time at which all that was taken has left at the limit's rate.
    free_at: Instant,
    /// The packets that wait, with their departures and the bytes of their payloads.
    waiting: VecDeque<(Instant, Packet, Bytes)>,
    /// What has left the host: packets, and bytes of payload since the last tick (0.5 s).
    sent: u64,
    recent: (u64, u64),
}

impl Shaper {
    pub(crate) fn new(timer: u32) -> Self {
        Self {
            timer,
            limit: None,
            free_at: Instant::ZERO,
            waiting: VecDeque::new(),
            sent: 0,
            recent: (0, 0),
        }
    }

    /// Limits the flow from now on. What waits keeps its departure time.
    pub(crate) fn set_limit(&mut self, bounds: Bounds) {
        self.limit = bounds.rate.map(|rate| (rate.max(Rate::from_bps(1)), bounds.burst));
    }

    /// Whether a further packet would be dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= MOST_WAITING
    }

    /// Takes a packet. Returns it where it leaves now.
    fn send(&mut self, now: Instant, packet: Packet) -> Option<Packet> {
        let len = payload(&packet);
        let at = match self.limit {
            None => now,
            Some(_) if self.waiting.len() >= MOST_WAITING => return None,
            Some(limit) => self.departure(now, limit, len),
        };
        // Packets of a flow never overtake each other.
        let at = self.waiting.back().map_or(at, |(last, ..)| at.max(*last));
        if at <= now {
            self.count(len);
            return Some(packet);
        }
        self.waiting.push_back((at, packet, len));
        None
    }

    /// The next packet that is due.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Packet> {
        let (_, packet, len) = self.waiting.pop_front_if(|(at, ..)| *at <= now)?;
        self.count(len);
        Some(packet)
    }

    /// The next departure.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.waiting.front().map(|(at, ..)| *at)
    }

    fn count(&mut self, len: Bytes) {
        self.sent += 1;
        self.recent = (self.recent.0 + 1, self.recent.1 + len.get());
    }

    /// The flow as the agent observes it at a tick.
    pub(crate) fn observed(&mut self, flow: u32) -> Connection {
        let (packets, bytes) = std::mem::take(&mut self.recent);
        let mss = Bytes::new(bytes.checked_div(packets).unwrap_or(0));
        let figures = Figures { delivered: self.sent, mss, ..Figures::default() };
        let id = DATAGRAMS | u64::from(flow);
        Connection { id, figures, limit: Limit::Rate, ..Connection::default() }
    }

    /// The departure of a packet with this payload. Where it would begin after `now`, it is put off to the end
    /// of a burst.
    fn departure(&mut self, now: Instant, (rate, burst): (Rate, Bytes), len: Bytes) -> Instant {
        let due = self.free_at.max(now);
        self.free_at = due + rate.time_for(len).unwrap_or(Duration::ZERO);
        let span = rate.time_for(burst).unwrap_or(Duration::ZERO).as_nanos();
        if due <= now || span == 0 {
            return due;
        }
        Instant::from_nanos(due.as_nanos().next_multiple_of(span))
    }
}

/// The payload of a datagram.
fn payload(packet: &Packet) -> Bytes {
    Bytes::new((wakeai_medium::Packet::len(packet) - IP_UDP_HEADERS) as u64)
}

/// Lets a packet of a flow pass the flow's shaper, where it has one. Returns the packet where it leaves now.
pub(crate) fn pass(
    shaper: Option<&mut Shaper>,
    now: Instant,
    packet: Packet,
    timers: &mut Timers,
) -> Option<Packet> {
    let Some(shaper) = shaper else { return Some(packet) };
    let packet = shaper.send(now, packet);
    timers.set(shaper.timer, shaper.next_timeout());
    packet
}

#[cfg(test)]
mod tests {
    use wakeai_units::Bytes;

    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A shaper that allows 8 Mbit/s, which is 1,000 bytes in a millisecond, with bursts of `burst` bytes.
    fn shaper(burst: u64) -> Shaper {
        let mut shaper = Shaper::new(0);
        let rate = Some(Rate::from_mbps(8));
        shaper.set_limit(Bounds { rate, burst: Bytes::new(burst), ..Bounds::NONE });
        shaper
    }

    /// Sends a datagram of 1,000 bytes. Returns whether it leaves at once.
    fn send(shaper: &mut Shaper, now: Instant) -> bool {
        let packet = Packet::Datagram { flow: 0, len: 1000 };
        shaper.send(now, packet).is_some()
    }

    /// The times at which everything that waits departs, ms.
    fn departures(shaper: &mut Shaper) -> Vec<u64> {
        let mut times = Vec::new();
        while let Some(at) = shaper.next_timeout() {
            assert!(shaper.poll(at).is_some(), "it is due at {at}");
            times.push(at.as_nanos() / 1_000_000);
        }
        times
    }

    #[test]
    fn a_flow_below_its_limit_is_not_delayed() {
        let mut shaper = shaper(4000);
        for tick in 0..100 {
            assert!(send(&mut shaper, ms(2 * tick)), "1,000 bytes every 2 ms");
        }
    }

    #[test]
    fn a_flow_above_its_limit_departs_at_the_limit() {
        let mut even = shaper(0);
        let at_once = (0..5).filter(|_| send(&mut even, ms(3))).count();
        assert_eq!((at_once, departures(&mut even)), (1, vec![4, 5, 6, 7]));
        let mut in_bursts = shaper(4000);
        let at_once = (0..8).filter(|_| send(&mut in_bursts, ms(3))).count();
        assert_eq!((at_once, departures(&mut in_bursts)), (1, vec![4, 8, 8, 8, 8, 12, 12]));
    }

    #[test]
    fn without_a_limit_nothing_waits_and_what_waits_stays_in_order() {
        let mut shaper = shaper(0);
        for _ in 0..3 {
            send(&mut shaper, ms(0));
        }
        shaper.set_limit(Bounds::NONE);
        assert!(!send(&mut shaper, ms(0)), "two wait before it");
        assert_eq!(departures(&mut shaper), [1, 2, 2]);
        assert!(send(&mut shaper, ms(3)) && send(&mut shaper, ms(3)));
    }

    #[test]
    fn a_new_limit_counts_what_has_been_sent_before() {
        let mut shaper = shaper(0);
        for _ in 0..5 {
            send(&mut shaper, ms(0));
        }
        let rate = Some(Rate::from_mbps(4));
        shaper.set_limit(Bounds { rate, ..Bounds::NONE });
        send(&mut shaper, ms(1));
        assert_eq!(departures(&mut shaper).last(), Some(&5), "5 ms of data were taken before");
    }

    #[test]
    fn a_hundred_packets_wait_and_a_further_one_is_lost() {
        let mut shaper = shaper(0);
        assert!(send(&mut shaper, ms(0)));
        for _ in 0..100 {
            assert!(!shaper.is_full() && !send(&mut shaper, ms(0)));
        }
        assert!(shaper.is_full() && !send(&mut shaper, ms(0)));
        assert_eq!(departures(&mut shaper).len(), 100);
    }

    #[test]
    fn an_agent_observes_what_has_left() {
        let mut shaper = shaper(0);
        send(&mut shaper, ms(0));
        send(&mut shaper, ms(0));
        let seen = shaper.observed(7);
        assert_eq!((seen.id, seen.limit), (DATAGRAMS | 7, Limit::Rate));
        assert_eq!((seen.figures.delivered, seen.figures.mss.get()), (1, 1000));
        departures(&mut shaper);
        assert_eq!(shaper.observed(7).figures.delivered, 2);
        assert_eq!(shaper.observed(7).figures.mss, Bytes::ZERO, "nothing since");
    }
}
