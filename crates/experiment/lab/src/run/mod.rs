//! One run of one condition: its testbed, agents, proxies and traffic, and its measurements.

mod hold;
mod testbed;
mod traffic;

use std::collections::BTreeMap;
use std::path::Path;

use wakeai_results::result::MeasuredFlow;
use wakeai_scenario::{Expanded, ResolvedCondition};
use wakeai_units::{Duration, Instant};
use wakeai_world::reservations::{ReservationLog, of_flow};
use wakeai_world::{
    Outcome, ReceiverMeter, RunError, SenderMeter, Span, Task, agent, frame_counts, generator,
};

use crate::agents::Agents;
use crate::clock;
use crate::daemons::start_proxies;
use crate::driver::{DriverReport, PacketsDigest};
use crate::error::LabError;
use crate::shared::SharedResources;
use crate::traffic::{self as flows, FlowPlan, SenderFacts};
use crate::watch::Watch;
pub(crate) use hold::hold;
pub use hold::{Held, HeldHost};
use testbed::Testbed;
use traffic::{Stopped, Traffic};
use wakeai_air::Lateness;

/// The result of a run, and the measurements that decide whether it was faithful, which means that
/// the machine was fast enough.
#[derive(Debug)]
pub(crate) struct LabRun {
    pub(crate) outcome: Outcome,
    pub(crate) driver: DriverReport,
    /// The times by which an ordinary thread woke up later than it had asked for.
    pub(crate) waits: Lateness,
    /// Whether agents or proxies, which are ordinary processes, took part.
    pub(crate) has_helpers: bool,
    /// The flows that started late, each with the time from its start until the lab opened its connection.
    pub(crate) late_starts: Vec<(usize, Duration)>,
    /// The number of records that the monitor lost.
    pub(crate) lost: u64,
}

/// Runs `task`. The agents' files go into `directory`; everything else of the run is removed when
/// this returns, also on an error.
pub(crate) fn run(
    shared: &SharedResources<'_>,
    task: &Task<'_>,
    directory: &Path,
) -> Result<LabRun, LabError> {
    let experiment = &*task.condition.experiment;
    let expanded = experiment.expand(task.seed);
    // After an error the following values are dropped in reverse order: traffic, proxies, agents,
    // monitor, testbed.
    let testbed = Testbed::build(shared, experiment, &expanded, generator(task.seed))?;
    let senders = senders(task.condition, &testbed);
    let plans = flows::plan(experiment, &expanded, &senders, !shared.in_guest)?;
    let watch = Watch::start(&testbed.hosts, &plans)?;
    let mut agents =
        Agents::start(shared, task.condition, &task.facts, testbed.stations(), directory)?;
    let mut proxies = start_proxies(shared, &plans, &testbed.hosts, directory)?;
    let has_helpers = !agents.is_empty() || !proxies.0.is_empty();
    let mut traffic = Traffic::prepare(shared, &expanded, &plans, &testbed, task.sink.clone())?;

    let origin = clock::now() + traffic.lead().max(agents.acquaintance());
    let span = Span::new(origin, experiment);
    watch.begin(SenderMeter::new(span, &expanded, task.sink.clone()));
    testbed.driver().measure(Some(origin));
    testbed.driver().schedule(experiment, origin);
    traffic.start(span, &mut agents)?;
    let mut check = || agents.check().and_then(|()| proxies.check());
    let mut host = wakeai_host::Watch::new(shared.lease);
    let (end, waits) = wait(shared, task, &testbed, &mut check, &mut traffic, span, &mut host)?;
    undisturbed(shared, &mut host)?;
    testbed.driver().measure(None);
    let Stopped { mut meters, opened, sampled } = traffic.stop(end)?;
    // If all flows have completed, the run ended when the last byte arrived.
    let last: Option<Vec<Instant>> = meters.iter().map(ReceiverMeter::completed).collect();
    let end = last.and_then(|all| all.into_iter().max()).unwrap_or(end);
    for meter in &mut meters {
        meter.end(end);
    }
    let (meter, lost) = watch.stop()?;
    let mut senders = meter.expect("the monitor was given one at the run's begin");
    for samples in &sampled {
        samples.count(&mut senders);
    }
    proxies.stop(shared.lease)?;
    let reservations = agents.stop(shared.lease, end)?;
    let driver = testbed.remove(shared.lease)?;

    let flows = measured(&expanded, &plans, &meters, &senders, &reservations, end);
    let (rtt, errors) = senders.finish();
    let outcome = Outcome {
        stations: expanded.stations,
        end: span.since(end),
        flows,
        rtt,
        errors: Some(errors),
        lateness: None,
        packets_digest: driver.digest.map(PacketsDigest::value),
        frames: Some(frame_counts(&driver.counters)),
        drops: None,
        wall_s: None,
        field: None,
    };
    let late_starts = late_starts(span, &plans, &opened, end);
    Ok(LabRun { outcome, driver, waits, has_helpers, late_starts, lost })
}

