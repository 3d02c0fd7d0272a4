//! What a command asks of a world (the simulator or the lab): the runs, the display of their
//! progress, and the reasons for a failure.

use std::path::PathBuf;

use wakeai_results::records::{Manifest, Output, RecordsError};
use wakeai_results::result::Report;
use wakeai_scenario::{Experiment, ResolvedCondition, Scenario};
use wakeai_units::Duration;

use crate::keys::keys_without_effect;
use crate::{KnownSolos, Recorder, VERSION};

/// The runs of a scenario that a command asks for, and the directory of their records.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The seed of the first repeat.
    pub seed: u64,
    /// The number of runs of each condition.
    pub repeat: u32,
    /// The names of the conditions to run; an empty list stands for all.
    pub conditions: Vec<String>,
    /// The directory of the records; `None` keeps no records.
    pub out: Option<Output>,
    /// Whether packet captures are among the records. The lab makes none.
    pub captures: bool,
    /// The solo goodputs that need not be measured, because they are known.
    pub known: KnownSolos,
}

impl Default for Options {
    /// Seed 1, one repeat of every condition, no records.
    fn default() -> Self {
        let known = KnownSolos::new();
        Self { seed: 1, repeat: 1, conditions: Vec::new(), out: None, captures: false, known }
    }
}

/// The progress of a command's runs; several may run at once.
pub trait Progress: Sync {
    /// Announces all runs, solo runs included, with the longest duration of each.
    fn runs(&self, _lengths: &[Duration]) {}
    /// A run begins; `run` is its index among all runs.
    fn begins(&self, _run: usize, _name: &str) {}
    /// A run has reached the time `elapsed`.
    fn reached(&self, _run: usize, _elapsed: Duration) {}
    /// A run has ended.
    fn ends(&self, _run: usize) {}
    /// Whether the user wants the runs to end.
    fn is_interrupted(&self) -> bool {
        false
    }
    /// A message for the user.
    fn note(&self, _text: &str) {}
}

/// A [`Progress`] that shows nothing and is never interrupted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}

/// Why a command's runs could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario asks for something that this world does not have.
    #[error("{world} cannot run this scenario: {asked} ({remedy})")]
    Unsupported {
        /// The world, as the subject of a sentence.
        world: &'static str,
        /// The key and its value.
        asked: String,
        /// The remedy.
        remedy: String,
    },
    /// The medium refused the scenario's radio.
    #[error("the radio of the scenario cannot be built: {0}")]
    Radio(#[from] wakeai_medium::ConfigError),
    /// The scenario has no such condition.
    #[error("--conditions {asked}: the conditions of the scenario are {known}")]
    Condition {
        /// The name that was asked for.
        asked: String,
        /// The names that the scenario has.
        known: String,
    },
    /// The user has interrupted the run: see [`Progress::is_interrupted`].
    #[error("the run was interrupted; nothing of it was kept")]
    Interrupted,
    /// The records could not be written.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A run failed after other runs had been made.
    #[error("{error}")]
    After {
        /// The failure.
        #[source]
        error: Box<RunError>,
        /// What was made before.
        made: Box<Made>,
    },
}

/// The runs that a command made before one failed.
#[derive(Debug)]
pub struct Made {
    /// Their report. It states which run failed, and why.
    pub report: Report,
    /// The directory of their records, or why these could not be kept; `None` where none were asked for.
    pub records: Option<Result<PathBuf, RecordsError>>,
}

impl Made {
    /// What became of the records, for the user; `None` where none were asked for.
    pub fn words(&self) -> Option<String> {
        let runs = self.report.runs.len();
        self.records.as_ref().map(|records| match records {
            Ok(path) => {
                format!("the records of the {runs} runs before are kept in {}", path.display())
            }
            Err(error) => format!("the records of the {runs} runs before are lost: {error}"),
        })
    }
}

impl RunError {
    /// The exit status of the command: 2 for a scenario that this world cannot run and for wrong usage,
    /// 130 for a run that Ctrl-C ended, 1 for everything else.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Unsupported { .. } | Self::Radio(_) | Self::Condition { .. } => 2,
            Self::Records(error) if error.is_usage() => 2,
            Self::Interrupted => 130,
            Self::Records(_) => 1,
            Self::After { error, .. } => error.exit_status(),
        }
    }
}

/// The runs that are to be made.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The conditions to run.
    pub conditions: Vec<ResolvedCondition>,
    /// The seed of the first repeat.
    pub seed: u64,
    /// The number of runs of each condition.
    pub repeat: u32,
    /// The solo goodputs that need not be measured, because they are known.
    pub known: KnownSolos,
}

impl<'a> Asked<'a> {
    /// The runs of `scenario` that `options` ask for.
    ///
    /// # Errors
    ///
    /// [`RunError::Condition`].
    pub fn new(scenario: &'a Scenario, options: &Options) -> Result<Self, RunError> {
        let conditions = chosen(scenario, &options.conditions)?;
        let Options { seed, repeat, known, .. } = options.clone();
        Ok(Self { scenario, conditions, seed, repeat, known })
    }

    /// Tells the user which keys have no effect. `of_world` lists the keys that this world ignores.
    pub fn note_keys_without_effect(
        &self,
        of_world: impl Fn(&Experiment) -> Vec<String>,
        progress: &dyn Progress,
    ) {
        for text in keys_without_effect(&self.conditions, of_world) {
            progress.note(&text);
        }
    }

    /// Creates the records that `options` ask for, if any. Their manifest has the name `world`.
    ///
    /// # Errors
    ///
    /// Those of [`Recorder::create`].
    pub fn recorder(
        &self,
        options: &Options,
        world: &str,
    ) -> Result<Option<Recorder>, RecordsError> {
        let manifest = Manifest {
            version: VERSION.to_owned(),
            world: world.to_owned(),
            scenario: self.scenario.name.clone(),
            seed: self.seed,
            repeat: self.repeat,
            conditions: self.conditions.iter().map(|one| one.name().to_owned()).collect(),
        };
        let create = |out| Recorder::create(out, self.scenario, manifest, options.captures);
        options.out.clone().map(create).transpose()
    }
}

/// The conditions of `scenario` with these names, in the order of the file. Without names it
/// returns all conditions.
///
/// # Errors
///
/// [`RunError::Condition`].
pub fn chosen(scenario: &Scenario, names: &[String]) -> Result<Vec<ResolvedCondition>, RunError> {
    let all = scenario.conditions();
    if let Some(asked) = names.iter().find(|name| !all.iter().any(|one| one.name() == *name)) {
        let known = all.iter().map(ResolvedCondition::name).collect::<Vec<_>>().join(", ");
        return Err(RunError::Condition { asked: asked.clone(), known });
    }
    let wanted = |condition: &ResolvedCondition| {
        names.is_empty() || names.iter().any(|name| name == condition.name())
    };
    Ok(all.into_iter().filter(wanted).collect())
}
