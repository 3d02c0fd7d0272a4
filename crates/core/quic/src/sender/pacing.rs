//! Pacing (RFC 9002 section 7.7): a bucket of tokens, which fills 1.25 times as fast as a window per RTT.
//!
//! A sender whose bucket is empty waits until it is full, as quinn does. So packets leave in bursts of ten and more, and
//! the sender wakes seldom.

use wakeai_units::{Duration, Instant};

/// What the bucket holds is sent in this time, where that is between the two limits below (as in quinn).
const BURST: Duration = Duration::from_millis(2);
/// The fewest packets that the bucket holds, which is the initial window.
const LEAST: u64 = 10;
/// The most packets that the bucket holds.
const MOST: u64 = 256;

/// The bucket. A token is a byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    tokens: u64,
    filled_at: Instant,
    /// When the bucket is full, while the sender waits for that.
    pub(super) waits_until: Option<Instant>,
}

impl Pacing {
    /// A full bucket.
    pub(super) fn new(packet: u64) -> Self {
        Self { tokens: LEAST * packet, filled_at: Instant::ZERO, waits_until: None }
    }

    /// Whether a packet of `packet` bytes may leave now. The window is in bytes.
    pub(super) fn may_send(
        &mut self,
        now: Instant,
        packet: u64,
        window: u64,
        rtt: Duration,
    ) -> bool {
        self.waits_until = None;
        if self.tokens >= packet {
            return true;
        }
        let rtt = rtt.as_nanos().max(1);
        let scaled = |amount: u64, by: u64, over: u64| {
            u64::try_from(u128::from(amount) * u128::from(by) / u128::from(over.max(1)))
                .unwrap_or(u64::MAX)
        };
        let capacity = scaled(window, BURST.as_nanos(), rtt).clamp(LEAST * packet, MOST * packet);
        let gained = scaled(window, now.saturating_since(self.filled_at).as_nanos(), rtt);
        self.tokens = self.tokens.saturating_add(gained.saturating_add(gained / 4)).min(capacity);
        self.filled_at = now;
        if self.tokens >= packet {
            return true;
        }
        let missing = capacity - self.tokens;
        let wait = scaled(missing, rtt, window).max(1) / 5 * 4;
        self.waits_until = Some(now + Duration::from_nanos(wait.max(1)));
        false
    }

    pub(super) fn send(&mut self, packet: u64) {
        self.tokens = self.tokens.saturating_sub(packet);
    }
}
