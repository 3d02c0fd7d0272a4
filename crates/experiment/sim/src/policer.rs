//! The limit of a flow of datagrams by an agent: a virtual queue, as the kernel's program has it where the host's
//! queue obeys no departure times.

use wakeai_connection::{Bounds, Figures};
use wakeai_control::{Connection, Limit};
use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::packet::{IP_UDP_HEADERS, Packet};

/// A datagram that finds a longer backlog is dropped, except where the backlog is no more than [`INITIAL`]. Both are
/// those of `crates/device/kernel/bpf/egress.bpf.c`.
const HORIZON: Duration = Duration::from_millis(100);
/// So many bytes fit into the virtual queue at any rate: the initial window of QUIC (RFC 9002 section 7.2).
const INITIAL: Bytes = Bytes::new(14_720);
/// The bit of an agent's id for a flow of datagrams. The ids of TCP connections are below it.
pub(crate) const DATAGRAMS: u64 = 1 << 32;

/// A virtual queue, which is served at the rate of the limit. A datagram that it takes leaves the host at once, and
/// one that finds it full is dropped. So a flow below its limit loses nothing, and none is delayed.
#[derive(Debug)]
pub(crate) struct Policer {
    /// The timer at which the queue has room again, for a socket that waits for it.
    pub(crate) timer: u32,
    limit: Option<Rate>,
    /// The time at which the virtual queue is empty.
    empty_at: Instant,
    /// What has left the host: packets, and packets and bytes of payload since the last tick (0.5 s).
    sent: u64,
    recent: (u64, u64),
}

impl Policer {
    pub(crate) fn new(timer: u32) -> Self {
        Self { timer, limit: None, empty_at: Instant::ZERO, sent: 0, recent: (0, 0) }
    }

    /// Limits the flow from now on. When the rate rises, what is in the queue is served faster.
    pub(crate) fn set_limit(&mut self, now: Instant, bounds: Bounds) {
        let rate = bounds.rate.map(|rate| rate.max(Rate::from_bps(1)));
        if let (Some(before), Some(after)) = (self.limit, rate)
            && after > before
        {
            let (before, after) = (before.bits_per_second(), after.bits_per_second());
            self.empty_at = now + self.backlog(now).mul_div(before, after).unwrap_or_default();
        }
        self.limit = rate;
    }

    fn backlog(&self, now: Instant) -> Duration {
        self.empty_at.saturating_since(now)
    }

    /// The time from which on the queue takes a datagram.
    pub(crate) fn opens_at(&self) -> Instant {
        let Some(rate) = self.limit else { return Instant::ZERO };
        let room = rate.time_for(INITIAL).unwrap_or(Duration::MAX).max(HORIZON);
        Instant::ZERO + self.empty_at.saturating_since(Instant::ZERO + room)
    }

    /// Takes a packet. Returns whether it leaves; otherwise it is lost.
    pub(crate) fn passes(&mut self, now: Instant, packet: &Packet) -> bool {
        if now < self.opens_at() {
            return false;
        }
        let len = payload(packet);
        if let Some(rate) = self.limit {
            self.empty_at = self.empty_at.max(now) + rate.time_for(len).unwrap_or(Duration::ZERO);
        }
        self.sent += 1;
        self.recent = (self.recent.0 + 1, self.recent.1 + len.get());
        true
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
        let mut policer = Policer::new(0);
        policer.set_limit(ms(0), limit(kbps));
        policer
    }

    /// The number of datagrams of 1,000 bytes that pass of `count`.
    fn pass(policer: &mut Policer, now: Instant, count: u32) -> usize {
        let packet = Packet::Datagram { flow: 0, len: 1000 };
        (0..count).filter(|_| policer.passes(now, &packet)).count()
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
