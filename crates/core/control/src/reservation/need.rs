//! The rate that an owner's applications need of its reservation.

use wakeai_units::{Duration, Instant, Rate};

use crate::windowed::WindowedMax;
use crate::{ConnectionView, Observation};

/// Data waits in a station if some was unsent at a tick in this time. An application that sends as
/// much as it can may write late for once.
const WAITED_FOR: Duration = Duration::from_secs(2);

/// What the applications of an owner need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needed {
    /// The reserved rate, or less where the applications send less.
    pub(super) rate: Rate,
    /// Whether the applications have written more than was sent.
    pub(super) data_waits: bool,
}

/// Watches the applications of an owner.
#[derive(Clone, Debug, Default)]
pub(super) struct Need {
    /// The delivery rate of the last ten seconds.
    used: WindowedMax<Rate>,
    waited: Option<Instant>,
}

impl Need {
    pub(super) fn on_tick(&mut self, now: Instant, reserved: Rate, seen: &Observation) -> Needed {
        self.used.push(now, seen.up.mean_rate);
        if seen.up.active().any(has_unsent) {
            self.waited = Some(now);
        }
        let data_waits = self.waited.is_some_and(|at| now.saturating_since(at) <= WAITED_FOR);
        let rate = if data_waits { reserved } else { reserved.min(self.used.get()) };
        Needed { rate, data_waits }
    }
}

/// Whether at least a segment of what the application wrote is not sent yet.
fn has_unsent(connection: &ConnectionView) -> bool {
    let figures = &connection.figures;
    let sent_or_next = u64::from(figures.packets_out.get()).saturating_add(1);
    figures.send_queue.get() >= figures.mss.get().saturating_mul(sent_or_next)
}

#[cfg(test)]
mod tests {
    use wakeai_units::{Bytes, Segments};

    use super::*;
    use crate::OwnTraffic;
    use crate::observation::example;

    const RESERVED: Rate = Rate::from_mbps(20);

    fn at(half_seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(500) * half_seconds
    }

    /// A station that delivers `mbps`, and has ten segments in flight and `unsent` bytes more.
    fn seen(mbps: u64, unsent: u64) -> Observation {
        let mut connection = ConnectionView { active: true, ..example() };
        connection.figures.packets_out = Segments::new(10);
        connection.figures.send_queue = Bytes::new(connection.figures.mss.get() * 10 + unsent);
        let (connections, mean_rate) = (vec![connection], Rate::from_mbps(mbps));
        let up = OwnTraffic { connections, mean_rate, ..OwnTraffic::default() };
        Observation { up, ..Observation::default() }
    }

    #[test]
    fn applications_with_data_that_waits_need_all_that_is_reserved() {
        let mut need = Need::default();
        let needed = need.on_tick(at(0), RESERVED, &seen(1, 100_000));
        assert_eq!(needed, Needed { rate: RESERVED, data_waits: true });
    }

    #[test]
    fn applications_that_send_less_need_what_they_send() {
        let mut need = Need::default();
        let less = |mbps| Needed { rate: Rate::from_mbps(mbps), data_waits: false };
        assert_eq!(need.on_tick(at(0), RESERVED, &seen(3, 0)), less(3));
        assert_eq!(need.on_tick(at(1), RESERVED, &seen(5, 100)), less(5));
        assert_eq!(need.on_tick(at(2), RESERVED, &seen(4, 0)), less(5), "the most of ten seconds");
        assert_eq!(need.on_tick(at(23), RESERVED, &seen(4, 0)), less(4));
        assert_eq!(need.on_tick(at(24), RESERVED, &seen(30, 0)).rate, RESERVED);
    }

    #[test]
    fn a_tick_without_data_that_waits_does_not_count() {
        let mut need = Need::default();
        let _ = need.on_tick(at(0), RESERVED, &seen(2, 100_000));
        for tick in 1..=4 {
            assert!(need.on_tick(at(tick), RESERVED, &seen(2, 0)).data_waits, "{tick}");
        }
        assert!(!need.on_tick(at(5), RESERVED, &seen(2, 0)).data_waits);
    }
}
