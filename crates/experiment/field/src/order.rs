//! The order of the conditions in each block.

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// For each block, the indices of all conditions in the order in which they are run.
///
/// The order of every first block of two is drawn from `seed`, and the second has the reverse. So with an even number of
/// blocks each of two conditions is as often the earlier one, and what drifts over a block (the hour, the neighbours,
/// the heat of the devices) favours none.
pub(crate) fn blocks(conditions: usize, blocks: u32, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut all: Vec<Vec<usize>> = Vec::new();
    for block in 0..blocks {
        let order = match all.last() {
            Some(last) if block % 2 == 1 => last.iter().rev().copied().collect(),
            _ => shuffled(conditions, &mut rng),
        };
        all.push(order);
    }
    all
}

fn shuffled(count: usize, rng: &mut Pcg64Mcg) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let chosen = (u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64;
        order.swap(last, chosen as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_every_condition_once_and_pairs_are_balanced() {
        for seed in 0..50 {
            let all = blocks(4, 6, seed);
            for block in &all {
                let mut sorted = block.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, [0, 1, 2, 3]);
            }
            for (a, b) in [(0, 1), (0, 3), (1, 2), (2, 3)] {
                let place = |block: &Vec<usize>, one| block.iter().position(|it| *it == one);
                let earlier = all.iter().filter(|block| place(block, a) < place(block, b)).count();
                assert_eq!(earlier, 3, "seed {seed}, {a} before {b}");
            }
        }
    }

    #[test]
    fn the_order_follows_from_the_seed() {
        assert_eq!(blocks(5, 3, 7), blocks(5, 3, 7));
        let firsts: std::collections::BTreeSet<Vec<usize>> =
            (0..40).map(|seed| blocks(3, 1, seed).remove(0)).collect();
        assert_eq!(firsts.len(), 6, "all orders of three come up");
    }
}
