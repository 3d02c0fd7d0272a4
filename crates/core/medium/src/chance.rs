//! What happens at random, with a given probability.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// Draws whether something happens that has a probability of `ppm` parts per million. Nothing is drawn for
/// what never happens, so it does not move the draws of anything else.
pub(crate) fn happens(ppm: u32, rng: &mut Pcg64Mcg) -> bool {
    ppm > 0 && (u64::from(rng.next_u32()) * 1_000_000) >> 32 < u64::from(ppm)
}
