//! The application at the receiving end: how fast it takes the bytes that have arrived.

use wakeai_units::{Duration, Instant, Rate};

/// How the application reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Everything at once.
    #[default]
    AtOnce,
    /// Every 10 ms, at this rate.
    At(Rate),
    /// Not at all.
    Paused,
}

/// The time between two reads of an application that reads at a rate.
const PERIOD: Duration = Duration::from_millis(10);

/// The times at which the application reads, and the amounts.
#[derive(Clone, Debug, Default)]
pub(super) struct ApplicationReader {
    reading: Reading,
    /// The time since which data has been waiting, and the bytes read since then; `None` while no
    /// data waits. For time without data the application does not catch up later.
    busy: Option<Busy>,
}

#[derive(Clone, Copy, Debug)]
struct Busy {
    since: Instant,
    periods: u64,
    taken: u64,
}

impl ApplicationReader {
    /// Changes how the application reads from `now` on.
    pub(super) fn set(&mut self, now: Instant, reading: Reading, waiting: u64) {
        self.reading = reading;
        self.busy = None;
        self.on_data(now, waiting);
    }

    /// Records that `waiting` bytes are in the buffer now.
    pub(super) fn on_data(&mut self, now: Instant, waiting: u64) {
        if matches!(self.reading, Reading::At(_)) && waiting > 0 && self.busy.is_none() {
            self.busy = Some(Busy { since: now, periods: 1, taken: 0 });
        }
    }

    /// The time of the next read.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.busy.map(|busy| busy.since + PERIOD * busy.periods)
    }

    /// The number of the `waiting` bytes that the application reads now.
    pub(super) fn take(&mut self, now: Instant, waiting: u64) -> u64 {
        match self.reading {
            Reading::AtOnce => waiting,
            Reading::Paused => 0,
            Reading::At(rate) => self.take_at(now, rate, waiting),
        }
    }

    fn take_at(&mut self, now: Instant, rate: Rate, waiting: u64) -> u64 {
        let Some(busy) = self.busy.as_mut() else { return 0 };
        let elapsed = now.saturating_since(busy.since);
        let periods = elapsed.as_nanos() / PERIOD.as_nanos();
        if periods < busy.periods {
            return 0;
        }
        busy.periods = periods + 1;
        let due = rate.bytes_in(PERIOD * periods).get() - busy.taken;
        let taken = due.min(waiting);
        busy.taken += taken;
        if taken == waiting {
            self.busy = None;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_rate_is_read_to_the_byte_over_time() {
        let mut reader = ApplicationReader::default();
        reader.set(at(0), Reading::At(Rate::from_bps(1_000_000)), 1_000_000);
        let mut taken = 0;
        for _ in 0..30 {
            let due = reader.next_timeout().expect("there is something to read");
            taken += reader.take(due, 1_000_000 - taken);
        }
        assert_eq!(taken, 300 * 125);
    }

    #[test]
    fn time_without_data_is_not_made_up_for() {
        let mut reader = ApplicationReader::default();
        reader.set(at(0), Reading::At(Rate::from_bps(8_000)), 0);
        assert_eq!(reader.next_timeout(), None);
        reader.on_data(at(5_000), 100);
        assert_eq!(reader.next_timeout(), Some(at(5_010)));
        assert_eq!(reader.take(at(5_009), 100), 0);
        assert_eq!(reader.take(at(5_010), 100), 10);
    }

    #[test]
    fn a_paused_application_takes_nothing_and_never_wakes() {
        let mut reader = ApplicationReader::default();
        reader.set(at(0), Reading::Paused, 100);
        assert_eq!((reader.take(at(1_000), 100), reader.next_timeout()), (0, None));
    }
}
