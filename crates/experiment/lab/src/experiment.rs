//! The lab as a whole. It prepares what all runs of a command share, runs them, decides whether
//! each run was faithful (the machine was fast enough for its times), and undoes every change.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use wakeai_air::Realtime;
use wakeai_host::{Lease, Role};
use wakeai_net::Local;
use wakeai_results::result::{Lateness, Report};
use wakeai_scenario::{ResolvedCondition, Scenario};
use wakeai_units::Duration;
use wakeai_world::{Asked, Made, Options, Outcome, Progress, RunError, Task, World, session};

use crate::driver::Misrouted;
use crate::error::{LabError, Lapse};
use crate::host::Steering;
use crate::run::{self, Held, LabRun};
use crate::shared::SharedResources;
use crate::{keys, preflight};

/// How a scenario is run.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The runs to make, and the directory for the records (Parquet) and the agents' logs.
    pub run: Options,
    /// The bound on the 99th percentile of the lateness, which is the time from a packet's due
    /// delivery to its actual delivery. A run that exceeds the bound is not faithful.
    pub lateness_p99: Duration,
    /// The bound on the lateness of each packet. A run that exceeds it is not faithful.
    pub lateness_max: Duration,
    /// The bound on the 99th percentile of the time for which ordinary processes waited for a
    /// processor. A run with agents or proxies that exceeds it is not faithful.
    pub waits_p99: Duration,
    /// The `wakeai` program, for the agents and proxies.
    pub wakeai: PathBuf,
    /// The address, in each station's namespace, at which its agent serves its figures.
    pub metrics: Option<Local>,
    /// Whether this machine is a guest whose clock counts instructions. A run can then be repeated exactly and has a
    /// digest of its packets. Connections of the lab's own carry all TCP flows: each wake-up of a process of iperf3
    /// would change the address space, which is what costs an emulator most.
    pub in_guest: bool,
}

/// The bound on the 99th percentile of the lateness where the user gives none. With the 802.11 stack of Linux it is
/// higher: one thread hands all frames of an aggregate to that stack, which takes milliseconds.
pub fn usual_lateness_p99(scenario: &Scenario) -> Duration {
    let has_stack = |one: &ResolvedCondition| one.experiment.stack.is_linux();
    Duration::from_millis(if scenario.conditions().iter().any(has_stack) { 3 } else { 1 })
}

/// Runs `scenario` and returns its report. When this function returns, every change on the host is
/// undone, whatever the outcome. After `kill -9` the next `wakeai_host::sweep` undoes the changes.
///
/// # Errors
///
/// [`LabError`]; [`LabError::exit_status`] is the exit status of the command. A run that was not
/// faithful is an error that contains the report.
pub fn run(
    options: &LabOptions,
    scenario: &Scenario,
    progress: &dyn Progress,
) -> Result<Report, LabError> {
    let asked = Asked::new(scenario, &options.run)?;
    refuse(&asked)?;
    asked.conditions.iter().try_for_each(|one| keys::refuse_stack(&one.experiment))?;
    preflight::check(&asked.conditions)?;
    asked.note_keys_without_effect(keys::without_effect, progress);
    prepare(options, &asked.conditions, progress, |shared| report(options, &asked, shared))
}

/// Makes one run, and returns what it measured and the bound that it exceeded, if any. The agents' files are kept in
/// `agents`, if that is given. When this function returns, every change on the host is undone.
///
/// # Errors
///
/// [`LabError`], but not [`LabError::Unfaithful`].
pub fn run_one(
    options: &LabOptions,
    task: Task<'_>,
    agents: Option<PathBuf>,
    progress: &dyn Progress,
) -> Result<(Outcome, Option<Lapse>), LabError> {
    let conditions = std::slice::from_ref(task.condition);
    preflight::check(conditions)?;
    prepare(options, conditions, progress, |shared| {
        let lab = Lab { options, shared, agents, first: Mutex::default() };
        let outcome = lab.run(task)?;
        let first = lab.first.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((outcome, first.map(|(_, lapse)| lapse)))
    })
}

/// Refuses conditions that the lab cannot run, on whatever kernel, and tells the user which of their keys have no
/// effect.
///
/// # Errors
///
/// [`RunError::Unsupported`].
pub fn check(asked: &Asked<'_>, progress: &dyn Progress) -> Result<(), RunError> {
    refuse(asked)?;
    asked.note_keys_without_effect(keys::without_effect, progress);
    Ok(())
}

fn refuse(asked: &Asked<'_>) -> Result<(), RunError> {
    let mut conditions = asked.conditions.iter();
    conditions.try_for_each(|one| {
        keys::refuse_false_announcements(&one.experiment)?;
        keys::refuse_other_kernels(&one.experiment)?;
        keys::refuse_beside_stack(&one.experiment)
    })
}

