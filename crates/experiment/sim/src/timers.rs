//! The timers of the event loop: numbered deadlines, and which is next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wakeai_units::Instant;

/// The deadline of a timer that is not set.
const NEVER: u64 = u64::MAX;

/// The part of the run that a timer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerOwner {
    Flow(u32),
    Agent(u32),
    Sender(u32),
    Receiver(u32),
    /// The sender, or with `true` the receiver, of a QUIC flow.
    Quic(u32, bool),
    Policer(u32),
    Sampler,
}

/// Numbered timers, each with at most one deadline.
///
/// A later deadline costs nothing, although TCP sets one with every ACK. The timer expires at the
/// old deadline, and its owner finds that nothing is due and sets the timer again. So a timer may
/// expire early, but never late.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    /// Entries of deadline and number. An entry is outdated where `armed` has another deadline.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// The deadline of each timer, in nanoseconds.
    armed: Vec<u64>,
    /// The owner of each timer.
    owners: Vec<TimerOwner>,
}

impl Timers {
    /// Adds a timer, and returns its number.
    pub(crate) fn add(&mut self, owner: TimerOwner) -> u32 {
        self.armed.push(NEVER);
        self.owners.push(owner);
        self.armed.len() as u32 - 1
    }

    /// Makes the timer expire at `deadline` or earlier.
    pub(crate) fn set(&mut self, timer: u32, deadline: Option<Instant>) {
        let Some(deadline) = deadline else { return };
        let armed = &mut self.armed[timer as usize];
        let at = deadline.as_nanos();
        if at < *armed {
            *armed = at;
            self.heap.push(Reverse((at, timer)));
        }
    }

    /// The earliest deadline.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, timer))) = self.heap.peek() {
            if self.armed[*timer as usize] == *at {
                return Some(Instant::from_nanos(*at));
            }
            self.heap.pop();
        }
        None
    }

    /// Clears the timer with the earliest deadline, and returns its owner.
    pub(crate) fn expire(&mut self) -> Option<TimerOwner> {
        self.next()?;
        let Reverse((_, timer)) = self.heap.pop()?;
        self.armed[timer as usize] = NEVER;
        Some(self.owners[timer as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn timers_expire_by_deadline_and_then_by_number() {
        let mut timers = Timers::default();
        let all: Vec<u32> = (0..3).map(|flow| timers.add(TimerOwner::Flow(flow))).collect();
        for (timer, deadline) in all.iter().zip([20, 10, 10]) {
            timers.set(*timer, Some(at(deadline)));
        }
        assert_eq!(timers.next(), Some(at(10)));
        let expired: Vec<TimerOwner> = std::iter::from_fn(|| timers.expire()).collect();
        assert_eq!(expired, [1, 2, 0].map(TimerOwner::Flow));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn an_earlier_deadline_replaces_a_later_one() {
        let mut timers = Timers::default();
        let owner = TimerOwner::Sampler;
        let timer = timers.add(owner);
        timers.set(timer, Some(at(50)));
        timers.set(timer, Some(at(20)));
        timers.set(timer, Some(at(90)));
        timers.set(timer, None);
        assert_eq!(timers.next(), Some(at(20)));
        assert_eq!(timers.expire(), Some(owner));
        assert_eq!(timers.expire(), None, "the entry at 50 is stale");
        timers.set(timer, Some(at(90)));
        assert_eq!(timers.next(), Some(at(90)));
    }
}
