//! Retransmission of the receiver's own segments: its SYN-ACK and its FIN (RFC 6298).

use wakeai_units::{Duration, Instant};

use crate::config::{INITIAL_TIMEOUT, MIN_TIMEOUT};

/// Linux's `tcp_synack_retries`. With a first timeout of 1 s the peer is forgotten after 63 s.
pub(super) const SYN_ACK_RETRIES: u32 = 5;
/// Linux's `tcp_orphan_retries`, the limit for a connection that no application uses any more.
pub(super) const FIN_RETRIES: u32 = 8;

/// The timer of one segment that waits for its acknowledgement.
#[derive(Clone, Debug)]
pub(super) struct Retransmission {
    /// The time at which the timer expires.
    pub(super) at: Instant,
    timeout: Duration,
    longest: Duration,
    /// The number of remaining expiries that do not double the timeout.
    linear: u32,
    /// Expiries that doubled the timeout.
    tries: u32,
    limit: u32,
}

/// The action that follows the expiry of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// Retransmit the segment.
    Again,
    /// Give up.
    GiveUp,
}

impl Retransmission {
    /// A timer for a segment that leaves now.
    pub(super) fn new(now: Instant, timeout: Duration, longest: Duration, limit: u32) -> Self {
        Self { at: now + timeout, timeout, longest, linear: 0, tries: 0, limit }
    }

    /// Allows one expiry without doubling.
    pub(super) fn with_probe(self) -> Self {
        Self { linear: 1, ..self }
    }

    /// Restarts the timer, because the SYN-ACK was sent again in answer to a repeated SYN.
    pub(super) fn restart(&mut self, now: Instant) {
        self.at = now + self.timeout;
    }

    /// Returns the action where the timer has expired. Each timeout is twice the timeout before.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Expiry> {
        if now < self.at {
            return None;
        }
        if self.linear > 0 {
            self.linear -= 1;
        } else if self.tries == self.limit {
            return Some(Expiry::GiveUp);
        } else {
            self.tries += 1;
            self.timeout = (self.timeout * 2).min(self.longest);
        }
        self.at = now + self.timeout;
        Some(Expiry::Again)
    }
}

/// The receiver's RTT estimate, from the handshake alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandshakeRtt {
    /// The RTT, once it is known.
    pub(super) rtt: Option<Duration>,
    /// The retransmission timeout that follows from it.
    pub(super) timeout: Duration,
}

impl HandshakeRtt {
    /// The estimate without a sample.
    pub(super) const UNKNOWN: Self = Self { rtt: None, timeout: INITIAL_TIMEOUT };

    /// The estimate from the first and only sample (RFC 6298 section 2.2). As in Linux, the minimum
    /// applies to the variance and not to the timeout.
    pub(super) fn measured(rtt: Duration) -> Self {
        Self { rtt: Some(rtt), timeout: rtt + (rtt * 2).max(MIN_TIMEOUT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_timeout_is_twice_the_one_before_until_it_is_given_up() {
        let second = Duration::from_secs(1);
        let mut timer =
            Retransmission::new(Instant::ZERO, second, Duration::from_secs(120), SYN_ACK_RETRIES);
        for seconds in [1, 3, 7, 15, 31] {
            assert_eq!(timer.at, Instant::ZERO + second * seconds);
            assert_eq!(timer.expire(timer.at), Some(Expiry::Again));
        }
        assert_eq!(timer.at, Instant::ZERO + second * 63);
        assert_eq!(timer.expire(timer.at), Some(Expiry::GiveUp));
    }
}
