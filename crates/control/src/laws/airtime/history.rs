//! The highest of some seconds.

use std::collections::VecDeque;

use wakeai_units::{Duration, Instant};

/// A value holds this long after it was last reached.
const WINDOW: Duration = Duration::from_secs(10);

/// The largest value of the last ten seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Highest {
    /// Falling values with their times: the front is the maximum.
    falling: VecDeque<(Instant, u64)>,
}

impl Highest {
    pub(super) fn push(&mut self, now: Instant, value: u64) -> u64 {
        while self.falling.back().is_some_and(|(_, last)| *last <= value) {
            self.falling.pop_back();
        }
        self.falling.push_back((now, value));
        while self.falling.front().is_some_and(|(at, _)| now.saturating_since(*at) > WINDOW) {
            self.falling.pop_front();
        }
        self.latest()
    }

    /// The largest so far; zero before there was any.
    pub(super) fn latest(&self) -> u64 {
        self.falling.front().map_or(0, |(_, value)| *value)
    }
}