/// Prepares what all runs of `conditions` share, calls `make`, and undoes every change.
fn prepare<T>(
    options: &LabOptions,
    conditions: &[ResolvedCondition],
    progress: &dyn Progress,
    make: impl FnOnce(SharedResources<'_>) -> Result<T, LabError>,
) -> Result<T, LabError> {
    let lease = Lease::take(Role::Lab)?;
    note_other_labs(progress);
    // The lab unloads the algorithms that the stations' agents and proxies register. These daemons
    // cannot do so at their end, because they have dropped the privilege to unmount the bpffs.
    lease.record(wakeai_kernel::parts())?;
    let realtime = Realtime::prepare();
    realtime.missing.iter().for_each(|missing| progress.note(missing));
    let steering = Steering::plan();
    let _away = steering.and_then(|steering| steering.leave_driver_alone().ok());
    let prepared =
        preflight::load_algorithms(conditions).and_then(|targets| Ok((targets, scratch(&lease)?)));
    let result = prepared.and_then(|(targets, scratch)| {
        let shared = SharedResources {
            lease: &lease,
            progress,
            wakeai: &options.wakeai,
            realtime: realtime.guarded(),
            in_guest: options.in_guest,
            steering,
            targets,
            metrics: options.metrics,
            scratch: &scratch,
        };
        make(shared)
    });
    note_undone(lease, progress);
    result
}

/// Makes the network of the first condition that `options` ask for, and its air, and keeps both until the user interrupts
/// the command, for any program that enters the namespaces. No agent, proxy or flow runs in it. `ready` is called once
/// everything is there. When this function returns, every change on the host is undone, as by [`run`].
///
/// # Errors
///
/// [`LabError`]. The interruption is the intended end, and no error.
pub fn hold(
    options: &LabOptions,
    scenario: &Scenario,
    progress: &dyn Progress,
    ready: &dyn Fn(&Held) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let asked = Asked::new(scenario, &options.run)?;
    preflight::check_network()?;
    let condition = asked.conditions.first().expect("a scenario has a condition");
    keys::refuse_stack(&condition.experiment)?;
    asked.note_keys_without_effect(keys::without_effect, progress);
    let lease = Lease::take(Role::Lab)?;
    note_other_labs(progress);
    let realtime = Realtime::prepare();
    realtime.missing.iter().for_each(|missing| progress.note(missing));
    let steering = Steering::plan();
    let _away = steering.and_then(|steering| steering.leave_driver_alone().ok());
    let result = scratch(&lease).and_then(|scratch| {
        let shared = SharedResources {
            lease: &lease,
            progress,
            wakeai: &options.wakeai,
            realtime: realtime.guarded(),
            steering,
            targets: None,
            metrics: None,
            in_guest: false,
            scratch: &scratch,
        };
        run::hold(&shared, condition, options.run.seed, ready)
    });
    note_undone(lease, progress);
    let driver = result?;
    let lateness = &driver.lateness;
    let (p99, max) = (lateness.percentile(99.0), lateness.max);
    progress.note(&format!("packets were released at most {max} late, 99 % within {p99}"));
    if p99 > options.lateness_p99 || max > options.lateness_max {
        progress.note("that is more than a faithful run has: repeat it on a quieter machine");
    }
    Ok(())
}

/// Undoes the changes, and names those for which that was not possible.
fn note_undone(lease: Lease, progress: &dyn Progress) {
    for (change, reason) in wakeai_kernel::release(lease) {
        progress
            .note(&format!("could not be undone: {change} ({reason}); `wakeai sweep` undoes it"));
    }
}

/// Warns of other labs, because the drivers of all labs run on the same processor.
fn note_other_labs(progress: &dyn Progress) {
    let own = std::process::id().cast_signed();
    for other in wakeai_host::holders().unwrap_or_default() {
        let pid = other.process.pid;
        if other.role == Role::Lab && pid != own {
            progress.note(&format!(
                "another lab runs (pid {pid}): each delays the packets of the other, which the bounds on \
                 lateness show; for reliable figures, run one after the other"
            ));
        }
    }
}

fn report(
    options: &LabOptions,
    asked: &Asked<'_>,
    shared: SharedResources<'_>,
) -> Result<Report, LabError> {
    let recorder = asked.recorder(&options.run, Lab::NAME).map_err(RunError::from)?;
    let agents = recorder.as_ref().map(wakeai_world::Recorder::agents).transpose();
    let agents = agents.map_err(RunError::from)?;
    let lab = Lab { options, shared, agents, first: Mutex::default() };
    let report = session::report(1, &lab, asked, recorder)?;
    lab.judged(report)
}

/// A directory for the agents' files, readable by root alone.
fn scratch(lease: &Lease) -> Result<PathBuf, LabError> {
    let path = wakeai_host::state().join(format!("lab-{}", std::process::id()));
    lease.create_directory(&path)?;
    Ok(path)
}

/// The runs of one command.
struct Lab<'a> {
    options: &'a LabOptions,
    shared: SharedResources<'a>,
    /// The directory of the agents' files, if the command keeps records.
    agents: Option<PathBuf>,
    /// The first run that was not faithful, and the bound that it exceeded.
    first: Mutex<Option<(String, Lapse)>>,
}

