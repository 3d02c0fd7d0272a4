//! One run of one condition: build, drive, measure, tear down.

mod figures;
mod network;
mod traffic;

use std::path::{Path, PathBuf};

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use wakeai_host::Lease;
use wakeai_scenario::figures::RttHistogram;
use wakeai_scenario::result::{ErrorCounts, MeasuredFlow};
use wakeai_scenario::{Expanded, ResolvedCondition};
use wakeai_units::{Duration, Instant};

use crate::agents::{self, Agents, StationFacts};
use crate::clock;
use crate::driver::{Change, DriverReport, TimedChange};
use crate::error::LabError;
use crate::host::Steering;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::traffic::{self as flows, SenderFacts};
use crate::watch::{Sink, Span, Watch};
use figures::Measures;
use network::Network;
use traffic::Traffic;

/// The medium's random numbers are another stream than the flows' starts, which
/// [`wakeai_scenario::Experiment::expand`] draws from the seed itself.
const MEDIUM_STREAM: u64 = 0x6d65_6469_756d;

/// What all runs of one command share.
pub(crate) struct Bench<'a> {
    pub(crate) lease: &'a Lease,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) wakeai: &'a Path,
    /// Whether the driver may become a real-time thread.
    pub(crate) realtime: bool,
    /// Who works where, if the machine has processors enough.
    pub(crate) steering: Option<Steering>,
}

/// One run.
pub(crate) struct Task<'a> {
    pub(crate) condition: &'a ResolvedCondition,
    pub(crate) seed: u64,
    /// What the stations reach alone, where that is known.
    pub(crate) facts: Vec<StationFacts>,
    /// Where the agents' files go.
    pub(crate) directory: PathBuf,
    /// Where samples and events go.
    pub(crate) sink: Option<Sink>,
}

/// What one run gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) expanded: Expanded,
    pub(crate) end: Duration,
    pub(crate) wall_s: f64,
    pub(crate) flows: Vec<MeasuredFlow>,
    /// By group of stations.
    pub(crate) rtt: Vec<RttHistogram>,
    pub(crate) errors: ErrorCounts,
    pub(crate) driver: DriverReport,
    /// Flows whose first data came much later than a handshake after their start: the flow, and
    /// how much later.
    pub(crate) stragglers: Vec<(usize, Duration)>,
    /// Records that the monitor lost.
    pub(crate) lost: u64,
}

/// Runs `task`. Whatever happens, nothing of it is left when this returns.
pub(crate) fn run(bench: &Bench<'_>, task: Task<'_>) -> Result<Outcome, LabError> {
    let began = clock::now();
    let experiment = &*task.condition.scenario;
    let expanded = experiment.expand(task.seed);
    let rng = Pcg64Mcg::seed_from_u64(task.seed ^ MEDIUM_STREAM);
    // Dropped in reverse order on an error: traffic, agents, monitor, then the network.
    let network = Network::build(bench, experiment, &expanded, rng)?;
    let plans = flows::plan(experiment, &expanded, &senders(task.condition, &network))?;
    let watch = Watch::start(&network.hosts, &plans, task.sink)?;
    let mut agents = Agents::start(
        task.condition,
        &task.facts,
        network.stations(),
        bench.wakeai,
        &task.directory,
        bench.lease,
        bench.interrupt,
    )?;
    let mut traffic = Traffic::prepare(bench, experiment, &expanded, &plans, &network.hosts)?;

    let origin = clock::now() + traffic.lead();
    let span = Span { origin, warmup: experiment.warmup, end: experiment.duration };
    watch.begin(span);
    network.measure(Some(origin));
    schedule_events(&network, experiment, origin);
    traffic.start(origin)?;
    let ended = wait(bench, &network, &mut agents, &mut traffic, span)?;
    network.measure(None);
    let received = traffic.stop(span.warmup, ended)?;
    // All flows sized and done: the run ended with the last byte, not when that was noticed.
    let last: Option<Vec<Duration>> = received.iter().map(|flow| flow.completed).collect();
    let ended = last.and_then(|all| all.into_iter().max()).unwrap_or(ended);
    let watched = watch.stop()?;
    agents.stop(bench.lease)?;
    let driver = network.remove(bench.lease)?;

    let measures = Measures { experiment, expanded: &expanded, plans: &plans, end: ended };
    Ok(Outcome {
        flows: figures::measured(&measures, &received, &watched.flows),
        stragglers: figures::stragglers(&measures, &received),
        expanded,
        end: ended,
        wall_s: clock::now().saturating_since(began).as_secs_f64(),
        rtt: watched.rtt,
        errors: watched.errors,
        driver,
        lost: watched.lost,
    })
}

/// Server first, then the stations.
fn senders(condition: &ResolvedCondition, network: &Network) -> Vec<SenderFacts> {
    let bounded = std::iter::once(false).chain(agents::bounded(condition));
    let hosts = network.hosts.iter().zip(bounded);
    hosts
        .map(|(host, bounded)| SenderFacts { cubic_by_default: host.cubic_by_default, bounded })
        .collect()
}

/// Waits for the end of the run: its duration, or until all flows have a size and are done.
/// Returns how far the run came.
fn wait(
    bench: &Bench<'_>,
    network: &Network,
    agents: &mut Agents,
    traffic: &mut Traffic<'_>,
    span: Span,
) -> Result<Duration, LabError> {
    loop {
        bench.interrupt.check()?;
        let now = clock::now();
        bench.progress.run_reached(now.saturating_since(span.origin));
        if now >= span.origin + span.end {
            return Ok(span.end);
        }
        if let Some(completed) = traffic.all_completed() {
            return Ok(completed);
        }
        if !network.is_running() {
            return Ok(now.saturating_since(span.origin)); // `remove` returns the error
        }
        agents.check()?;
        traffic.check()?;
        let left = (span.origin + span.end).saturating_since(now);
        clock::sleep(left.min(LOOK));
    }
}

/// Between two looks at a run.
const LOOK: Duration = Duration::from_millis(50);

fn schedule_events(network: &Network, experiment: &wakeai_scenario::Experiment, origin: Instant) {
    for event in &experiment.events {
        let at = origin + event.at;
        for station in experiment.select(event.stations) {
            let station = wakeai_medium::StationId(station as u32);
            let changes = [
                event.wired_delay.map(Change::WiredDelay),
                event.rate.map(Change::Rate),
                event.frame_error_ppm.map(Change::FrameErrorPpm),
            ];
            for change in changes.into_iter().flatten() {
                network.schedule(TimedChange { at, station, change });
            }
        }
    }
}
