//! One run of one condition: build, drive, measure, tear down.

mod figures;
mod network;
mod traffic;

use std::path::Path;
use std::sync::Arc;

use wakeai_host::Lease;
use wakeai_kernel::Control;
use wakeai_scenario::figures::RttHistogram;
use wakeai_scenario::result::{ErrorCounts, MeasuredFlow};
use wakeai_scenario::{Expanded, ResolvedCondition};
use wakeai_units::Duration;
use wakeai_world::{Task, agent};

use crate::agents::Agents;
use crate::clock;
use crate::driver::{DriverReport, Lateness};
use crate::error::LabError;
use crate::host::Steering;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::proxies::Proxies;
use crate::records::monitor_sink;
use crate::traffic::{self as flows, SenderFacts};
use crate::watch::{Span, Watch};
use figures::Measures;
use network::Network;
use traffic::Traffic;

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
    /// What gives connections their target rates, where an algorithm of ours is asked for.
    pub(crate) targets: Option<Arc<Control>>,
    /// A directory for what is needed while a run lasts.
    pub(crate) scratch: &'a Path,
}

/// What one run gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) expanded: Expanded,
    pub(crate) end: Duration,
    pub(crate) flows: Vec<MeasuredFlow>,
    /// By group of stations.
    pub(crate) rtt: Vec<RttHistogram>,
    pub(crate) errors: ErrorCounts,
    pub(crate) driver: DriverReport,
    /// How late an ordinary thread came back from its sleep.
    pub(crate) waits: Lateness,
    /// Whether agents or proxies took part, which are ordinary processes, too.
    pub(crate) has_helpers: bool,
    /// Flows whose first data came much later than a handshake after their start: the flow, and
    /// how much later.
    pub(crate) stragglers: Vec<(usize, Duration)>,
    /// Records that the monitor lost.
    pub(crate) lost: u64,
}

/// Runs `task`; the agents' files go into `directory`. Whatever happens, nothing else of it is left
/// when this returns.
pub(crate) fn run(
    bench: &Bench<'_>,
    task: &Task<'_>,
    directory: &Path,
) -> Result<Outcome, LabError> {
    let experiment = &*task.condition.scenario;
    let expanded = experiment.expand(task.seed);
    let rng = wakeai_world::generator(task.seed);
    // Dropped in reverse order on an error: traffic, proxies, agents, monitor, then the network.
    let network = Network::build(bench, experiment, &expanded, rng)?;
    let plans = flows::plan(experiment, &expanded, &senders(task.condition, &network))?;
    let watch = Watch::start(&network.hosts, &plans, task.sink.clone().map(monitor_sink))?;
    let mut agents =
        Agents::start(bench, task.condition, &task.facts, network.stations(), directory)?;
    let mut proxies = Proxies::start(bench, &plans, &network.hosts, directory)?;
    let has_helpers = !agents.is_empty() || !proxies.is_empty();
    let mut traffic = Traffic::prepare(bench, experiment, &expanded, &plans, &network)?;

    let origin = clock::now() + traffic.lead().max(agents.acquaintance());
    let span = Span { origin, warmup: experiment.warmup, end: experiment.duration };
    watch.begin(span);
    network.measure(Some(origin));
    for change in wakeai_world::changes(experiment, origin) {
        network.schedule(change);
    }
    traffic.start(origin)?;
    let mut look = || agents.look().and_then(|()| proxies.check());
    let (ended, waits) = wait(bench, &network, &mut look, &mut traffic, span)?;
    network.measure(None);
    let received = traffic.stop(span.warmup, ended)?;
    // All flows sized and done: the run ended with the last byte, not when that was noticed.
    let last: Option<Vec<Duration>> = received.iter().map(|flow| flow.completed).collect();
    let ended = last.and_then(|all| all.into_iter().max()).unwrap_or(ended);
    let watched = watch.stop()?;
    proxies.stop(bench.lease)?;
    let reservations = agents.stop(bench.lease)?;
    let driver = network.remove(bench.lease)?;

    let measures = Measures {
        experiment,
        expanded: &expanded,
        plans: &plans,
        end: ended,
        reservations: &reservations,
    };
    Ok(Outcome {
        flows: figures::measured(&measures, &received, &watched.flows),
        stragglers: figures::stragglers(&measures, &received),
        expanded,
        end: ended,
        rtt: watched.rtt,
        errors: watched.errors,
        driver,
        waits,
        has_helpers,
        lost: watched.lost,
    })
}

/// Server first, then the stations.
fn senders(condition: &ResolvedCondition, network: &Network) -> Vec<SenderFacts> {
    let bounded = std::iter::once(false).chain(agent::bounded(condition));
    let hosts = network.hosts.iter().zip(bounded).enumerate();
    hosts
        .map(|(index, (host, bounded))| SenderFacts {
            cubic_by_default: host.cubic_by_default,
            bounded,
            behind: network.behind(index).map(|sender| sender.address),
        })
        .collect()
}

/// Waits for the end of the run: its duration, or until all flows have a size and are done. `look`
/// fails where agents or proxies have. Returns how far the run came, and how late this thread, an
/// ordinary one as they are, got a processor after each of its sleeps.
fn wait(
    bench: &Bench<'_>,
    network: &Network,
    look: &mut dyn FnMut() -> Result<(), LabError>,
    traffic: &mut Traffic<'_>,
    span: Span,
) -> Result<(Duration, Lateness), LabError> {
    let mut waits = Lateness::default();
    loop {
        bench.interrupt.check()?;
        let now = clock::now();
        bench.progress.run_reached(now.saturating_since(span.origin));
        if now >= span.origin + span.end {
            return Ok((span.end, waits));
        }
        if let Some(completed) = traffic.all_completed() {
            return Ok((completed, waits));
        }
        if !network.is_running() {
            return Ok((now.saturating_since(span.origin), waits)); // `remove` returns the error
        }
        look()?;
        traffic.check()?;
        let next = (clock::now() + LOOK).min(span.origin + span.end);
        clock::sleep_until(next);
        waits.record(clock::now().saturating_since(next));
    }
}

/// Between two looks at a run.
const LOOK: Duration = Duration::from_millis(50);
