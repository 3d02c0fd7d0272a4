//! The smallest sample of a sliding window.

use wakeai_units::{Duration, Instant};

/// How far the minimum looks back, as in Linux.
const MINIMUM_WINDOW: Duration = Duration::from_secs(300);

/// The smallest sample of a sliding window, by the three best of its parts (Nichols).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMinimum {
    best: [(Instant, u32); 3],
}

impl WindowedMinimum {
    pub(super) fn get(self) -> u32 {
        self.best[0].1
    }

    pub(super) fn sample(&mut self, now: Instant, value: u32) {
        let sample = (now, value);
        let age = |of: (Instant, u32)| now.saturating_since(of.0);
        if self.best[0].1 == 0 || value <= self.best[0].1 || age(self.best[2]) > MINIMUM_WINDOW {
            self.best = [sample; 3];
            return;
        }
        if value <= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value <= self.best[2].1 {
            self.best[2] = sample;
        }
        self.grow_old(now, sample);
    }

    /// Puts a later choice in the place of one that is too old, or takes one where a part of the
    /// window has passed without any.
    fn grow_old(&mut self, now: Instant, sample: (Instant, u32)) {
        let age = now.saturating_since(self.best[0].0);
        if age > MINIMUM_WINDOW {
            self.best = [self.best[1], self.best[2], sample];
            if now.saturating_since(self.best[0].0) > MINIMUM_WINDOW {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > MINIMUM_WINDOW / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > MINIMUM_WINDOW / 2 {
            self.best[2] = sample;
        }
    }
}
