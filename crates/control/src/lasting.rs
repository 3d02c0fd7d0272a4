//! A PHY rate that has become another one for good.

use wakeai_units::{Duration, Instant, Rate};

/// What differs by no more than this part of the rate is the rate control at work, percent …
const OTHER_PERCENT: u64 = 25;
/// … and what differs for less time says nothing of what the station reaches.
const LASTING: Duration = Duration::from_secs(2);

/// The PHY rate without its short and small changes.
///
/// Order of calls: [`LastingRate::on_tick`] once per tick, then the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastingRate {
    rate: Option<Rate>,
    differs_since: Option<Instant>,
}

impl LastingRate {
    /// Takes what is told at a tick. Where the rate has become another one, gives the one before and
    /// the new one. What is not told changes nothing.
    pub(crate) fn on_tick(&mut self, now: Instant, told: Option<Rate>) -> Option<(Rate, Rate)> {
        let told = told.filter(|rate| *rate > Rate::ZERO)?;
        let before = *self.rate.get_or_insert(told);
        let margin = before.mul_div(OTHER_PERCENT, 100).unwrap_or(before);
        let (low, high) = (before.saturating_sub(margin), before.saturating_add(margin));
        if (low..=high).contains(&told) {
            self.differs_since = None;
            return None;
        }
        let since = *self.differs_since.get_or_insert(now);
        if now.saturating_since(since) < LASTING {
            return None;
        }
        *self = Self { rate: Some(told), differs_since: None };
        Some((before, told))
    }

    /// The rate that lasts; `None` before any was told.
    pub(crate) fn get(&self) -> Option<Rate> {
        self.rate
    }

    /// Whether another rate is told just now, which may not last.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.differs_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate after each tick, Mbit/s.
    fn run<const N: usize>(told: [Option<u64>; N]) -> [Option<u64>; N] {
        let (mut lasting, mut now) = (LastingRate::default(), Instant::ZERO);
        told.map(|told| {
            now += Duration::from_millis(500);
            lasting.on_tick(now, told.map(Rate::from_mbps));
            lasting.get().map(|rate| rate.bits_per_second() / 1_000_000)
        })
    }

    #[test]
    fn small_and_short_changes_are_none() {
        let small = [52, 65, 58, 72, 52, 52, 52, 52, 52, 65];
        assert_eq!(run(small.map(Some)), [Some(52); 10]);
        let short = [130, 13, 13, 13, 13, 130, 13, 13, 13, 13, 130, 6, 390, 130];
        assert_eq!(run(short.map(Some)), [Some(130); 14]);
    }

    #[test]
    fn a_change_that_lasts_two_seconds_is_one() {
        let fallen = run([130, 13, 13, 13, 13, 13, 13].map(Some));
        assert_eq!(fallen, [130, 130, 130, 130, 130, 13, 13].map(Some));
        let risen = run([13, 65, 130, 65, 130, 65, 65].map(Some));
        assert_eq!(risen, [13, 13, 13, 13, 13, 65, 65].map(Some));
    }

    #[test]
    fn what_is_not_told_changes_nothing() {
        assert_eq!(
            run([None, Some(0), Some(65), None, None]),
            [None, None, Some(65), Some(65), Some(65)]
        );
    }
}
