//! Times that grow while the reason for them comes back.

use wakeai_units::Duration;

const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);

/// A time that doubles with each use: 60 s, 120 s, and 600 s at most. Releases and contests last so
/// long, and checks of the path are so far apart. Each of them costs goodput or lengthens the queue,
/// and one without cause comes back as long as what looks like the cause stays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff(Duration);

impl Backoff {
    pub(super) fn next(&mut self) -> Duration {
        self.0 = (self.0 * 2).clamp(FIRST, LONGEST);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_twice_the_last_one_and_ten_minutes_at_most() {
        let mut backoff = Backoff::default();
        let seconds = [(); 6].map(|()| backoff.next().as_micros() / 1_000_000);
        assert_eq!(seconds, [60, 120, 240, 480, 600, 600]);
    }
}
