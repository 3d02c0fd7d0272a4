//! The session with all machines: connects them, and makes one run after another.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Condvar, Mutex, PoisonError};

use wakeai_host::since_boot;
use wakeai_scenario::{Experiment, Flow, ResolvedCondition};
use wakeai_units::{Bytes, Duration, Instant, Rate};
use wakeai_world::agent::acquaintance;
use wakeai_world::{Progress, RunError, StationFacts};

use super::FieldOptions;
use super::helper::{CONNECT_PATIENCE, ClockOffset, Helper, HelperError, pause};
use super::plan::{Asked, PlannedFlow, alone, key, of_condition, random};
use super::programs::{bring, bring_again, remove_program};
use super::raw::{RawMachine, RawRun};
use crate::error::FieldError;
use crate::machines::{Machine, Place};
use crate::protocol::{Answer, Ask, InspectAsk, RunPlan, StationData, Token, Way};

/// The exchanges by which the difference of two clocks is measured.
const EXCHANGES: u32 = 10;
/// The time from the agreement on a run's time zero to that time.
const LEAD: Duration = Duration::from_millis(1_500);
/// The longest wait for a machine that prepares a run: its agent loads BPF programs.
const PREPARE_PATIENCE: Duration = Duration::from_secs(60);
/// The time between two looks whether flows with a size have completed.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// The longest time between two messages that keep a helper from its deadline while it waits for the other machines.
const BETWEEN_PINGS: Duration = Duration::from_secs(5);
/// The part of a solo run that does not count: the flow gains speed.
const SOLO_WARMUP: u64 = 5;

