//! Runs the medium until the user ends it.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rand_pcg::Pcg64Mcg;
use wakeai_medium::{Medium, StationId};
use wakeai_scenario::{Experiment, Scenario};
use wakeai_units::Instant;
use wakeai_world::{Changes, Progress, generator};

use super::Address;
use super::air;
use super::capture::Capture;
use super::counters::Report;
use super::error::MediumError;
use super::frame::AirFrame;
use super::radios::Radios;
use super::roles::Places;
use super::socket::HwsimSocket;
use crate::drive::{Clock, Drive, now};
use crate::realtime::{Realtime, enter};

/// How the medium is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The seed of backoffs and frame errors.
    pub seed: u64,
    /// The radios of some access points and stations, by name: the address of the radio or of its first interface.
    pub radios: Vec<(String, String)>,
    /// A file for a capture, which must not exist.
    pub pcap: Option<PathBuf>,
}

/// Makes this process the air of the radios of `mac80211_hwsim` that were made in its network namespace, with the access
/// points and stations of the scenario's first condition. `ready` is called once it is. It ends when the user
/// interrupts it ([`Progress::is_interrupted`]).
///
/// # Errors
///
/// [`MediumError`]; [`MediumError::exit_status`] is the exit status of the command.
pub fn run(
    options: &Options,
    scenario: &Scenario,
    progress: &dyn Progress,
    ready: &dyn Fn(),
) -> Result<Report, MediumError> {
    let condition = scenario.conditions().into_iter().next().expect("a scenario has a condition");
    let experiment = &*condition.experiment;
    air::refuse(scenario, experiment)?;
    let (medium, mut radios) = open(experiment, generator(options.seed), &options.radios)?;
    let capture = options.pcap.as_ref().map(|path| {
        let failed = |source| MediumError::Capture { path: path.clone(), source };
        Capture::create(path).map_err(failed)
    });
    radios.capture = capture.transpose()?;
    let realtime = Realtime::prepare();
    realtime.missing.iter().for_each(|missing| progress.note(missing));
    if realtime.guarded()
        && let Err(error) = enter()
    {
        progress.note(&format!("no real-time scheduling (SCHED_FIFO: {error})"));
    }
    let clock = Clock::since(now());
    let system = |what| move |source| MediumError::System { what, source };
    let bell: Option<&BorrowedFd<'_>> = None;
    let mut drive =
        Drive::new(medium, radios, clock, bell).map_err(system("poll the netlink socket"))?;
    drive.changes = drive.ends.changes(Changes::new(experiment, Instant::ZERO));
    ready();
    let is_over = |drive: &mut Drive<Radios>| {
        drive.ends.notes.drain(..).for_each(|note| progress.note(&note));
        progress.is_interrupted()
    };
    let ended = drive.run(is_over, || {});
    let (medium, radios) = (&mut drive.medium, &mut drive.ends);
    radios.end(medium, clock);
    drive.failed_changes.iter().for_each(|failed| progress.note(failed));
    ended.map_err(system("read from the driver"))?;
    let report = report(clock, medium, radios);
    if let (Some(capture), Some(path)) = (radios.capture.take(), &options.pcap) {
        let failed = |source| MediumError::Capture { path: path.clone(), source };
        capture.end().map_err(failed)?;
    }
    Ok(report)
}

/// Makes this process the air of the radios that were made in its network namespace: the medium of `experiment`, whose
/// packets are frames, and its ends. `radios` names the radios of some access points and stations, as [`Options::radios`].
///
/// # Errors
///
/// [`MediumError`].
pub fn open(
    experiment: &Experiment,
    rng: Pcg64Mcg,
    radios: &[(String, String)],
) -> Result<(Medium<AirFrame>, Radios), MediumError> {
    let reserved: Result<Vec<_>, MediumError> =
        radios.iter().map(|(name, text)| Ok((name.clone(), address(name, text)?))).collect();
    let places = Places::new(experiment, &reserved?)?;
    let mut medium = Medium::new(&air::config(experiment), rng)?;
    (0..places.0.len()).for_each(|place| medium.watch_departures(StationId(place as u32)));
    Ok((medium, Radios::new(HwsimSocket::register()?, places)))
}

fn report(clock: Clock, medium: &Medium<AirFrame>, radios: &Radios) -> Report {
    let (air, lost) = (medium.counters(), radios.not_carried);
    Report {
        seconds: (clock.now() - Instant::ZERO).as_secs_f64(),
        radios: radios.report(),
        not_carried: lost,
        accesses: air.accesses,
        collisions: air.access_point.collisions,
        mpdus: air.access_point.mpdus,
        ppdus: air.access_point.attempts,
        deliveries: radios.lateness.count(),
        lateness_p99_ms: radios.lateness.percentile(99.0).as_millis_f64(),
        lateness_max_ms: radios.lateness.max.as_millis_f64(),
        faithful: lost.socket_full + lost.freed_by_driver + lost.malformed == 0,
    }
}

fn address(name: &str, text: &str) -> Result<Address, MediumError> {
    let parsed: Result<Address, String> = text.parse();
    parsed.map(Address::of_first_interface).map_err(|remedy| MediumError::Unsupported {
        asked: format!("--radio {name}={text}"),
        remedy,
    })
}
