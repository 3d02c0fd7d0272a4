//! The achievement ratio (AVR): the share of time windows in which a flow reached its target
//! rate (TCP-AV paper, §4.1).

use wakeai_units::{Bytes, Duration, Rate};

/// The length of a window.
const WINDOW: Duration = Duration::from_secs(5);

/// Counts the 5 s windows in which a flow reaches its target.
///
/// The following windows do not count: the first (so 120 s have 23 windows that count), windows
/// that start before the run's warmup has ended, and a window that the flow's end cuts short.
///
/// Order of calls: [`AvrMeter::on_received`], where `since_start` never decreases, then
/// [`AvrMeter::finish`].
#[derive(Clone, Debug)]
pub struct AvrMeter {
    target: Rate,
    /// The number of windows at the flow's start that do not count.
    skipped: u64,
    /// The number of the present window. `received` has the bytes that came in it.
    current: u64,
    received: Bytes,
    reached: u64,
}

impl AvrMeter {
    /// A meter for a flow with the target `target`, which is above zero. The time `warmup` after
    /// the flow's own start does not count.
    pub fn new(target: Rate, warmup: Duration) -> Self {
        let skipped = warmup.as_nanos().div_ceil(WINDOW.as_nanos()).max(1);
        Self { target, skipped, current: 0, received: Bytes::ZERO, reached: 0 }
    }

    /// Records that the receiving application got `amount` at `since_start` after the flow's start.
    pub fn on_received(&mut self, since_start: Duration, amount: Bytes) {
        self.close_until(since_start.as_nanos() / WINDOW.as_nanos());
        self.received += amount;
    }

    /// The AVR of a flow that ended `since_start` after its start; `None` if no window counts.
    pub fn finish(mut self, since_start: Duration) -> Option<f64> {
        let windows = since_start.as_nanos() / WINDOW.as_nanos();
        self.close_until(windows);
        let counted = windows.checked_sub(self.skipped).filter(|counted| *counted > 0)?;
        Some(self.reached as f64 / counted as f64)
    }

    fn close_until(&mut self, window: u64) {
        if window <= self.current {
            return;
        }
        let reached = Rate::of(self.received, WINDOW) >= self.target;
        self.reached += u64::from(reached && self.current >= self.skipped);
        // Windows without bytes may lie between the two. They have not reached the target.
        self.current = window;
        self.received = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TARGET: Rate = Rate::from_mbps(8);
    /// The data that the target rate carries in a second.
    const SECOND: Bytes = Bytes::new(1_000_000);

    /// The AVR of a flow of `seconds` that receives `of_target` percent of its target.
    fn avr(seconds: u64, of_target: u64, warmup: u64) -> Option<f64> {
        let mut meter = AvrMeter::new(TARGET, Duration::from_secs(warmup));
        for second in 0..seconds {
            let at = Duration::from_millis(second * 1_000 + 500);
            meter.on_received(at, Bytes::new(SECOND.get() * of_target / 100));
        }
        meter.finish(Duration::from_secs(seconds))
    }

    #[test]
    fn a_flow_at_its_target_reaches_it_always_and_one_below_never() {
        assert_eq!(avr(120, 100, 0), Some(1.0));
        assert_eq!(avr(120, 99, 0), Some(0.0));
    }

    #[test]
    fn a_run_of_120_s_has_23_windows_and_the_first_does_not_count() {
        let mut meter = AvrMeter::new(TARGET, Duration::ZERO);
        meter.on_received(Duration::from_secs(1), SECOND * 100); // in the first window
        meter.on_received(Duration::from_secs(7), SECOND * 5);
        assert_eq!(meter.finish(Duration::from_secs(120)), Some(1.0 / 23.0));
    }

    #[test]
    fn windows_that_start_in_the_warmup_do_not_count() {
        let mut meter = AvrMeter::new(TARGET, Duration::from_secs(11));
        meter.on_received(Duration::from_secs(12), SECOND * 5); // 10 to 15 s
        meter.on_received(Duration::from_secs(16), SECOND * 5); // 15 to 20 s
        assert_eq!(meter.finish(Duration::from_secs(25)), Some(0.5));
    }

    #[test]
    fn a_flow_too_short_for_a_window_has_no_figure() {
        assert_eq!(avr(9, 100, 0), None);
        assert_eq!(avr(14, 100, 10), None);
    }

    proptest! {
        #[test]
        fn it_is_a_share_and_what_arrives_in_pieces_counts_as_a_whole(
            arrivals in prop::collection::vec((0_u64..100_000, 1_u64..8_000_000), 0..200),
            pieces in 1_u64..5,
        ) {
            let mut arrivals = arrivals;
            arrivals.sort_unstable();
            let (mut whole, mut split) =
                (AvrMeter::new(TARGET, Duration::ZERO), AvrMeter::new(TARGET, Duration::ZERO));
            for (millis, amount) in arrivals {
                let at = Duration::from_millis(millis);
                whole.on_received(at, Bytes::new(amount * pieces));
                for _ in 0..pieces {
                    split.on_received(at, Bytes::new(amount));
                }
            }
            let (whole, split) =
                (whole.finish(Duration::from_secs(100)), split.finish(Duration::from_secs(100)));
            prop_assert_eq!(whole, split);
            prop_assert!((0.0..=1.0).contains(&whole.unwrap()));
        }
    }
}
