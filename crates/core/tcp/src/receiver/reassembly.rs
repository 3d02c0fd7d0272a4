//! The data that has arrived out of order.

use std::collections::VecDeque;

/// Disjoint intervals of stream positions, in order. No two of them touch.
///
/// Data usually arrives at one of the two ends: it is new data after the last interval, or a
/// retransmission before the first. Both take O(1). Any other place is found by bisection, and the
/// insertion moves the shorter side. The window bounds the number of intervals; the caller checks
/// the window.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    held: VecDeque<(u64, u64)>,
    /// The number of stored positions.
    pub(super) bytes: u64,
}

/// The result of inserting data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Insertion {
    /// The interval to which the inserted data belongs now.
    pub(super) merged: (u64, u64),
    /// The range from the first to the last inserted position that had arrived before.
    pub(super) duplicate: Option<(u64, u64)>,
}

impl Reassembly {
    /// Whether no data is stored.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The position after the last stored position.
    pub(super) fn end(&self) -> Option<u64> {
        self.held.back().map(|held| held.1)
    }

    /// The part of the first interval that lies before `end`.
    pub(super) fn first_below(&self, end: u64) -> Option<(u64, u64)> {
        let first = self.held.front().filter(|held| held.0 < end)?;
        Some((first.0, first.1.min(end)))
    }

    /// Adds the positions from `start` to before `end`.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> Insertion {
        debug_assert!(start < end, "data has a length");
        if self.end().is_none_or(|last| last < start) {
            self.held.push_back((start, end));
            self.bytes += end - start;
            return Insertion { merged: (start, end), duplicate: None };
        }
        let first = self.held.partition_point(|held| held.1 < start);
        let mut merged = (start, end);
        let mut duplicate: Option<(u64, u64)> = None;
        let mut after = first;
        while let Some(held) = self.held.get(after).copied().filter(|held| held.0 <= end) {
            let common = (held.0.max(start), held.1.min(end));
            if common.0 < common.1 {
                duplicate = Some((duplicate.map_or(common.0, |hull| hull.0), common.1));
            }
            merged = (merged.0.min(held.0), merged.1.max(held.1));
            self.bytes -= held.1 - held.0;
            after += 1;
        }
        self.bytes += merged.1 - merged.0;
        self.held.drain(first..after);
        self.held.insert(first, merged);
        debug_assert!(first == 0 || self.held[first - 1].1 < merged.0, "the one before touches it");
        debug_assert!(self.held.get(first + 1).is_none_or(|later| merged.1 < later.0));
        Insertion { merged, duplicate }
    }

    /// Removes the stored data that is in order once everything before `next` has arrived. Returns
    /// the first position that is still missing.
    pub(super) fn advance(&mut self, mut next: u64) -> u64 {
        while let Some((start, end)) = self.held.front().copied().filter(|held| held.0 <= next) {
            self.held.pop_front();
            self.bytes -= end - start;
            next = next.max(end);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POSITIONS: usize = 64;

    /// A model of [`Reassembly`] that stores each position by itself.
    struct Model {
        held: [bool; POSITIONS],
    }

    impl Model {
        fn insert(&mut self, start: usize, end: usize) -> Insertion {
            let had: Vec<usize> = (start..end).filter(|at| self.held[*at]).collect();
            self.held[start..end].fill(true);
            let below = self.held[..start].iter().rev().take_while(|held| **held).count();
            let above = self.held[end..].iter().take_while(|held| **held).count();
            Insertion {
                merged: ((start - below) as u64, (end + above) as u64),
                duplicate: had.first().map(|at| (*at as u64, had[had.len() - 1] as u64 + 1)),
            }
        }

        fn advance(&mut self, next: usize) -> usize {
            let after = next + self.held[next..].iter().take_while(|held| **held).count();
            self.held[..after].fill(false);
            after
        }
    }

    proptest! {
        #[test]
        fn holds_the_same_as_a_set_of_positions(
            ops in prop::collection::vec((0..POSITIONS, 1_usize..12, 0_u8..8), 1..80),
        ) {
            let mut intervals = Reassembly::default();
            let mut model = Model { held: [false; POSITIONS] };
            let mut next = 0;
            for (start, len, op) in ops {
                let (start, end) = (start.max(next), (start.max(next) + len).min(POSITIONS));
                if op == 0 {
                    let reached = intervals.advance(start.min(POSITIONS) as u64);
                    next = model.advance(start.min(POSITIONS));
                    prop_assert_eq!(reached, next as u64);
                } else if start < end {
                    let expected = model.insert(start, end);
                    prop_assert_eq!(intervals.insert(start as u64, end as u64), expected);
                }
                let held = model.held.iter().filter(|held| **held).count();
                prop_assert_eq!(intervals.bytes, held as u64);
                prop_assert_eq!(intervals.is_empty(), held == 0);
                let last = model.held.iter().rposition(|held| *held).map(|at| at as u64 + 1);
                prop_assert_eq!(intervals.end(), last);
            }
        }
    }

    #[test]
    fn many_gaps_close_from_below() {
        let mut intervals = Reassembly::default();
        for gap in 0..5000 {
            intervals.insert(20 * gap + 10, 20 * gap + 20);
        }
        assert_eq!(intervals.bytes, 50_000);
        assert_eq!(intervals.first_below(15), Some((10, 15)));
        for gap in 0..5000 {
            assert_eq!(intervals.advance(20 * gap + 10), 20 * gap + 20);
        }
        assert!(intervals.is_empty());
    }
}
