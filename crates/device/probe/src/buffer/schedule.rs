//! The times at which the datagrams of a burst are due.

use wakeai_units::{Bytes, Duration, Instant, Rate, Serializer};

use super::burst::PRELUDE;

/// The pause between two datagrams of the prelude, which precedes the burst itself.
const PAUSE: Duration = Duration::from_millis(5);

/// A burst to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shot {
    /// The length of the burst's IP packets.
    pub packet: Bytes,
    /// The rate of the IP packets.
    pub rate: Rate,
    /// The number of packets after the prelude.
    pub count: u32,
    /// A second, sparse flow beside the burst: one small datagram per interval.
    pub beside: Option<Beside>,
}

/// A sparse flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The time between two of its datagrams.
    pub every: Duration,
    /// Whether the flow goes to the second station instead of the first.
    pub to_second: bool,
}

/// A datagram that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The time at which it is due.
    pub at: Instant,
    /// 0 for the burst, 1 for the sparse flow.
    pub flow: u8,
    /// The number of the datagram in that flow.
    pub number: u32,
}

/// The datagrams of a shot in the order in which they are due.
///
/// The time of each counts from the start of the burst, so a datagram that is sent late delays no
/// other.
#[derive(Clone, Debug)]
pub struct Schedule {
    shot: Shot,
    line: Serializer,
    next: [Option<Due>; 2],
}

impl Schedule {
    /// The schedule of a shot that starts at `start`. The rate of the shot must be above zero.
    pub fn new(shot: Shot, start: Instant) -> Self {
        let due = |flow| Some(Due { at: start, flow, number: 0 });
        let line = Serializer::new(shot.rate);
        Self { shot, line, next: [due(0), shot.beside.and_then(|_| due(1))] }
    }

    fn after(&mut self, due: Due) -> Option<Due> {
        let number = due.number + 1;
        if due.flow == 1 {
            let beside = self.shot.beside?;
            return Some(Due { at: due.at + beside.every, number, ..due });
        }
        let is_prelude = (due.number as usize) < PRELUDE;
        let at = if is_prelude { due.at + PAUSE } else { self.line.send(due.at, self.shot.packet) };
        (number < PRELUDE as u32 + self.shot.count).then_some(Due { at, number, ..due })
    }
}

impl Iterator for Schedule {
    type Item = Due;

    /// The sparse flow ends with the burst.
    fn next(&mut self) -> Option<Due> {
        let burst = self.next[0]?;
        let due = self.next[1].filter(|sparse| sparse.at < burst.at).unwrap_or(burst);
        self.next[usize::from(due.flow)] = self.after(due);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shot(beside: Option<Beside>) -> Shot {
        Shot { packet: Bytes::new(1_500), rate: Rate::from_mbps(12), count: 100, beside }
    }

    #[test]
    fn a_burst_has_a_prelude_with_pauses_and_then_its_rate() {
        let all: Vec<Due> = Schedule::new(shot(None), Instant::from_nanos(7)).collect();
        assert_eq!(all.len(), PRELUDE + 100);
        assert_eq!(all[1].at - all[0].at, PAUSE);
        assert_eq!(all[PRELUDE].at - all[0].at, Duration::from_millis(50));
        assert_eq!(all.last().unwrap().at - all[PRELUDE].at, Duration::from_millis(99));
        assert!(all.iter().zip(0..).all(|(due, number)| (due.flow, due.number) == (0, number)));
    }

    #[test]
    fn the_sparse_flow_has_numbers_of_its_own_and_ends_with_the_burst() {
        let beside = Beside { every: Duration::from_millis(10), to_second: false };
        let all: Vec<Due> = Schedule::new(shot(Some(beside)), Instant::ZERO).collect();
        assert!(all.is_sorted_by_key(|due| due.at));
        let sparse: Vec<u32> =
            all.iter().filter(|due| due.flow == 1).map(|due| due.number).collect();
        assert_eq!(sparse, (0..15).collect::<Vec<u32>>());
        assert_eq!(all.len(), PRELUDE + 100 + sparse.len());
    }
}
