//! The scenario as a whole: reads it, applies overrides, and makes its conditions.

use std::io::Read;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::DeValue;

use crate::experiment::{Condition, Experiment};
use crate::read;
use crate::set;
use wakeai_control::{LawConfig, LawName};
use wakeai_settings::{Finding, Node, Origin, Problem, Problems, Refused, Source, Table, Value};

/// A scenario: its content, which [`Deref`] reaches, and the text that it was read from.
#[derive(Clone, Debug)]
pub struct Scenario {
    experiment: Arc<Experiment>,
    /// The content of the text, with the overrides applied.
    root: Arc<Table>,
    source: Arc<Source>,
}

impl Deref for Scenario {
    type Target = Experiment;
    fn deref(&self) -> &Experiment {
        &self.experiment
    }
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    ///
    /// `text` is not a scenario. The error lists each unknown key, each value that is out of range,
    /// and each unknown name.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::parse_as(text, None)
    }

    /// Reads the scenario in the file `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or its content is not a scenario ([`Scenario::parse`]).
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let unreadable = |source| ScenarioError::Unreadable { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        Self::from_reader(file, path.to_owned())
    }

    /// Reads the scenario in `reader`, which errors call `name`.
    ///
    /// # Errors
    ///
    /// Those of [`Scenario::load`].
    pub fn from_reader(reader: impl Read, name: PathBuf) -> Result<Self, ScenarioError> {
        let mut text = String::new();
        // One byte more than allowed is read, which shows whether the file is too large.
        let read = reader.take(Source::LARGEST as u64 + 1).read_to_string(&mut text);
        match read {
            Ok(_) => Self::parse_as(&text, Some(name)),
            Err(source) => Err(ScenarioError::Unreadable { path: name, source }),
        }
    }

    fn parse_as(text: &str, file: Option<PathBuf>) -> Result<Self, ScenarioError> {
        let source = Source::new("scenario", text, file);
        let root = source.parse()?;
        Self::read(source.into(), root)
    }

    /// The scenario with keys changed, in this order, as `--set KEY=VALUE` does. A value that is
    /// TOML (`true`, `3`, `"10MB"`) is read as TOML. Any other value is read as a string (`10MB`).
    ///
    /// # Errors
    ///
    /// Those of [`Scenario::parse`]. The error names the override.
    pub fn with_overrides(&self, overrides: &[(String, String)]) -> Result<Self, ScenarioError> {
        let mut source = Source::clone(&self.source);
        let mut root = Table::clone(&self.root);
        let problems = Problems::default();
        for (key, value) in overrides {
            let index = source.overrides.len();
            source.overrides.push(key.clone());
            if let Err(wrong) = set::set(&mut root, key, override_node(value, index)) {
                problems.add(Origin::Override(index), "", wrong.found, wrong.allowed);
            }
        }
        problems.check().map_err(|findings| source.refuse(findings))?;
        Self::read(source.into(), root)
    }

    /// Reads the tree, and every condition with its `set` applied.
    fn read(source: Arc<Source>, root: Table) -> Result<Self, ScenarioError> {
        let experiment = read::experiment(&root, Problems::default())
            .map_err(|findings| source.refuse(findings))?;
        let scenario = Self { experiment: experiment.into(), root: root.into(), source };
        let with_set = (0..).zip(&scenario.conditions).filter(|(_, one)| !one.set.is_empty());
        let findings = with_set.filter_map(|(index, _)| scenario.resolve(index).err());
        let findings: Vec<Finding> = findings.flatten().collect();
        if findings.is_empty() {
            Ok(scenario)
        } else {
            Err(scenario.source.refuse(findings).into())
        }
    }

    /// The conditions that are compared, each with its `set` applied, in the order of the file.
    pub fn conditions(&self) -> Vec<ResolvedCondition> {
        let resolved = (0..self.conditions.len()).map(|index| self.resolve(index));
        resolved.map(|condition| condition.expect("read together with the scenario")).collect()
    }

    fn resolve(&self, index: usize) -> Result<ResolvedCondition, Vec<Finding>> {
        let condition = &self.conditions[index];
        let problems = Problems::of_condition(&condition.name);
        let (mut root, set) = self.root_of(index);
        for (path, node) in set {
            let origin = node.origin;
            if let Err(wrong) = set::set(&mut root, &path, node) {
                let key = format!("conditions.{}.set", condition.name);
                problems.add(origin, key, wrong.found, wrong.allowed);
            }
        }
        problems.check()?;
        let experiment = read::experiment(&root, Problems::of_condition(&condition.name))?;
        let mut resolved = experiment.conditions[0].clone();
        resolved.set.clone_from(&condition.set);
        Ok(ResolvedCondition { condition: resolved, experiment: experiment.into() })
    }

    /// Returns the tree with only the condition `index`, from which `set` was removed, and the keys
    /// and values of that `set`.
    fn root_of(&self, index: usize) -> (Table, Vec<(String, Node)>) {
        let entries = self.root.entries.iter().filter(|entry| entry.key != "conditions");
        let mut root = Table { entries: entries.cloned().collect() };
        let mut set = Vec::new();
        let conditions = self.root.get("conditions").map(|entry| &entry.node);
        let own = conditions.and_then(Node::as_array).and_then(|nodes| nodes.get(index));
        if let (Some(node), Some(mut own)) = (conditions, own.cloned()) {
            if let Some(removed) = own.as_table_mut().and_then(|table| table.remove("set")) {
                set = removed.node.as_table().map(set::flatten).unwrap_or_default();
            }
            root.insert("conditions", Node::new(node.origin, Value::Array(vec![own])));
        }
        (root, set)
    }

    /// Whether the text, or an override, has this key in this table, or in an entry of this list of tables.
    pub fn has_key(&self, table: &str, key: &str) -> bool {
        let Some(entry) = self.root.get(table) else { return false };
        let has = |node: &Node| node.as_table().is_some_and(|table| table.get(key).is_some());
        has(&entry.node) || entry.node.as_array().is_some_and(|nodes| nodes.iter().any(has))
    }

    /// The scenario as TOML, with the overrides applied. [`Scenario::parse`] reads the same scenario from it.
    pub fn to_toml(&self) -> String {
        wakeai_settings::to_toml(&self.root)
    }
}

