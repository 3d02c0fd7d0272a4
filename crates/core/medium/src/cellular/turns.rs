//! The scheduler: the order in which the stations are served.

use std::collections::VecDeque;

use wakeai_wifi::Scheduler;

/// The time constant, in intervals, of the average rate by which proportional fairness chooses a
/// station. (The original paper has 1000 slots of 1.67 ms, for fading channels; base stations of
/// today have some 100 ms.)
const MEMORY: u64 = 128;

/// The averages are bytes per interval times this factor.
const SCALE: u64 = 1 << 16;

/// The stations that have something to send, in the order in which they are served.
///
/// Order of calls: [`Turns::join`] when a station's queue is no longer empty. In each interval
/// [`Turns::next`] and [`Turns::served`], until the interval is used up or no station waits; then
/// [`Turns::intervals_over`].
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// The waiting stations. The least recently served one comes first.
    waiting: VecDeque<u32>,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    RoundRobin {
        /// Bytes of one turn.
        quantum: u64,
        /// The bytes that are left of the first station's turn.
        left: u64,
    },
    ProportionalFair {
        /// By station: exponential average of the bytes served per interval.
        averages: Vec<u64>,
        /// By station: bytes served in this interval.
        now: Vec<u64>,
    },
}

impl Turns {
    /// A scheduler without waiting stations; `quantum` is the number of bytes that an interval
    /// carries.
    pub(super) fn new(scheduler: Scheduler, stations: usize, quantum: u64) -> Self {
        let quantum = quantum.max(1);
        let rule = match scheduler {
            Scheduler::RoundRobin => Rule::RoundRobin { quantum, left: quantum },
            Scheduler::ProportionalFair => {
                Rule::ProportionalFair { averages: vec![0; stations], now: vec![0; stations] }
            }
        };
        Self { waiting: VecDeque::with_capacity(stations), rule }
    }

    /// Whether no station waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a station whose queue is no longer empty.
    pub(super) fn join(&mut self, station: usize) {
        self.waiting.push_back(station as u32);
    }

    /// The station that is served next, and the most bytes that it may get.
    pub(super) fn next(&mut self) -> Option<(usize, u64)> {
        match &self.rule {
            Rule::RoundRobin { left, .. } => Some((*self.waiting.front()? as usize, *left)),
            Rule::ProportionalFair { averages, .. } => {
                let average = |station: &u32| averages[*station as usize];
                let (place, _) =
                    self.waiting.iter().enumerate().min_by_key(|(_, station)| average(station))?;
                // The station moves to the front, where `served` expects it.
                let station = self.waiting.remove(place)?;
                self.waiting.push_front(station);
                Some((station as usize, u64::MAX))
            }
        }
    }

    /// Records that the station of [`Self::next`] got `bytes`. `is_done` says whether its queue is
    /// empty now.
    pub(super) fn served(&mut self, bytes: u64, is_done: bool) {
        let Some(station) = self.waiting.pop_front() else { return };
        match &mut self.rule {
            Rule::RoundRobin { quantum, left } => {
                *left -= bytes;
                if !is_done && *left > 0 {
                    self.waiting.push_front(station);
                    return;
                }
                *left = *quantum;
            }
            Rule::ProportionalFair { now, .. } => now[station as usize] += bytes,
        }
        if !is_done {
            self.waiting.push_back(station);
        }
    }

    /// Ends an interval, after which `idle` further intervals have passed unused.
    pub(super) fn intervals_over(&mut self, idle: u64) {
        let Rule::ProportionalFair { averages, now } = &mut self.rule else { return };
        for (average, now) in averages.iter_mut().zip(now) {
            *average = *average - *average / MEMORY + *now * SCALE / MEMORY;
            *now = 0;
            // Integer division no longer lowers an average below MEMORY, which is 1/512 of a byte.
            for _ in 0..idle.min(64 * MEMORY) {
                if *average < MEMORY {
                    break;
                }
                *average -= *average / MEMORY;
            }
        }
    }
}