/// All machines of an experiment: the server, and then the stations.
pub(super) struct Session<'a> {
    options: &'a FieldOptions,
    pub(super) progress: &'a dyn Progress,
    helpers: Vec<Helper<'a>>,
    /// The flows of each run, by condition and block.
    flows: BTreeMap<(usize, u32), Vec<PlannedFlow>>,
    /// The runs that were made, for their names.
    number: usize,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        options: &'a FieldOptions,
        session: &'a str,
        machines: &[&'a Machine],
        progress: &'a dyn Progress,
    ) -> Self {
        let helpers = machines
            .iter()
            .map(|machine| Helper::new(machine, session, &options.program, options.grace));
        let helpers = helpers.collect();
        Self { options, progress, helpers, flows: BTreeMap::new(), number: 0 }
    }

    /// Connects all machines, and asks what they are. An error names each that is not ready.
    pub(super) fn connect(&mut self) -> Result<(), FieldError> {
        let interrupted = || self.progress.is_interrupted();
        if let Some(programs) = &self.options.programs {
            bring(&mut self.helpers, programs, &interrupted)?;
        }
        let problems = connect_all(&mut self.helpers, &interrupted);
        if interrupted() {
            return Err(RunError::Interrupted.into());
        }
        let mut said: Vec<String> = Vec::new();
        for (helper, problem) in self.helpers.iter().zip(problems) {
            if let Some(problem) = problem {
                said.push(format!("{}: {problem}", helper.name()));
            } else if !helper.facts.as_ref().is_some_and(|facts| facts.up) {
                said.push(format!("{}: its interface is down or unknown", helper.name()));
            }
        }
        if said.is_empty() {
            // A command that was killed has left a run behind. It ends on all machines before anything is measured.
            each(&mut self.helpers, |helper| {
                let _ = helper.ask(Ask::Forget, PREPARE_PATIENCE, &interrupted);
            });
            let shares = crate::check::others_now(&mut self.helpers, &interrupted)?;
            for (helper, share) in self.helpers.iter().zip(shares) {
                let found = crate::check::too_much(share, self.options.max_load_percent);
                said.extend(found.map(|found| format!("{}: {found}", helper.name())));
            }
        }
        if said.is_empty() { Ok(()) } else { Err(FieldError::NotReady(said)) }
    }

    /// Ends all helpers, which undo everything.
    pub(super) fn end(&mut self) {
        each(&mut self.helpers, |helper| {
            helper.end();
            if !helper.machine_is_local() {
                remove_program(helper);
            }
        });
    }

    /// The flows of each run, by condition and block.
    pub(super) fn flows(self) -> BTreeMap<(usize, u32), Vec<PlannedFlow>> {
        self.flows
    }

    /// Remembers the flows of a run that was made before.
    pub(super) fn known(
        &mut self,
        index: usize,
        block: u32,
        condition: &ResolvedCondition,
        seed: u64,
        facts: &[StationFacts],
    ) {
        let asked = of_condition(String::new(), condition, seed, facts, &self.helpers);
        self.flows.insert((index, block), asked.flows);
    }

    /// Makes a run of a condition.
    pub(super) fn condition(
        &mut self,
        condition: &ResolvedCondition,
        index: usize,
        (block, position): (u32, u32),
        seed: u64,
        facts: &[StationFacts],
    ) -> Result<RawRun, FieldError> {
        let began = since_boot();
        let name = format!("{} of block {}", condition.name(), block + 1);
        let run = format!("{}-{}", self.number, random(4));
        let asked = of_condition(run, condition, seed, facts, &self.helpers);
        let agents = condition.agents().iter().filter(|runs| **runs).count();
        let (machines, ended_ns) = self.run(&name, &asked, acquaintance(agents))?;
        self.flows.insert((index, block), asked.flows);
        let wall_s = since_boot().saturating_since(began).as_secs_f64();
        Ok(RawRun { condition: index, block, position, wall_s, ended_ns, machines })
    }

    /// Makes a run of one flow alone. Returns its goodput in Mbit/s; `None` where it could not be measured.
    pub(super) fn alone(
        &mut self,
        baseline: &ResolvedCondition,
        flow: &Flow,
        length: Duration,
    ) -> Result<Option<f64>, FieldError> {
        let experiment: &Experiment = &baseline.experiment;
        let run = format!("solo-{}-{}", self.number, random(4));
        let asked = alone(run, experiment, flow, length, &self.helpers);
        let name = format!("{} alone", experiment.expand_stations()[flow.station()].name);
        let receiver = asked.flows[0].receiver;
        let (machines, _) = self.run(&name, &asked, Duration::ZERO)?;
        let from = length.as_nanos() / SOLO_WARMUP;
        let data = machines[receiver].data.as_ref().and_then(|data| data.flows.first());
        let Some(data) = data else {
            let why = machines.iter().find_map(|one| one.reason.as_deref()).unwrap_or("no data");
            self.progress.note(&format!("{name}: its solo goodput is not known: {why}"));
            return Ok(None);
        };
        let counts =
            |at: i64| u64::try_from(at).is_ok_and(|at| (from..=length.as_nanos()).contains(&at));
        let bytes =
            data.arrivals.iter().filter(|(at, _)| counts(*at)).map(|(_, bytes)| bytes).sum();
        let span = Duration::from_nanos(length.as_nanos() - from);
        let mbps = Rate::of(Bytes::new(bytes), span).as_mbps_f64();
        Ok((mbps > 0.0).then_some(mbps))
    }

    /// Makes one run on all machines that take part. Returns what they have measured, and the end where all flows have
    /// completed before the run's duration was over.
    fn run(
        &mut self,
        name: &str,
        asked: &Asked,
        acquaintance: Duration,
    ) -> Result<(Vec<RawMachine>, Option<u64>), FieldError> {
        let number = self.number;
        self.number += 1;
        let progress = self.progress;
        let interrupted = || progress.is_interrupted();
        progress.begins(number, name);
        let token = Token(random(16));
        let plans = asked.plans(&self.helpers, self.options.machines.port, &token, &key());
        let plans = plans.map_err(FieldError::Machines)?;
        let mut machines: Vec<RawMachine> = self.helpers.iter().map(raw).collect();
        if let Some(programs) = &self.options.programs {
            bring_again(&mut self.helpers, programs, &interrupted)?;
        }
        let prepared =
            each_with(&mut self.helpers, plans, |helper, plan| prepare(helper, plan, &interrupted));
        check(&prepared)?;
        let mut ready = true;
        for (machine, result) in machines.iter_mut().zip(prepared) {
            ready &= result.is_ok();
            machine.reason = result.err().map(|error| error.to_string());
        }
        let ended = if ready {
            self.go(number, asked, acquaintance, &mut machines)?
        } else {
            for machine in machines.iter_mut().filter(|machine| machine.reason.is_none()) {
                machine.reason =
                    Some("another machine was not ready, so the run was not begun".to_owned());
            }
            None
        };
        for machine in &machines {
            if let Some(reason) = &machine.reason {
                progress
                    .note(&format!("{name}: {} ({}): {reason}", machine.station, machine.machine));
            }
        }
        each(&mut self.helpers, |helper| {
            if helper.welcome.is_some() {
                let _ = helper.ask(Ask::Forget, Duration::from_secs(1), &interrupted);
            }
        });
        progress.ends(number);
        Ok((machines, ended))
    }

    /// Agrees on the time zero, waits for the end, and fetches what was measured.
    fn go(
        &mut self,
        number: usize,
        asked: &Asked,
        acquaintance: Duration,
        machines: &mut [RawMachine],
    ) -> Result<Option<u64>, FieldError> {
        let progress = self.progress;
        let interrupted = || progress.is_interrupted();
        let from = since_boot();
        while since_boot().saturating_since(from) < acquaintance {
            let left = acquaintance.saturating_sub(since_boot().saturating_since(from));
            pause(left.min(between_pings(self.options.grace)), &interrupted)
                .map_err(|_| RunError::Interrupted)?;
            each(&mut self.helpers, |helper| {
                let _ = helper.ask(Ask::Ping, Duration::from_secs(1), &interrupted);
            });
        }
        let clocks = measure_clocks(&mut self.helpers, &interrupted);
        check(&clocks)?;
        let origin = since_boot() + LEAD;
        let began = each_with(&mut self.helpers, clocks, |helper, clock| {
            let clock = clock?;
            helper.offset = clock;
            let origin_ns = clock.there(origin).as_nanos();
            helper.ask(Ask::Go { origin_ns }, LEAD, &interrupted).map(|_| clock)
        });
        check(&began)?;
        for (machine, result) in machines.iter_mut().zip(&began) {
            match result {
                Ok(clock) => machine.clock_error_ns = clock.error.as_nanos(),
                Err(error) => machine.reason = Some(error.to_string()),
            }
        }
        let carried: Vec<u64> = self.helpers.iter().map(|helper| helper.carried).collect();
        let ended = self.wait(number, asked, origin, &began)?;
        for (machine, (helper, before)) in machines.iter_mut().zip(self.helpers.iter().zip(carried))
        {
            machine.carried = helper.carried - before;
        }
        // A machine whose connection is lost has as long as its helper waits.
        let patience = self.options.grace.max(Duration::from_secs(5));
        let fetched =
            each(&mut self.helpers, |helper| fetch(helper, &asked.run, patience, &interrupted));
        check(&fetched)?;
        for (machine, result) in machines.iter_mut().zip(fetched) {
            match result {
                Ok(data) => {
                    machine.data = Some(data);
                    machine.reason = None;
                }
                Err(error) => machine.reason = Some(error.to_string()),
            }
        }
        let after = measure_clocks(&mut self.helpers, &interrupted);
        for ((machine, helper), after) in machines.iter_mut().zip(&self.helpers).zip(after) {
            if let Ok(after) = after {
                let drift = after.nanos - helper.offset.nanos;
                machine.drift_ns = i64::try_from(drift).unwrap_or(i64::MAX);
            }
        }
        Ok(ended)
    }

    /// Waits for the end of a run. Where all flows have a size, it ends when all have completed, and this time since the time
    /// zero is returned.
    fn wait(
        &mut self,
        number: usize,
        asked: &Asked,
        origin: Instant,
        began: &[Result<ClockOffset, HelperError>],
    ) -> Result<Option<u64>, FieldError> {
        let progress = self.progress;
        let interrupted = || progress.is_interrupted();
        let end = origin + asked.duration;
        let all_sized = asked.flows.iter().all(|flow| flow.size.is_some());
        let receives = |index: usize| asked.flows.iter().any(|flow| flow.receiver == index);
        let mut look = origin + BETWEEN_LOOKS;
        loop {
            let now = since_boot();
            progress.reached(number, now.saturating_since(origin));
            if interrupted() {
                return Err(RunError::Interrupted.into());
            }
            if now >= end {
                return Ok(None);
            }
            if all_sized && now >= look {
                look = now + BETWEEN_LOOKS;
                let answers = each(&mut self.helpers, |helper| {
                    helper.ask(Ask::Status, Duration::from_secs(1), &interrupted)
                });
                let mut complete = BTreeSet::new();
                for (index, answer) in answers.into_iter().enumerate() {
                    if let Ok(Answer::Status { complete: own, .. }) = answer
                        && began[index].is_ok()
                        && receives(index)
                    {
                        complete.extend(own);
                    }
                }
                if complete.len() == asked.flows.len() {
                    each(&mut self.helpers, |helper| {
                        let _ = helper.ask(Ask::Stop, PREPARE_PATIENCE, &interrupted);
                    });
                    return Ok(Some(since_boot().saturating_since(origin).as_nanos()));
                }
            }
            let left = end.saturating_since(since_boot());
            let _ = pause(left.min(Duration::from_millis(100)), &interrupted);
        }
    }
}