impl World for Lab<'_> {
    const NAME: &'static str = "lab";
    type Error = LabError;

    fn after(error: LabError, made: Made) -> LabError {
        LabError::After { error: Box::new(error), made: Box::new(made) }
    }

    fn progress(&self) -> &dyn Progress {
        self.shared.progress
    }

    fn run(&self, task: Task<'_>) -> Result<Outcome, LabError> {
        let run = run::run(&self.shared, &task, &self.directory(&task))?;
        self.judge(&task.name, &run);
        let lateness = Some(self.lateness(&run));
        Ok(Outcome { lateness, ..run.outcome })
    }
}

impl Lab<'_> {
    /// Returns the report, or an error with the report if a run was not faithful.
    fn judged(self, report: Report) -> Result<Report, LabError> {
        match self.first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(report),
            Some((run, lapse)) => {
                Err(LabError::Unfaithful { run, lapse, report: Box::new(report) })
            }
        }
    }

    /// The directory of the agents' files of a run.
    fn directory(&self, task: &Task<'_>) -> PathBuf {
        let scratch = self.shared.scratch;
        match (task.place, &self.agents) {
            (None, _) => scratch.join("solo"),
            (Some((_, repeat)), Some(kept)) => {
                kept.join(format!("{}-{repeat}", task.condition.name()))
            }
            (Some((index, _)), None) => scratch.join(index.to_string()),
        }
    }

    /// Records the first unfaithful run, and shows the user the notes about a run.
    fn judge(&self, name: &str, run: &LabRun) {
        let driver = &run.driver;
        let misrouted = driver.misrouted;
        tracing::info!(
            name,
            p50 = %driver.lateness.percentile(50.0),
            p99 = %driver.lateness.percentile(99.0),
            max = %driver.lateness.max,
            ?misrouted,
            counters = ?driver.counters,
            "a run has ended"
        );
        for missing in &driver.missing {
            self.shared.progress.note(missing);
        }
        let note = |text: &str| self.shared.progress.note(&format!("{name}: {text}"));
        if misrouted != Misrouted::default() {
            note(&format!("packets were lost outside of the medium: {misrouted}"));
        }
        if run.lost > 0 {
            note(&format!("the monitor lost {} records", run.lost));
        }
        if let Some((flow, late)) = run.late_starts.first() {
            let (count, number) = (run.late_starts.len(), flow + 1);
            note(&format!(
                "{count} flows started late: the lab opened the connection of flow {number} only {late} after its \
                 start"
            ));
        }
        let waits = run.waits.percentile(99.0);
        if waits > self.options.waits_p99 && !run.has_helpers {
            note(&format!(
                "ordinary processes waited for a processor, p99 {waits}; this run has no agents or proxies, which \
                 would have been late"
            ));
        }
        if let Some(lapse) = self.lapse(run) {
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| (name.to_owned(), lapse));
        }
    }

    /// The bound that a run exceeded, if any. The time for which processes waited counts only in
    /// runs with agents or proxies: in other runs the kernel does all work that has to be in time.
    fn lapse(&self, run: &LabRun) -> Option<Lapse> {
        let (lateness, options) = (&run.driver.lateness, self.options);
        let (p99, max) = (lateness.percentile(99.0), lateness.max);
        let (allowed_p99, allowed_max) = (options.lateness_p99, options.lateness_max);
        if p99 > allowed_p99 || max > allowed_max {
            let releases = lateness.count();
            return Some(Lapse::Late { releases, p99, max, allowed_p99, allowed_max });
        }
        let (p99, allowed) = (run.waits.percentile(99.0), options.waits_p99);
        (run.has_helpers && p99 > allowed).then_some(Lapse::Starved { p99, allowed })
    }

    fn lateness(&self, run: &LabRun) -> Lateness {
        let lateness = &run.driver.lateness;
        Lateness {
            releases: lateness.count(),
            p50_ms: lateness.percentile(50.0).as_millis_f64(),
            p99_ms: lateness.percentile(99.0).as_millis_f64(),
            max_ms: lateness.max.as_millis_f64(),
            faithful: self.lapse(run).is_none(),
            waits_p99_ms: run.waits.percentile(99.0).as_millis_f64(),
        }
    }
}
