//! When the queue is not ours: stations without agents.

use wakeai_units::{Duration, Instant};

use super::Situation;

/// So many ticks more with growth beyond twice the target than without, while we hold our windows, and
/// the growth is others' doing …
const OBEY_WITHIN: u32 = 4;
/// … but one more for so many senders: many need longer to hear each other, and are no strangers meanwhile.
const SENDERS_PER_TICK: u32 = 2;
/// Where those with agents deliver less than this part of what can be expected, millionths, others are
/// there.
const FOREIGN_BELOW: u64 = 650_000;
/// Where they deliver more, all of the air is theirs again.
const OURS_FROM: u64 = 800_000;
/// For so long, and twice as long each time, before it is tried again.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);

/// Whether this station goes without bounds.
///
/// Who holds a short window beside stations that fill the access point's queue gets next to nothing:
/// their queue is its RTT. A queue of ours shortens when we hold our windows; one that does not, while we
/// get less than is to be had, is theirs.
#[derive(Clone, Debug, Default)]
pub(super) struct Release {
    /// Ticks with such a growth, less those without.
    disobeyed: u32,
    until: Option<Instant>,
    began: Instant,
    lasts: Duration,
}

impl Release {
    /// Whether nothing is bound now. `used` is what all with agents deliver in parts of what can be
    /// expected, millionths.
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
            self.disobeyed = 0;
        }
        let path = situation.path;
        let far_too_long = path.growth > situation.target * 2 + path.min / 4;
        if far_too_long && used.is_some_and(|used| used < FOREIGN_BELOW) {
            self.disobeyed += 1;
        } else {
            self.disobeyed = self.disobeyed.saturating_sub(1);
        }
        if self.disobeyed < OBEY_WITHIN + situation.senders / SENDERS_PER_TICK {
            return false;
        }
        self.lasts = (self.lasts * 2).clamp(FIRST, LONGEST);
        self.until = Some(now + self.lasts);
        self.began = now;
        true
    }

    /// When it began, or did last.
    pub(super) fn began(&self) -> Instant {
        self.began
    }
}
