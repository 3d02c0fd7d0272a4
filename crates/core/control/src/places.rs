//! Finds values by keys: those that stations choose, and the ids of connections.

use std::hint::black_box;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::StationId;
use crate::presence::BootId;

/// The places of values in a list, by the values' keys.
///
/// The list keeps the keys, so what is read to find a value is little beside the value itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(HashTable<u32>);

/// A key, and its hash.
///
/// The hash is fast, and not one that withstands chosen keys. All keys come from authentic messages,
/// and the lists have limits. So a member of the group that chooses its keys can make a look-up about as
/// expensive as the check of a message's authenticator, and no more.
pub(crate) trait Key: Copy + Eq {
    fn hash(self) -> u64;
}

/// A hash by multiplication (Knuth, The Art of Computer Programming, volume 3, section 6.4). The factor
/// is 2^64 divided by the golden ratio, made odd.
fn multiplied(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Values by the ids of connections. The kernel chooses these ids, so that their hash need not withstand chosen ones.
#[derive(Clone, Debug)]
pub(crate) struct ById<V>(HashTable<(u64, V)>);

impl<V> Default for ById<V> {
    fn default() -> Self {
        Self(HashTable::new())
    }
}

impl<V> ById<V> {
    /// The place of the id, with its value or free.
    pub(crate) fn entry(&mut self, id: u64) -> Entry<'_, (u64, V)> {
        self.0.entry(multiplied(id), |(of, _)| *of == id, |(of, _)| multiplied(*of))
    }

    /// Removes all values but these.
    pub(crate) fn retain(&mut self, keep: impl Fn(&V) -> bool) {
        self.0.retain(|(_, value)| keep(value));
    }
}

impl Key for StationId {
    fn hash(self) -> u64 {
        multiplied(self.0)
    }
}

impl Key for BootId {
    fn hash(self) -> u64 {
        let number = u128::from_le_bytes(self.0);
        multiplied(number as u64 ^ (number >> 64) as u64)
    }
}

impl Places {
    /// The place of `key` in a list with the keys `at`.
    pub(crate) fn find<K: Key>(&self, key: K, at: impl Fn(usize) -> K) -> Option<usize> {
        let found = self.0.find(key.hash(), |place| at(*place as usize) == key);
        found.map(|place| *place as usize)
    }

    /// Reads all places, one after another.
    pub(crate) fn read_ahead(&self) {
        black_box(self.0.iter().fold(0, |all, place| all ^ place));
    }

    /// Adds the place of a key that has none.
    pub(crate) fn add<K: Key>(&mut self, key: K, place: usize, at: impl Fn(usize) -> K) {
        // The lists have far fewer than 2^32 places.
        self.0.insert_unique(key.hash(), place as u32, |place| at(*place as usize).hash());
    }

    /// Removes the place of `key`.
    pub(crate) fn remove(&mut self, key: impl Key, place: usize) {
        if let Ok(entry) = self.0.find_entry(key.hash(), |one| *one as usize == place) {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_places_are_those_of_the_list(ops in proptest::collection::vec((0_u64..40, any::<bool>()), 0..200)) {
            let (mut list, mut places) = (Vec::new(), Places::default());
            for (number, adds) in ops {
                // Ids that differ in their upper bits alone, and those that differ in the lower ones.
                let key = StationId(if number < 20 { number << 58 } else { number });
                let found = places.find(key, |place| list[place]);
                match (found, adds) {
                    (None, true) => {
                        list.push(key);
                        places.add(key, list.len() - 1, |place| list[place]);
                    }
                    (Some(place), false) => {
                        places.remove(key, place);
                        list[place] = StationId(u64::MAX);
                    }
                    _ => {}
                }
                for number in (0..20).map(|number| number << 58).chain(20..40) {
                    let (key, at) = (StationId(number), |place: usize| list[place]);
                    let expected = list.iter().position(|one| *one == key);
                    prop_assert_eq!(places.find(key, at), expected);
                }
            }
        }
    }
}
