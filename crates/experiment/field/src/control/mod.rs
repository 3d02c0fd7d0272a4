//! The controlling command: makes all runs on the machines, in blocks, and gives the result of them.

mod helper;
mod journal;
mod keys;
mod measure;
mod outcome;
mod plan;
mod programs;
mod raw;
pub(crate) mod verdict;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;

use wakeai_results::result::{Max, MaxFrom, Outcome, Report, given_maxima};
use wakeai_scenario::{
    Direction, ResolvedCondition, Scenario, StationDirection, first_flows, repeat_seed,
};
use wakeai_units::Duration;
use wakeai_world::agent::facts;
use wakeai_world::{Asked, Made, Options, Progress, RunError, Task, World, session};

use self::journal::{Command, Journal};
use self::measure::Session;
use self::raw::RawRun;
use crate::error::FieldError;
use crate::machines::Machines;
use crate::order::blocks;

pub(crate) use helper::{CONNECT_PATIENCE, Helper, HelperError, pause};
pub(crate) use measure::{connect_all, each};
pub(crate) use plan::random;
pub(crate) use programs::{bring, remove_program};

/// How a scenario is run on real machines.
#[derive(Clone, Debug)]
pub struct FieldOptions {
    /// The runs to make, and the directory of the result.
    pub run: Options,
    /// The machines.
    pub machines: Machines,
    /// The time after the last word of this command, and after the end of a run, at which each machine undoes everything by
    /// itself.
    pub grace: Duration,
    /// The length of the run of each station alone; zero makes none.
    pub solo: Duration,
    /// The directory of a release, whose static programs are brought to the machines.
    pub programs: Option<PathBuf>,
    /// The share of a channel's time, in per cent, that others may use before and during the experiment.
    pub max_load_percent: u32,
    /// This program, for the helper of the local machine.
    pub program: PathBuf,
}

/// Runs `scenario` on the machines and returns its report. Each repeat is a block that has every condition once. The
/// runs that do not count are in the report, too, with the reasons.
///
/// When this function returns, the machines have undone everything, or do so by themselves after the grace period.
///
/// # Errors
///
/// [`FieldError`]; [`FieldError::exit_status`] is the exit status of the command.
pub fn run(
    options: &FieldOptions,
    scenario: &Scenario,
    progress: &dyn Progress,
) -> Result<Report, FieldError> {
    let asked = Asked::new(scenario, &options.run)?;
    for condition in &asked.conditions {
        keys::refuse(&condition.experiment)?;
    }
    asked.note_keys_without_effect(keys::without_effect, progress);
    let names: Vec<String> =
        scenario.expand_stations().into_iter().map(|station| station.name).collect();
    for condition in &asked.conditions {
        let own = condition.experiment.expand_stations();
        if own.iter().map(|station| &station.name).ne(&names) {
            return Err(FieldError::Machines(format!(
                "the condition {} has other stations than the scenario; machines stay the same",
                condition.name()
            )));
        }
    }
    let machines = options.machines.of_stations(&names)?;
    let out = options.run.out.as_ref().map(|out| out.directory.as_path());
    let journal = Journal::open(out, &command(options, scenario))?;
    let recorder = asked.recorder(&options.run, Field::NAME).map_err(RunError::from)?;
    let name = journal.session()?;
    let mut session = Session::new(options, &name, &machines, progress);
    let made =
        session.connect().and_then(|()| measure_all(&mut session, &asked, &journal, options));
    session.end();
    let (runs, maxima) = made.inspect_err(|error| {
        if let (Some(path), FieldError::Run(RunError::Interrupted)) = (journal.path(), error) {
            progress.note(&format!(
                "the same command goes on where this one was cut; its runs are in {}",
                path.display()
            ));
        }
    })?;
    let flows = session.flows();
    let field = Field { runs, maxima, max_load_percent: options.max_load_percent, flows };
    let report = session::report(1, &field, &asked, recorder)?;
    journal.remove();
    Ok(report)
}