/// The settings of the hosts: first of the server, then of the stations.
fn senders(condition: &ResolvedCondition, testbed: &Testbed) -> Vec<SenderFacts> {
    let bounded = std::iter::once(false).chain(agent::bounded(condition));
    let facts = testbed.hosts.iter().zip(bounded).map(|(host, bounded)| SenderFacts {
        cubic_by_default: host.cubic_by_default,
        bounded,
        behind: host.behind.as_ref().map(|sender| sender.address),
    });
    facts.collect()
}

/// Waits for the end of the run, which comes after its duration or once all flows have completed.
/// `check` fails if an agent or a proxy has failed. Returns the end, and the times by which this
/// thread woke up too late. Agents and proxies wait for a processor as long as this thread does,
/// because all of them are scheduled as ordinary threads.
fn wait(
    shared: &SharedResources<'_>,
    task: &Task<'_>,
    testbed: &Testbed,
    check: &mut dyn FnMut() -> Result<(), LabError>,
    traffic: &mut Traffic<'_>,
    span: Span,
    host: &mut wakeai_host::Watch,
) -> Result<(Instant, Lateness), LabError> {
    let mut waits = Lateness::default();
    let mut looked = clock::now();
    loop {
        let now = clock::now();
        if task.reached(shared.progress, span.since(now)).is_break() {
            return Err(RunError::Interrupted.into());
        }
        if now >= span.end {
            return Ok((span.end, waits));
        }
        // If the driver has failed, `remove` returns its error.
        if traffic.all_completed() || !testbed.driver().is_running() {
            return Ok((now, waits));
        }
        check()?;
        traffic.check()?;
        if now.saturating_since(looked) >= LOOK_INTERVAL {
            looked = now;
            undisturbed(shared, host)?;
        }
        let next = (clock::now() + CHECK_INTERVAL).min(span.end);
        clock::sleep_until(next);
        waits.record(clock::now().saturating_since(next));
    }
}

/// Returns an error if another program has changed the namespaces or the files of the run.
fn undisturbed(
    shared: &SharedResources<'_>,
    host: &mut wakeai_host::Watch,
) -> Result<(), LabError> {
    for drift in host.look(shared.lease, &|| Ok(())) {
        if matches!(drift.outcome, wakeai_host::Outcome::Lost(_)) {
            return Err(LabError::Disturbed(Box::new(drift)));
        }
        shared.progress.note(&drift.to_string());
    }
    Ok(())
}

/// The time between two looks at the namespaces.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The time between two checks of a run.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The figures of the flows of a run that ended at `end`, in the order of the scenario.
/// `reservations` has the reservations by the station whose agent made them.
fn measured(
    expanded: &Expanded,
    plans: &[FlowPlan],
    meters: &[ReceiverMeter],
    senders: &SenderMeter,
    reservations: &BTreeMap<usize, ReservationLog>,
    end: Instant,
) -> Vec<MeasuredFlow> {
    let all = expanded.flows.iter().zip(plans).zip(meters).enumerate();
    all.map(|(index, ((flow, plan), meter))| MeasuredFlow {
        algorithm: plan.algorithm.clone(),
        reservation: of_flow(flow, |station| reservations.get(&station)),
        ..senders.measured(index, meter.measured(flow, end))
    })
    .collect()
}

/// A flow starts late if the lab opens its connection later than this after its start.
const LATE_START: Duration = Duration::from_secs(1);

/// The flows that started late in a run that ended at `end`, each with the time from its start until the lab
/// opened its connection (for TCP: sent the first SYN), or until the end of the run. `opened` has this time
/// for each flow whose connection was opened. How long the SYN waits then, and whether it is lost, is decided by the queues of
/// the scenario.
fn late_starts(
    span: Span,
    plans: &[FlowPlan],
    opened: &[Option<Instant>],
    end: Instant,
) -> Vec<(usize, Duration)> {
    let late = plans.iter().zip(opened).filter_map(|(plan, opened)| {
        let late = opened.unwrap_or(end).saturating_since(span.origin + plan.start);
        tracing::debug!(flow = plan.index, start = %plan.start, %late, "opened");
        (late > LATE_START).then_some((plan.index, late))
    });
    late.collect()
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;
    use crate::traffic::{SenderFacts, plan};

    #[test]
    fn a_flow_starts_late_where_the_lab_opens_its_connection_late_whatever_arrives() {
        let text = "name = \"x\"\nduration = \"20s\"\naccess_point = { standard = \"802.11g\" }\n\
                    stations = [{ name = \"a\", count = 4 }]\n\
                    flows = [{ from = \"a\", to = \"server\", start = \"5s\" }]\n";
        let scenario = Scenario::parse(text).unwrap();
        let facts = SenderFacts { cubic_by_default: true, bounded: false, behind: None };
        let plans = plan(&scenario, &scenario.expand(1), &[facts; 5], true).unwrap();
        let origin = Instant::ZERO + Duration::from_secs(100);
        let span = Span::new(origin, &scenario);
        let at = |millis| Some(origin + Duration::from_millis(millis));
        let opened = [at(5_000), at(6_000), at(6_001), None];
        let late = late_starts(span, &plans, &opened, span.end);
        assert_eq!(late, [(2, Duration::from_millis(1_001)), (3, Duration::from_secs(15))]);
        let ends_before_the_start = origin + Duration::from_secs(4);
        assert!(late_starts(span, &plans, &[None; 4], ends_before_the_start).is_empty());
    }
}
