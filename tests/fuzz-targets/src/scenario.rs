//! Fuzzes the reader of scenario files.

#[path = "../../../crates/experiment/scenario/tests/mutate/exercise.rs"]
mod exercise;

/// The longest input in bytes; the rest is ignored. A test of the crate `scenario` reads longer
/// files.
const LONGEST: usize = 1 << 16;

/// Passes a text to [`exercise::exercise`], which has the assertions.
pub(crate) fn target(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(LONGEST)]) {
        exercise::exercise(text);
    }
}
