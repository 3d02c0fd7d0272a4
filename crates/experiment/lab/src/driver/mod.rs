//! The driver: a thread that runs the medium (the emulated radio and wire) on the wall clock. It
//! reads the hosts' packets from their TUN devices and writes each to its receiver when it is due.
//!
//! Order of calls: [`Driver::start`], [`Driver::schedule`] and [`Driver::measure`] as often as
//! needed, [`Driver::stop`].

mod digest;
#[cfg(test)]
mod tests;
mod thread;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use nix::sys::eventfd::{EfdFlags, EventFd};
use rand_pcg::Pcg64Mcg;
use wakeai_air::Lateness;
use wakeai_medium::{Counters, Medium, MediumConfig};
use wakeai_scenario::Experiment;
use wakeai_units::Instant;
use wakeai_world::{Changes, RunError};

use crate::clock;
use crate::error::LabError;
use crate::host::{Port, Steering};
use crate::packet::Frame;
pub(crate) use digest::PacketsDigest;

/// The driver's measurements.
#[derive(Debug, Default)]
pub(crate) struct DriverReport {
    /// The lateness of each packet that was handed to its receiver during the run: the wall time
    /// minus the time at which the medium delivered it, and minus what [`wakeai_air::Host`] says.
    pub(crate) lateness: Lateness,
    /// The medium's counters.
    pub(crate) counters: Counters,
    /// The digest of all packets, if it was asked for.
    pub(crate) digest: Option<PacketsDigest>,
    /// Packets that were lost outside of the medium.
    pub(crate) misrouted: Misrouted,
    /// The protections against lateness that could not be set up, such as real-time scheduling.
    pub(crate) missing: Vec<String>,
}

/// Packets that never entered the medium, or were not delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Misrouted {
    /// Packets that are too short, not IPv4, too long for the medium, or have contradicting
    /// lengths.
    pub(crate) malformed: u64,
    /// Packets to an address that no host of the lab has.
    pub(crate) unroutable: u64,
    /// Packets of stations that the medium refused although it had room. Drops in the wire's queue
    /// are in [`DriverReport::counters`].
    pub(crate) refused: u64,
    /// Packets that the receiving host refused.
    pub(crate) undelivered: u64,
    /// Packets of the server that found the queue of its network interface full. In a faithful run
    /// this queue never overflows.
    pub(crate) overflowed: u64,
}

impl fmt::Display for Misrouted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { malformed, unroutable, refused, undelivered, overflowed } = self;
        write!(
            f,
            "{malformed} malformed, {unroutable} for nobody, {refused} refused by the medium, \
             {undelivered} refused by their receiver, {overflowed} too many for the server's card"
        )
    }
}

pub(super) enum Command {
    /// Schedules changes of the medium, whose times count on the medium's clock.
    Schedule(Changes),
    /// Records the lateness from this time on (on the medium's clock); `None` ends the recording.
    Measure(Option<Instant>),
    Stop,
}

/// A running medium.
#[derive(Debug)]
pub(crate) struct Driver {
    commands: Sender<Command>,
    bell: Arc<EventFd>,
    epoch: Instant,
    thread: Option<JoinHandle<io::Result<DriverReport>>>,
}

impl Driver {
    /// Starts the medium between `ports`. With `digests` it makes a digest of all packets.
    pub(crate) fn start(
        config: MediumConfig,
        rng: Pcg64Mcg,
        ports: Vec<Port>,
        (realtime, digests): (bool, bool),
        steering: Option<Steering>,
    ) -> Result<Self, LabError> {
        tracing::debug!(stations = config.stations(), "the medium starts");
        // The medium is built here only to report errors of its configuration. The thread builds
        // its own, because packets cannot move between threads.
        Medium::<Frame>::new(&config, rng.clone()).map_err(RunError::from)?;
        Self::spawn(
            thread::Between::Hosts(Box::new(config), ports),
            rng,
            (realtime, digests),
            steering,
        )
    }

    /// Starts the medium between the radios of the kernel's driver `mac80211_hwsim`. The access point's has the number 0, and
    /// the stations' follow in their order.
    pub(crate) fn between_radios(
        experiment: &Experiment,
        rng: Pcg64Mcg,
        flags: (bool, bool),
        steering: Option<Steering>,
    ) -> Result<Self, LabError> {
        Self::spawn(thread::Between::Radios(Box::new(experiment.clone())), rng, flags, steering)
    }

    fn spawn(
        between: thread::Between,
        rng: Pcg64Mcg,
        (realtime, digests): (bool, bool),
        steering: Option<Steering>,
    ) -> Result<Self, LabError> {
        let system = |what: &'static str| LabError::system::<io::Error>(what);
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(LabError::system("make an eventfd"))?;
        let bell = Arc::new(bell);
        let (commands, inbox) = channel();
        let (ready, started) = channel();
        let epoch = clock::now();
        let setup = thread::Setup {
            between,
            rng,
            epoch,
            ready,
            bell: Arc::clone(&bell),
            inbox,
            realtime,
            digests,
            steering,
        };
        let thread = std::thread::Builder::new()
            .name("medium".to_owned())
            .spawn(move || thread::run(setup))
            .map_err(system("start the medium's thread"))?;
        let driver = Self { commands, bell, epoch, thread: Some(thread) };
        match started.recv() {
            Ok(()) => Ok(driver),
            // The thread has ended with an error.
            Err(_) => driver.stop().and(Err(LabError::System {
                action: "start the medium".to_owned(),
                source: io::Error::other("its thread has ended"),
            })),
        }
    }

    /// Schedules the changes of a run of `experiment` that begins at `origin`.
    pub(crate) fn schedule(&self, experiment: &Experiment, origin: Instant) {
        self.send(Command::Schedule(Changes::new(experiment, self.in_medium(origin))));
    }

    /// Records the lateness of delivered packets from `from` on; `None` ends the recording. The
    /// recording leaves out the time in which the testbed is built and removed, because the machine
    /// is busy then.
    pub(crate) fn measure(&self, from: Option<Instant>) {
        self.send(Command::Measure(from.map(|from| self.in_medium(from))));
    }

    /// Whether the thread still runs. It ends by itself only after an error.
    pub(crate) fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends the medium and its TUN devices.
    pub(crate) fn stop(mut self) -> Result<DriverReport, LabError> {
        self.send(Command::Stop);
        let thread = self.thread.take().expect("taken here and in drop only");
        match thread.join() {
            Ok(report) => report.map_err(LabError::system("drive the medium")),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Converts `at` to the medium's time, which counts from the driver's start.
    fn in_medium(&self, at: Instant) -> Instant {
        Instant::ZERO + at.saturating_since(self.epoch)
    }

    fn send(&self, command: Command) {
        // If the thread has ended with an error, sending fails; `stop` returns the thread's error.
        let _ = self.commands.send(command);
        let _ = self.bell.write(1);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