fn raw(helper: &Helper<'_>) -> RawMachine {
    RawMachine {
        station: helper.machine.station.clone(),
        machine: helper.machine.place.to_string(),
        facts: helper.facts.clone(),
        ..RawMachine::default()
    }
}

/// The interruption, where one of the results is one.
fn check<T>(results: &[Result<T, HelperError>]) -> Result<(), RunError> {
    let is_interrupted =
        |result: &Result<T, HelperError>| matches!(result, Err(HelperError::Interrupted));
    if results.iter().any(is_interrupted) { Err(RunError::Interrupted) } else { Ok(()) }
}

/// Does the same on all machines at once.
pub(crate) fn each<'a, T: Send>(
    helpers: &mut [Helper<'a>],
    work: impl Fn(&mut Helper<'a>) -> T + Sync,
) -> Vec<T> {
    let nothing = vec![(); helpers.len()];
    each_with(helpers, nothing, |helper, ()| work(helper))
}

/// Does the same on all machines at once, each with something of its own. A machine that is done first is kept from its deadline
/// until all are.
fn each_with<'a, T: Send, U: Send>(
    helpers: &mut [Helper<'a>],
    with: Vec<U>,
    work: impl Fn(&mut Helper<'a>, U) -> T + Sync,
) -> Vec<T> {
    let work = &work;
    let left = &Left { machines: Mutex::new(helpers.len()), fewer: Condvar::new() };
    let one = move |helper: &mut Helper<'a>, with: U| {
        // Also where the work panics: the others must not wait for it.
        let done = Done(left);
        let result = work(helper, with);
        drop(done);
        while !left.wait(between_pings(helper.grace())) {
            helper.keep(&|| left.wait(Duration::ZERO));
        }
        result
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = helpers
            .iter_mut()
            .zip(with)
            .map(|(helper, with)| scope.spawn(move || one(helper, with)))
            .collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// The machines that are still at work.
struct Left {
    machines: Mutex<usize>,
    fewer: Condvar,
}

impl Left {
    /// Waits until none is left, for this time at most. Returns whether none is.
    fn wait(&self, longest: Duration) -> bool {
        let machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        let some = |machines: &mut usize| *machines > 0;
        let waited = self.fewer.wait_timeout_while(machines, longest.into(), some);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }
}

/// Counts one machine less that is at work, when it is dropped.
struct Done<'a>(&'a Left);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        *self.0.machines.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.fewer.notify_all();
    }
}

