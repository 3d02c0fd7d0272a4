//! The PHY rate of the station, without changes that are small or short.

use wakeai_units::{Duration, Instant, Rate};

/// The driver's rate differs from the lasting rate where the difference is more than this
/// percentage of the lasting rate. Smaller differences are ignored, because rate control causes
/// them all the time.
const OTHER_PERCENT: u64 = 25;
/// The lasting rate changes after the driver's rate has differed from it for this time. A shorter
/// difference is ignored, because it does not change the station's throughput.
const LASTING: Duration = Duration::from_secs(2);

/// A PHY rate that follows the lasting changes of the driver's PHY rate.
///
/// Order of calls: [`LastingRate::on_tick`] once per tick (0.5 s), then the other methods.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastingRate {
    /// The rate; `None` before the first.
    pub(crate) rate: Option<Rate>,
    differs_since: Option<Instant>,
}

impl LastingRate {
    /// Takes the driver's rate at a tick. An unknown rate changes nothing. The result is the old
    /// and the new lasting rate where the lasting rate has changed.
    pub(crate) fn on_tick(&mut self, now: Instant, given: Option<Rate>) -> Option<(Rate, Rate)> {
        let given = given.filter(|rate| *rate > Rate::ZERO)?;
        let before = *self.rate.get_or_insert(given);
        let margin = before.times(OTHER_PERCENT, 100);
        let (low, high) = (before.saturating_sub(margin), before.saturating_add(margin));
        if (low..=high).contains(&given) {
            self.differs_since = None;
            return None;
        }
        let since = *self.differs_since.get_or_insert(now);
        if now.saturating_since(since) < LASTING {
            return None;
        }
        *self = Self { rate: Some(given), differs_since: None };
        Some((before, given))
    }

    /// Whether the driver's rate now differs from the lasting rate by more than `OTHER_PERCENT`.
    /// The difference may be too short to count.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.differs_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lasting rate after each tick, Mbit/s. `given` has the driver's rate at each tick.
    fn run<const N: usize>(given: [Option<u64>; N]) -> [Option<u64>; N] {
        let (mut lasting, mut now) = (LastingRate::default(), Instant::ZERO);
        given.map(|given| {
            now += Duration::from_millis(500);
            lasting.on_tick(now, given.map(Rate::from_mbps));
            lasting.rate.map(|rate| rate.bits_per_second() / 1_000_000)
        })
    }

    #[test]
    fn small_and_short_changes_are_ignored() {
        let small = [52, 65, 58, 72, 52, 52, 52, 52, 52, 65];
        assert_eq!(run(small.map(Some)), [Some(52); 10]);
        let short = [130, 13, 13, 13, 13, 130, 13, 13, 13, 13, 130, 6, 390, 130];
        assert_eq!(run(short.map(Some)), [Some(130); 14]);
    }

    #[test]
    fn a_change_that_lasts_two_seconds_counts() {
        let fallen = run([130, 13, 13, 13, 13, 13, 13].map(Some));
        assert_eq!(fallen, [130, 130, 130, 130, 130, 13, 13].map(Some));
        let risen = run([13, 65, 130, 65, 130, 65, 65].map(Some));
        assert_eq!(risen, [13, 13, 13, 13, 13, 65, 65].map(Some));
    }

    #[test]
    fn an_unknown_rate_changes_nothing() {
        assert_eq!(
            run([None, Some(0), Some(65), None, None]),
            [None, None, Some(65), Some(65), Some(65)]
        );
    }
}
