//! Fuzzes the simulator: tiny scenarios that the bytes choose run to their end.

#[path = "../../../crates/experiment/sim/tests/tiny/mod.rs"]
mod tiny;

/// The number of bytes that are used; the rest is ignored. No scenario takes more choices.
const LONGEST: usize = 256;

/// The first eight bytes are the seed, and the others choose the scenario. [`tiny::runs`] has the
/// assertions.
pub(crate) fn target(bytes: &[u8]) {
    let (seed, choices) = bytes[..bytes.len().min(LONGEST)].split_at(bytes.len().min(8));
    let seed = seed.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    tiny::runs(choices, seed);
}