/// A condition with its `set` applied, as it is run.
#[derive(Clone, Debug)]
pub struct ResolvedCondition {
    /// The condition.
    pub condition: Condition,
    /// The experiment with `set` applied. It has only this condition.
    pub experiment: Arc<Experiment>,
}

impl ResolvedCondition {
    /// The condition's name.
    pub fn name(&self) -> &str {
        &self.condition.name
    }

    /// The law of the condition's agents; with `None` no agent runs.
    pub fn law(&self) -> Option<LawName> {
        self.condition.law.as_ref().map(LawConfig::name)
    }

    /// For every station by index: the law by which its agent bounds its connections. It is `None` where no agent
    /// runs, and where the agent only observes, because the law is `fixed` and has no `bounds` for the station.
    pub fn laws(&self) -> Vec<Option<LawConfig>> {
        let of_all = self.condition.law.clone().filter(|law| law.name() != LawName::Fixed);
        let mut laws = vec![of_all; self.experiment.station_count() as usize];
        for rule in self.condition.laws.iter().chain(&self.condition.bounds) {
            laws[self.experiment.select(rule.stations)].fill(Some(rule.law.clone()));
        }
        laws.into_iter().zip(self.agents()).map(|(law, runs)| law.filter(|_| runs)).collect()
    }

    /// For every station by index: whether it runs an agent.
    pub fn agents(&self) -> Vec<bool> {
        let Condition { law, agents, .. } = &self.condition;
        let runs_on_all = law.is_some() && agents.is_empty();
        let mut runs = vec![runs_on_all; self.experiment.station_count() as usize];
        for selector in agents.iter().filter(|_| law.is_some()) {
            runs[self.experiment.select(*selector)].fill(true);
        }
        runs
    }
}

fn override_node(value: &str, index: usize) -> Node {
    let origin = Origin::Override(index);
    match DeValue::parse(value.trim()) {
        Ok(parsed) if !matches!(parsed.get_ref(), DeValue::Datetime(_)) => {
            wakeai_settings::of_override(&parsed, index)
        }
        _ => Node::string(origin, value),
    }
}

/// A scenario that was refused.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The scenario file could not be read.
    #[error("cannot read the scenario {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The content is not a scenario.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl ScenarioError {
    /// The problems of the content; empty if the file could not be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Unreadable { .. } => &[],
            Self::Refused(refused) => &refused.problems,
        }
    }
}
