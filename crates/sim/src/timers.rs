//! When who wants to be woken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wakeai_units::Instant;

/// Not woken at all.
const NEVER: u64 = u64::MAX;

/// Deadlines of numbered timers, each of which has at most one.
///
/// A deadline that moves away, as TCP's timers do with every ACK, costs nothing: the timer is
/// woken at the old time, finds that nothing is due, and says anew when it is. So a wake-up may
/// come early, but never late.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    /// By time, then by number; those that are not in `armed` any more are stale.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// By number: the time at which it will be woken.
    armed: Vec<u64>,
}

impl Timers {
    /// Another timer.
    pub(crate) fn add(&mut self) -> u32 {
        self.armed.push(NEVER);
        self.armed.len() as u32 - 1
    }

    /// Sees to it that the timer is woken at `deadline`, or before.
    pub(crate) fn set(&mut self, timer: u32, deadline: Option<Instant>) {
        let Some(deadline) = deadline else { return };
        let armed = &mut self.armed[timer as usize];
        let at = deadline.as_nanos();
        if at < *armed {
            *armed = at;
            self.heap.push(Reverse((at, timer)));
        }
    }

    /// When the next timer is woken.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, timer))) = self.heap.peek() {
            if self.armed[*timer as usize] == *at {
                return Some(Instant::from_nanos(*at));
            }
            self.heap.pop();
        }
        None
    }

    /// The timer of [`Self::next`], which now has no deadline.
    pub(crate) fn wake(&mut self) -> Option<u32> {
        self.next()?;
        let Reverse((_, timer)) = self.heap.pop()?;
        self.armed[timer as usize] = NEVER;
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn timers_are_woken_by_time_and_then_by_number() {
        let mut timers = Timers::default();
        let all: Vec<u32> = (0..3).map(|_| timers.add()).collect();
        for (timer, deadline) in all.iter().zip([20, 10, 10]) {
            timers.set(*timer, Some(at(deadline)));
        }
        assert_eq!(timers.next(), Some(at(10)));
        let woken: Vec<u32> = std::iter::from_fn(|| timers.wake()).collect();
        assert_eq!(woken, [1, 2, 0]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn an_earlier_deadline_replaces_a_later_one_and_not_the_other_way_round() {
        let mut timers = Timers::default();
        let timer = timers.add();
        timers.set(timer, Some(at(50)));
        timers.set(timer, Some(at(20)));
        timers.set(timer, Some(at(90)));
        timers.set(timer, None);
        assert_eq!(timers.next(), Some(at(20)));
        assert_eq!(timers.wake(), Some(timer));
        assert_eq!(timers.wake(), None, "the entry at 50 is stale");
        timers.set(timer, Some(at(90)));
        assert_eq!(timers.next(), Some(at(90)));
    }
}
