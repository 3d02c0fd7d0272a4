//! The event loop that drives the medium on the wall clock.

use std::io;
use std::os::fd::AsFd;

use nix::time::ClockId;
use wakeai_host::read_clock;
use wakeai_medium::{Medium, Packet};
use wakeai_units::{Duration, Instant};
use wakeai_world::Changes;

use crate::poller::Poller;

/// The poller's token of the descriptor that wakes the loop.
const BELL: u64 = u64::MAX;

/// The time after which a thread that never had to wait pauses for [`BUSY_PAUSE`]. If the machine
/// is too slow for the scenario, a real-time thread would otherwise take all of a processor's time.
const BUSY_LIMIT: Duration = Duration::from_millis(100);
const BUSY_PAUSE: std::time::Duration = std::time::Duration::from_micros(500);

/// The longest wait. A loop without a bell looks after it whether it is over.
const PATIENCE: Duration = Duration::from_millis(200);

/// The time of `CLOCK_MONOTONIC`.
pub fn now() -> Instant {
    read_clock(ClockId::CLOCK_MONOTONIC)
}

/// The clock of a medium. It counts from the time at which the medium's time is zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock that is zero at `epoch`, which is a time of [`now`].
    pub fn since(epoch: Instant) -> Self {
        Self { epoch }
    }

    /// The medium's time.
    pub fn now(&self) -> Instant {
        Instant::ZERO + now().saturating_since(self.epoch)
    }
}

/// What sends into the medium and receives from it.
pub trait Ends {
    /// What they send.
    type Packet: Packet;

    /// Adds their descriptors to the poller, with tokens below `u64::MAX`.
    ///
    /// # Errors
    ///
    /// A descriptor cannot be polled.
    fn register(&self, poller: &Poller) -> io::Result<()>;

    /// The descriptor with this token has received new data. It is told once.
    fn ready(&mut self, token: u64);

    /// Whether there may be something to read that the medium has room for.
    fn is_unread(&self, medium: &Medium<Self::Packet>) -> bool;

    /// Reads a burst into the medium.
    ///
    /// # Errors
    ///
    /// A descriptor cannot be read any more, which ends the loop.
    fn read(&mut self, medium: &mut Medium<Self::Packet>, clock: Clock) -> io::Result<()>;

    /// Hands over what has arrived.
    fn release(&mut self, medium: &mut Medium<Self::Packet>, clock: Clock);
}

/// A medium between its ends.
#[derive(Debug)]
pub struct Drive<E: Ends> {
    /// The medium.
    pub medium: Medium<E::Packet>,
    /// The ends.
    pub ends: E,
    /// The changes that are still to come.
    pub changes: Changes,
    /// Why changes had no effect.
    pub failed_changes: Vec<String>,
    clock: Clock,
    poller: Poller,
}

impl<E: Ends> Drive<E> {
    /// Prepares the loop. `bell` wakes it whenever it receives data, which `ring` takes.
    ///
    /// # Errors
    ///
    /// A descriptor cannot be polled.
    pub fn new(
        medium: Medium<E::Packet>,
        ends: E,
        clock: Clock,
        bell: Option<&impl AsFd>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        if let Some(bell) = bell {
            poller.add(bell, BELL)?;
        }
        ends.register(&poller)?;
        let (changes, failed_changes) = (Changes::default(), Vec::new());
        Ok(Self { medium, ends, changes, failed_changes, clock, poller })
    }

    /// Runs until `is_over`, which is asked in each round. `rung` is called when the bell has rung.
    ///
    /// # Errors
    ///
    /// The first error of the ends, or of the poller.
    pub fn run(
        &mut self,
        mut is_over: impl FnMut(&mut Self) -> bool,
        mut rung: impl FnMut(),
    ) -> io::Result<()> {
        let mut busy_since = self.clock.now();
        while !is_over(self) {
            let now = self.clock.now();
            self.apply_changes(now);
            self.medium.handle_timeout(now);
            self.ends.release(&mut self.medium, self.clock);
            self.ends.read(&mut self.medium, self.clock)?;
            self.ends.release(&mut self.medium, self.clock);

            let now = self.clock.now();
            let wait = self.time_left(now);
            if wait.is_zero() && now.saturating_since(busy_since) < BUSY_LIMIT {
                self.poll(Duration::ZERO, &mut rung)?;
                continue;
            }
            if wait.is_zero() {
                std::thread::sleep(BUSY_PAUSE);
            }
            self.poll(wait, &mut rung)?;
            busy_since = self.clock.now();
        }
        Ok(())
    }

    fn poll(&mut self, wait: Duration, rung: &mut impl FnMut()) -> io::Result<()> {
        let Self { poller, ends, .. } = self;
        poller.wait(Some(wait), |token| if token == BELL { rung() } else { ends.ready(token) })
    }

    /// The time until the next event.
    fn time_left(&self, now: Instant) -> Duration {
        if self.ends.is_unread(&self.medium) {
            return Duration::ZERO;
        }
        let due = [self.changes.next_timeout(), self.medium.next_timeout()].into_iter().flatten();
        due.min().map_or(PATIENCE, |due| due.saturating_since(now).min(PATIENCE))
    }

    fn apply_changes(&mut self, now: Instant) {
        while let Some(change) = self.changes.poll(now) {
            if let Err(error) = self.medium.change(change.station, change.change) {
                self.failed_changes.push(format!("an event had no effect: {error}"));
            }
        }
    }
}