/// The time between two messages to a helper with this grace period.
fn between_pings(grace: Duration) -> Duration {
    (grace / 4).clamp(Duration::from_millis(250), BETWEEN_PINGS)
}

/// Connects all machines, and asks what they are. Returns for each what is in the way.
pub(crate) fn connect_all(
    helpers: &mut [Helper<'_>],
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Vec<Option<HelperError>> {
    let server = helpers[0].machine.address;
    each(helpers, |helper| inspect(helper, server, interrupted).err())
}

fn inspect(
    helper: &mut Helper<'_>,
    server: Option<IpAddr>,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), HelperError> {
    let way = Way { interface: helper.machine.interface.clone(), address: helper.machine.address };
    let ask = Ask::Inspect(InspectAsk { way, server });
    match helper.ask(ask, CONNECT_PATIENCE, interrupted)? {
        Answer::Facts(facts) => {
            helper.facts = Some(*facts);
            Ok(())
        }
        _ => Err(HelperError::Refused("it did not say what it is".to_owned())),
    }
}

/// Measures the clocks of all machines, one after another: at once, they would delay each other's answers. Before that all are
/// asked at once, so that one waits for the machines that are lost while the others are kept from their deadlines.
fn measure_clocks(
    helpers: &mut [Helper<'_>],
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Vec<Result<ClockOffset, HelperError>> {
    let patience = Duration::from_secs(5);
    let there = each(helpers, |helper| helper.ask(Ask::Ping, patience, interrupted));
    let measured = helpers.iter_mut().zip(there).map(|(helper, there)| {
        there?;
        helper.measure_clock(EXCHANGES, patience, interrupted)
    });
    measured.collect()
}

fn prepare(
    helper: &mut Helper<'_>,
    plan: RunPlan,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), HelperError> {
    let plan = Box::new(plan);
    match helper.ask(Ask::Prepare(plan.clone()), PREPARE_PATIENCE, interrupted) {
        // It has been started again since the last run, and is there.
        Err(HelperError::Rebooted) => {
            helper.ask(Ask::Prepare(plan), PREPARE_PATIENCE, interrupted).map(|_| ())
        }
        other => other.map(|_| ()),
    }
}

/// Fetches what a machine has measured in the run of this name.
fn fetch(
    helper: &mut Helper<'_>,
    run: &str,
    patience: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<StationData, HelperError> {
    let refused = |why: &str| Err(HelperError::Refused(why.to_owned()));
    match helper.ask(Ask::Fetch, patience, interrupted) {
        Ok(Answer::Data(data)) if data.run == run => Ok(*data),
        Ok(Answer::Data(_)) => refused("it gave the data of another run"),
        Ok(_) => refused("it gave no data"),
        Err(HelperError::Unreachable(why)) => Err(HelperError::Unreachable(format!(
            "its connection was lost, and did not come back within {patience} ({why})"
        ))),
        Err(error) => Err(error),
    }
}

impl Helper<'_> {
    /// Whether the machine is this one.
    pub(crate) fn machine_is_local(&self) -> bool {
        self.machine.place == Place::Local
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// A program that answers as a helper, and notes each question of its time in a file beside it.
    fn stand_in(directory: &Path, name: &str) -> std::path::PathBuf {
        let path = directory.join(name);
        let welcome = format!(
            r#"{{"welcome":{{"version":"{}","boot":"b","pid":1,"root":true}}}}"#,
            wakeai_world::VERSION
        );
        let text = format!(
            "#!/bin/sh\nwhile read -r line; do\n  id=${{line#*:}}; id=${{id%%,*}}\n  case $line in\n    *hello*) \
             answer='{welcome}' ;;\n    *ping*) answer='{{\"pong\":{{\"boot_ns\":1}}}}'; echo asked >> {}.asked ;;\n  esac\n  \
             echo \"{{\\\"id\\\":$id,\\\"answer\\\":$answer}}\"\ndone\n",
            path.display()
        );
        wakeai_guest::testing::write_program(&path, text);
        path
    }

    #[test]
    fn a_machine_that_is_ready_is_kept_from_its_deadline_until_all_are() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::local();
        let programs = ["fast", "slow"].map(|name| stand_in(directory.path(), name));
        let grace = Duration::from_secs(1);
        let mut helpers = programs
            .each_ref()
            .map(|program| Helper::new(&machine, "0123456789abcdef", program, grace));
        let until_asked = |path: std::path::PathBuf, times: usize| {
            let give_up = since_boot() + Duration::from_secs(60);
            let asked = || fs::read_to_string(&path).map_or(0, |text| text.lines().count());
            while asked() < times {
                assert!(since_boot() < give_up, "the helper was asked {} times", asked());
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        };
        let fast = directory.path().join("fast.asked");
        let results = each_with(&mut helpers, vec![true, false], |helper, is_fast| {
            let answer = helper.ask(Ask::Ping, Duration::from_secs(30), &|| false);
            if !is_fast {
                // It ends only when the other one has been asked again and again.
                until_asked(fast.clone(), 4);
            }
            answer
        });
        assert!(
            results.iter().all(|result| *result == Ok(Answer::Pong { boot_ns: 1 })),
            "{results:?}"
        );
        let slow = fs::read_to_string(directory.path().join("slow.asked")).unwrap();
        assert_eq!(slow.lines().count(), 1, "a machine that is at work is asked nothing else");
    }
}
