//! Scenario files.

#[path = "../../scenario/tests/mutate/exercise.rs"]
mod exercise;

/// Beyond this a file is not tried; a test of the crate `scenario` reads files of a megabyte.
const LONGEST: usize = 1 << 16;

/// What holds for every file is said where it is exercised.
pub(crate) fn target(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(LONGEST)]) {
        exercise::exercise(text);
    }
}
