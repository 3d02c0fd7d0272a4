//! SACK and D-SACK blocks for the sender.

use crate::segment::SackBlocks;

/// The number of blocks that are kept, as in Linux. It is one more than an ACK has room for.
const REMEMBERED: usize = 4;

/// The intervals that changed last, and the positions that arrived twice since the last ACK.
#[derive(Clone, Debug, Default)]
pub(super) struct Sacks {
    /// The intervals, the most recently changed first (RFC 2018 section 4).
    recent: Vec<(u64, u64)>,
    duplicate: Option<(u64, u64)>,
}

impl Sacks {
    /// Whether one more block would displace another.
    pub(super) fn is_full(&self) -> bool {
        self.recent.len() == REMEMBERED
    }

    /// Records the interval to which the segment that has just arrived belongs.
    pub(super) fn report(&mut self, interval: (u64, u64)) {
        self.recent.retain(|block| block.0 < interval.0 || interval.1 < block.1);
        self.recent.truncate(REMEMBERED - 1);
        self.recent.insert(0, interval);
    }

    /// Forgets the intervals before `next`, which the acknowledgement number covers.
    pub(super) fn acknowledge(&mut self, next: u64) {
        self.recent.retain(|block| block.1 > next);
    }

    /// Records positions that arrived a second time. Several ranges before the next ACK are
    /// reported as one block.
    pub(super) fn report_duplicate(&mut self, start: u64, end: u64) {
        let hull = self.duplicate.map_or((start, end), |old| (old.0.min(start), old.1.max(end)));
        self.duplicate = Some(hull);
    }

    /// The blocks of an ACK, and whether they begin with a D-SACK. A D-SACK is sent only once (RFC
    /// 2883 section 4).
    pub(super) fn take(&mut self) -> (SackBlocks, bool) {
        let duplicate = self.duplicate.take();
        let recent = self.recent.iter().copied();
        debug_assert!(duplicate.is_none_or(|block| block.0 < block.1), "a block has a length");
        (duplicate.into_iter().chain(recent).collect(), duplicate.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_that_changed_last_comes_first() {
        let mut sacks = Sacks::default();
        for start in [10, 30, 50] {
            sacks.report((start, start + 10));
        }
        assert_eq!(*sacks.take().0, [(50, 60), (30, 40), (10, 20)]);
        sacks.report((10, 25));
        assert_eq!(*sacks.take().0, [(10, 25), (50, 60), (30, 40)]);
    }

    #[test]
    fn blocks_that_grow_together_become_one() {
        let mut sacks = Sacks::default();
        sacks.report((10, 20));
        sacks.report((30, 40));
        sacks.report((10, 40));
        assert_eq!(*sacks.take().0, [(10, 40)]);
    }

    #[test]
    fn a_fourth_block_waits_for_its_turn() {
        let mut sacks = Sacks::default();
        for start in [10, 30, 50, 70] {
            sacks.report((start, start + 10));
        }
        assert_eq!(*sacks.take().0, [(70, 80), (50, 60), (30, 40)]);
        sacks.report((50, 80));
        assert_eq!(*sacks.take().0, [(50, 80), (30, 40), (10, 20)]);
        sacks.acknowledge(40);
        assert_eq!(*sacks.take().0, [(50, 80)]);
    }

    #[test]
    fn what_came_twice_is_told_first_and_once() {
        let mut sacks = Sacks::default();
        for start in [10, 30, 50] {
            sacks.report((start, start + 10));
        }
        sacks.report_duplicate(2, 4);
        sacks.report_duplicate(4, 6);
        assert_eq!(*sacks.take().0, [(2, 6), (50, 60), (30, 40)]);
        assert_eq!(*sacks.take().0, [(50, 60), (30, 40), (10, 20)]);
    }
}
