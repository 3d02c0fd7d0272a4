//! What a long run tells its user while it lasts.

use wakeai_units::Duration;

/// Hears how far the lab is.
pub trait Progress {
    /// Runs in all, the solo runs counted.
    fn runs(&self, count: usize) {
        let _ = count;
    }
    /// A run begins; it lasts about `length` plus its set-up.
    fn run_begins(&self, name: &str, length: Duration) {
        let _ = (name, length);
    }
    /// The current run has come so far; zero while it is set up.
    fn run_reached(&self, elapsed: Duration) {
        let _ = elapsed;
    }
    /// The current run has ended.
    fn run_ends(&self) {}
    /// Something that the user should know.
    fn note(&self, text: &str) {
        let _ = text;
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}
