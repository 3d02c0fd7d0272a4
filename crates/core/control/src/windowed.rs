//! The largest value in a sliding window of time.

use std::collections::VecDeque;

use wakeai_units::{Duration, Instant};

/// The length of the window of time.
pub(crate) const WINDOW: Duration = Duration::from_secs(10);

/// The largest value of the last ten seconds; one value is added per tick (0.5 s).
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowedMax<T> {
    /// The values that may still become the maximum, with their times. A value is removed when it
    /// is older than ten seconds, or when a later value is at least as large. So the values fall
    /// from front to back, and the front is the maximum.
    falling: VecDeque<(Instant, T)>,
}

impl<T: Copy + Ord + Default> WindowedMax<T> {
    pub(crate) fn push(&mut self, now: Instant, value: T) {
        debug_assert!(self.falling.back().is_none_or(|(at, _)| *at <= now), "the time went back");
        while self.falling.back().is_some_and(|(_, last)| *last <= value) {
            self.falling.pop_back();
        }
        self.falling.push_back((now, value));
        while self.falling.front().is_some_and(|(at, _)| now.saturating_since(*at) > WINDOW) {
            self.falling.pop_front();
        }
        debug_assert!(self.falling.iter().is_sorted_by(|(_, one), (_, next)| one >= next));
    }

    /// Replaces every value `v` by `scaled(v)`. For example, measured rates are scaled when the PHY
    /// rate has changed.
    pub(crate) fn scale(&mut self, scaled: impl Fn(T) -> T) {
        for (_, value) in &mut self.falling {
            *value = scaled(*value);
        }
    }

    /// The maximum; zero before the first value.
    pub(crate) fn get(&self) -> T {
        self.falling.front().map_or_else(T::default, |(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_for_ten_seconds() {
        let mut max = WindowedMax::default();
        assert_eq!(max.get(), 0);
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        for (second, value, expected) in [(1, 5, 5), (2, 9, 9), (3, 7, 9), (12, 1, 9), (13, 1, 7)] {
            max.push(at(second), value);
            assert_eq!(max.get(), expected, "after {second} s");
        }
        max.scale(|value| value * 2);
        assert_eq!(max.get(), 14);
    }
}
