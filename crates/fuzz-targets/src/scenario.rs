//! Scenario files.

#[path = "../../scenario/tests/mutate/exercise.rs"]
mod exercise;

/// Later bytes are ignored; a test of the crate `scenario` reads files of a megabyte.
const LONGEST: usize = 1 << 16;

/// The assertions are in [`exercise::exercise`].
pub(crate) fn target(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(LONGEST)]) {
        exercise::exercise(text);
    }
}
