//! When the queue is not ours: stations without agents.

use wakeai_units::{Duration, Instant};

use super::Situation;

/// Growth beyond twice the target that stands for this long, while we hold our windows, is others' doing.
const OBEY_WITHIN: Duration = Duration::from_secs(2);
/// Where those with agents deliver less than this part of what can be expected, millionths, others are
/// there.
const FOREIGN_BELOW: u64 = 650_000;
/// Where they deliver more, all of the air is theirs again.
const OURS_FROM: u64 = 800_000;
/// For so long, and twice as long each time, before it is tried again.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);

/// Whether this station goes without bounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Release {
    /// Since when the growth has been far above its target.
    high_since: Option<Instant>,
    until: Option<Instant>,
    /// Since when it does, or did last.
    pub(super) since: Instant,
    last: Duration,
}

impl Release {
    pub(super) fn on_tick(
        &mut self,
        now: Instant,
        situation: &Situation,
        used: Option<u64>,
    ) -> bool {
        if let Some(until) = self.until {
            if now < until && used.is_none_or(|used| used < OURS_FROM) {
                return true;
            }
            self.until = None;
            self.high_since = None;
        }
        let path = situation.path;
        let far_too_long = path.growth > situation.target * 2 + path.min / 4;
        let foreign = used.is_some_and(|used| used < FOREIGN_BELOW);
        if !far_too_long || !foreign {
            self.high_since = None;
            return false;
        }
        let since = *self.high_since.get_or_insert(now);
        if now.saturating_since(since) < OBEY_WITHIN.max(path.current * 2) {
            return false;
        }
        self.last = (self.last * 2).clamp(FIRST, LONGEST);
        self.until = Some(now + self.last);
        self.since = now;
        true
    }
}
