//! The backoffs in the order in which they end. Taking those that end first has constant cost.

/// The end of a bucket's list.
const NONE: u32 = u32::MAX;

/// Contenders, sorted by the slot count at which their backoff ends (the key).
///
/// The wheel is a ring of buckets, one for each slot in which a backoff can end. A bucket is a
/// linked list within one array, so nothing is allocated after the start. Insertion is O(1). The
/// search for the next end skips empty buckets 64 at a time.
#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    heads: Vec<u32>,
    occupied: Vec<u64>,
    next: Vec<u32>,
    /// The number of buckets less one. The number of buckets is a power of two.
    mask: u64,
    /// The least key in the wheel; `u64::MAX` where the wheel is empty.
    first: u64,
    len: usize,
}

impl Wheel {
    /// A wheel for `contenders` contenders whose keys are never more than `span` apart.
    pub(crate) fn new(contenders: usize, span: u64) -> Self {
        let buckets = (span + 1).next_power_of_two().max(64);
        Self {
            heads: vec![NONE; buckets as usize],
            occupied: vec![0; (buckets / 64) as usize],
            next: vec![NONE; contenders],
            mask: buckets - 1,
            first: u64::MAX,
            len: 0,
        }
    }

    /// The least key; `None` where the wheel is empty.
    pub(crate) fn first(&self) -> Option<u64> {
        (self.len > 0).then_some(self.first)
    }

    /// Adds a contender that is not in the wheel.
    pub(crate) fn insert(&mut self, contender: u32, key: u64) {
        debug_assert!(
            self.len == 0 || key.abs_diff(self.first) <= self.mask,
            "{key} is too far from {}",
            self.first
        );
        let bucket = (key & self.mask) as usize;
        self.next[contender as usize] = self.heads[bucket];
        self.heads[bucket] = contender;
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        self.first = self.first.min(key);
        self.len += 1;
    }

    /// Moves all contenders of the least key to the end of `out`.
    pub(crate) fn take_first(&mut self, out: &mut Vec<u32>) {
        let bucket = (self.first & self.mask) as usize;
        let mut contender = std::mem::replace(&mut self.heads[bucket], NONE);
        while contender != NONE {
            out.push(contender);
            self.len -= 1;
            contender = self.next[contender as usize];
        }
        self.vacate(bucket);
    }

    /// Removes the contender with `key`.
    pub(crate) fn remove(&mut self, contender: u32, key: u64) {
        let bucket = (key & self.mask) as usize;
        let after = self.next[contender as usize];
        if self.heads[bucket] == contender {
            self.heads[bucket] = after;
        } else {
            let mut before = self.heads[bucket];
            while self.next[before as usize] != contender {
                before = self.next[before as usize];
            }
            self.next[before as usize] = after;
        }
        self.len -= 1;
        if self.heads[bucket] == NONE {
            self.vacate(bucket);
        }
    }

    /// Marks a bucket empty. Where it was the first, the next first bucket is searched.
    fn vacate(&mut self, bucket: usize) {
        self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        if self.len == 0 {
            self.first = u64::MAX;
        } else if self.first & self.mask == bucket as u64 {
            self.first = self.occupied_from(self.first);
        }
    }

    /// The least key at or after `key` whose bucket is occupied. Such a bucket must exist.
    fn occupied_from(&self, key: u64) -> u64 {
        let (words, bucket) = (self.occupied.len(), (key & self.mask) as usize);
        let mut word = bucket / 64;
        let mut bits = self.occupied[word] & (u64::MAX << (bucket % 64));
        while bits == 0 {
            word = (word + 1) % words;
            bits = self.occupied[word];
        }
        let found = (word * 64) as u64 + u64::from(bits.trailing_zeros());
        key + (found.wrapping_sub(bucket as u64) & self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn gives_the_same_as_an_ordered_set(
            ops in prop::collection::vec((0_u64..100, 0_u8..4), 1..300),
        ) {
            let mut wheel = Wheel::new(50, 100);
            let mut model = BTreeSet::new();
            let (mut base, mut free) = (0, (0..50).collect::<Vec<u32>>());
            for (ahead, op) in ops {
                match op {
                    0..2 => if let Some(contender) = free.pop() {
                        wheel.insert(contender, base + ahead);
                        model.insert((base + ahead, contender));
                    },
                    2 => if let Some(&(key, contender)) = model.iter().nth(ahead as usize / 10) {
                        wheel.remove(contender, key);
                        model.remove(&(key, contender));
                        free.push(contender);
                    },
                    _ => if let Some(&(first, _)) = model.first() {
                        let mut taken = Vec::new();
                        wheel.take_first(&mut taken);
                        taken.sort_unstable();
                        let due: Vec<u32> =
                            model.iter().take_while(|(key, _)| *key == first).map(|e| e.1).collect();
                        prop_assert_eq!(&taken, &due);
                        model.retain(|(key, _)| *key != first);
                        free.extend(taken);
                        base = first;
                    },
                }
                prop_assert_eq!(wheel.first(), model.first().map(|(key, _)| *key));
            }
        }
    }
}
