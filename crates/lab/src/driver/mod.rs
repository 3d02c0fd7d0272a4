//! The medium on the wall clock: one thread between the hosts' TUN devices.
//!
//! Order of calls: [`Driver::start`], [`Driver::schedule`] and [`Driver::measure`] as often as
//! needed, [`Driver::stop`].

mod lateness;
mod poller;
pub(crate) mod realtime;
#[cfg(test)]
mod tests;
mod thread;

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use nix::sys::eventfd::{EfdFlags, EventFd};
use rand_pcg::Pcg64Mcg;
use wakeai_medium::{Counters, Node, WifiConfig};
use wakeai_units::Instant;
use wakeai_world::TimedChange;

pub use lateness::Lateness;

use crate::error::LabError;
use crate::host::Steering;
use crate::host::tun::Tun;

/// A host's place on the medium.
#[derive(Debug)]
pub(crate) struct Port {
    /// Who it is there.
    pub(crate) node: Node,
    /// Its address.
    pub(crate) address: Ipv4Addr,
    /// That of the sender behind it, whose packets it carries too.
    pub(crate) behind: Option<Ipv4Addr>,
    /// Its device.
    pub(crate) tun: Tun,
}

impl Port {
    /// The addresses that are reached there.
    fn addresses(&self) -> impl Iterator<Item = (Ipv4Addr, Node)> + use<> {
        let node = self.node;
        std::iter::once(self.address).chain(self.behind).map(move |address| (address, node))
    }
}

/// What the driver saw.
#[derive(Debug)]
pub struct DriverReport {
    /// Wall time of each release after its virtual time, while the run was measured.
    pub lateness: Lateness,
    /// The medium's own counters.
    pub counters: Counters,
    /// What the hosts sent or were given that went nowhere.
    pub strays: Strays,
    /// What could not be had (real-time scheduling): why lateness may be high.
    pub lacks: Vec<String>,
}

/// Packets that never reached the medium, or never left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// Short, not IPv4, or with contradicting lengths.
    pub malformed: u64,
    /// For an address that no host of the lab has.
    pub unroutable: u64,
    /// A station's, refused by the medium although it had room. (What the wire drops of the
    /// server's is among [`DriverReport::counters`].)
    pub refused: u64,
    /// Refused by the receiving host.
    pub undelivered: u64,
    /// The server's, which its card had no room for: it must never be what drops.
    pub overflowed: u64,
}

impl fmt::Display for Strays {
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
    Schedule(TimedChange),
    Measure(Option<Instant>),
    Stop,
}

/// A running medium.
#[derive(Debug)]
pub(crate) struct Driver {
    commands: Sender<Command>,
    bell: Arc<EventFd>,
    thread: Option<JoinHandle<io::Result<DriverReport>>>,
}

impl Driver {
    /// Starts the medium between `ports`; packets to `broadcast` go to all stations.
    pub(crate) fn start(
        config: &WifiConfig,
        rng: Pcg64Mcg,
        ports: Vec<Port>,
        broadcast: Ipv4Addr,
        realtime: bool,
        steering: Option<Steering>,
    ) -> Result<Self, LabError> {
        let system = |what: &'static str| LabError::system::<io::Error>(what);
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(LabError::system("make an eventfd"))?;
        let bell = Arc::new(bell);
        let (commands, inbox) = channel();
        let station_count = config.stations.len();
        // Built here and built anew in the thread: its packets cannot move between threads.
        wakeai_medium::Medium::<crate::packet::Frame>::new(&config.clone().into(), rng.clone())?;
        let setup = thread::Setup {
            config: config.clone(),
            rng,
            ports,
            broadcast,
            bell: Arc::clone(&bell),
            inbox,
            realtime,
            steering,
        };
        tracing::debug!(station_count, "the medium starts");
        let thread = std::thread::Builder::new()
            .name("medium".to_owned())
            .spawn(move || thread::run(setup))
            .map_err(system("start the medium's thread"))?;
        Ok(Self { commands, bell, thread: Some(thread) })
    }

    /// Makes `change` happen at its time, or at once where that has passed.
    pub(crate) fn schedule(&self, change: TimedChange) {
        self.send(Command::Schedule(change));
    }

    /// Records the lateness of releases from then on, or no more: building a network and taking
    /// it down keep the machine busy, and say nothing about the run between them.
    pub(crate) fn measure(&self, from: Option<Instant>) {
        self.send(Command::Measure(from));
    }

    /// Whether the thread still runs: it ends by itself only on an error.
    pub(crate) fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends the medium; the TUN devices go with it.
    pub(crate) fn stop(mut self) -> Result<DriverReport, LabError> {
        self.send(Command::Stop);
        let thread = self.thread.take().expect("taken here and in drop only");
        match thread.join() {
            Ok(report) => report.map_err(LabError::system("drive the medium")),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn send(&self, command: Command) {
        // A thread that ended on an error has no inbox; `stop` reports the error.
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