/// What makes a later command the same.
fn command(options: &FieldOptions, scenario: &Scenario) -> Command {
    let Options { seed, repeat, conditions, .. } = &options.run;
    let digest = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    let pairs = [
        ("version", wakeai_world::VERSION.to_owned()),
        ("scenario", digest(&scenario.to_toml())),
        ("machines", digest(&options.machines.identity())),
        ("seed", seed.to_string()),
        ("repeat", repeat.to_string()),
        ("conditions", conditions.join(",")),
        ("solo", options.solo.to_string()),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The runs by index of the condition and number of the repeat, and what each station reaches alone.
type MadeRuns = (BTreeMap<(usize, u32), RawRun>, BTreeMap<StationDirection, Max>);

/// Makes the solo runs and all blocks. Runs that were made before are taken from the journal.
fn measure_all(
    session: &mut Session<'_>,
    asked: &Asked<'_>,
    journal: &Journal,
    options: &FieldOptions,
) -> Result<MadeRuns, FieldError> {
    let baseline = &asked.conditions[0];
    let mut alone = journal.solos();
    let wanted = solos_of(baseline, options.solo);
    let order = blocks(asked.conditions.len(), asked.repeat, asked.seed);
    let mut made = journal.runs();
    let missing = wanted.keys().filter(|key| !alone.contains_key(&key_of(**key)));
    let lengths = missing.map(|_| options.solo);
    let runs = order
        .iter()
        .zip(0..)
        .flat_map(|(block, number)| block.iter().map(move |condition| (number, *condition)));
    let left = runs.clone().filter(|run| !made.contains_key(run));
    let lengths = lengths.chain(left.map(|(_, one)| asked.conditions[one].experiment.duration));
    session.progress.runs(&lengths.collect::<Vec<_>>());
    for (key, flow) in &wanted {
        if let Entry::Vacant(unknown) = alone.entry(key_of(*key))
            && let Some(mbps) = session.alone(baseline, flow, options.solo)?
        {
            unknown.insert(mbps);
            journal.keep_solos(&alone)?;
        }
    }
    let mut maxima = given_maxima(baseline);
    for key in wanted.keys() {
        if let Some(mbps) = alone.get(&key_of(*key)) {
            maxima.entry(*key).or_insert(Max { mbps: *mbps, from: MaxFrom::Solo });
        }
    }
    for (block, conditions) in (0..).zip(&order) {
        for (position, index) in (0..).zip(conditions) {
            let condition = &asked.conditions[*index];
            let seed = repeat_seed(asked.seed, block);
            let facts = facts(condition, &maxima);
            if made.contains_key(&(block, *index)) {
                session.known(*index, block, condition, seed, &facts);
                continue;
            }
            let raw = session.condition(condition, *index, (block, position), seed, &facts)?;
            journal.keep_run(&raw)?;
            made.insert((block, *index), raw);
        }
    }
    let runs = made.into_iter().map(|((block, condition), raw)| ((condition, block), raw));
    Ok((runs.collect(), maxima))
}

/// The stations and directions whose solo goodput is to be measured, each with the flow.
fn solos_of(
    baseline: &ResolvedCondition,
    length: Duration,
) -> BTreeMap<StationDirection, wakeai_scenario::Flow> {
    if length.is_zero() {
        return BTreeMap::new();
    }
    let given = given_maxima(baseline);
    let mut flows = first_flows(&baseline.experiment);
    flows.retain(|key, _| !given.contains_key(key));
    flows
}

fn key_of(key: StationDirection) -> String {
    let direction: &'static str = match key.direction {
        Direction::Up => "up",
        Direction::Down => "down",
        Direction::Peer => "peer",
    };
    format!("{} {direction}", key.station)
}

/// The third world: its runs are made already, and become figures.
struct Field {
    runs: BTreeMap<(usize, u32), RawRun>,
    maxima: BTreeMap<StationDirection, Max>,
    max_load_percent: u32,
    /// The flows of each run, as they were planned.
    flows: BTreeMap<(usize, u32), Vec<plan::PlannedFlow>>,
}

impl World for Field {
    const NAME: &'static str = "field";
    type Error = FieldError;

    fn after(error: FieldError, made: Made) -> FieldError {
        FieldError::After { error: Box::new(error), made: Box::new(made) }
    }

    fn maxima(&self) -> Option<BTreeMap<StationDirection, Max>> {
        Some(self.maxima.clone())
    }

    fn run(&self, task: Task<'_>) -> Result<Outcome, FieldError> {
        let place = task.place.expect("the stations were measured alone before");
        let (raw, flows) = (&self.runs[&place], &self.flows[&place]);
        let sink = task.sink.as_ref();
        Ok(outcome::outcome(raw, task.condition, task.seed, flows, self.max_load_percent, sink))
    }
}
