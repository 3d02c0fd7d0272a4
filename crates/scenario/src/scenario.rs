//! The scenario as a whole: how it is read and overridden, and its conditions.

use std::io::Read as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::condition::ResolvedCondition;
use crate::error::{Place, Problem, ScenarioError};
use crate::experiment::Experiment;
use crate::read;
use crate::read::problems::{Finding, Problems};
use crate::set;
use crate::tree::{self, Node, Origin, Table, Value};

/// The largest file that is read.
const LARGEST_FILE: usize = 1 << 20;
/// Problems that an error lists.
const LISTED: usize = 20;

/// A scenario: its content (by [`Deref`]) and the text that it came from.
#[derive(Clone, Debug)]
pub struct Scenario {
    experiment: Arc<Experiment>,
    source: Arc<Source>,
}

/// What a scenario was read from.
#[derive(Clone, Debug)]
struct Source {
    text: Arc<str>,
    file: Option<PathBuf>,
    /// Keys of the overrides, by number.
    overrides: Vec<String>,
    /// The text's content with the overrides applied.
    root: Node,
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
    /// Lists everything that is wrong with `text`: an unknown key, a value out of range, a name
    /// that does not exist.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::parse_as(text, None)
    }

    /// Reads the scenario in the file `path`.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, and as [`Scenario::parse`].
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let unreadable = |source| ScenarioError::Unreadable { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut text = String::new();
        // One byte more than allowed distinguishes a larger file from one of the allowed size.
        file.take(LARGEST_FILE as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
        Self::parse_as(&text, Some(path.to_owned()))
    }

    fn parse_as(text: &str, file: Option<PathBuf>) -> Result<Self, ScenarioError> {
        if text.len() > LARGEST_FILE {
            let problem = Problem {
                place: Place::File { line: 1, column: 1 },
                key: String::new(),
                condition: None,
                found: "a larger file".to_owned(),
                allowed: format!("at most {LARGEST_FILE} bytes"),
            };
            return Err(ScenarioError::Refused { file, problems: vec![problem], more: 0 });
        }
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            return Err(not_toml(text, file, &errors));
        }
        let root = tree::of_document(document.get_ref());
        Self::read(Source { text: Arc::from(text), file, overrides: Vec::new(), root })
    }

    /// The scenario with keys changed as `--set KEY=VALUE` asks, in order. The value is TOML
    /// (`true`, `3`, `"10MB"`), or else a string (`10MB`).
    ///
    /// # Errors
    ///
    /// As [`Scenario::parse`], naming the override.
    pub fn with_overrides(&self, overrides: &[(String, String)]) -> Result<Self, ScenarioError> {
        let mut source = Source::clone(&self.source);
        let problems = Problems::default();
        for (key, value) in overrides {
            let index = source.overrides.len();
            source.overrides.push(key.clone());
            let node = override_node(value, index);
            if let Err(wrong) = set::set(source.root_table(), key, node) {
                problems.add(Origin::Override(index), "", wrong.found, wrong.allowed);
            }
        }
        if !problems.is_empty() {
            return Err(source.refused(problems.into_findings()));
        }
        Self::read(source)
    }

    /// Reads the tree, and every condition with its `set` applied.
    fn read(source: Source) -> Result<Self, ScenarioError> {
        let problems = Problems::default();
        let Some(experiment) = read::experiment(&source.root, &problems) else {
            return Err(source.refused(problems.into_findings()));
        };
        let scenario = Self { experiment: Arc::new(experiment), source: Arc::new(source) };
        let mut findings = Vec::new();
        for index in 0..scenario.conditions.len() {
            if !scenario.conditions[index].set.is_empty() {
                findings.extend(scenario.resolve(index).err().into_iter().flatten());
            }
        }
        if findings.is_empty() { Ok(scenario) } else { Err(scenario.source.refused(findings)) }
    }

    /// What is compared, each with its `set` applied, in the order of the file. The scenario of
    /// each has that condition alone.
    pub fn conditions(&self) -> Vec<ResolvedCondition> {
        let resolved = (0..self.conditions.len()).map(|index| self.resolve(index));
        resolved.map(|condition| condition.expect("read together with the scenario")).collect()
    }

    fn resolve(&self, index: usize) -> Result<ResolvedCondition, Vec<Finding>> {
        let condition = &self.conditions[index];
        let problems = Problems::of_condition(&condition.name);
        let (root, set) = self.root_of(index);
        let mut source = Source { root, ..Source::clone_without_root(&self.source) };
        for (path, node) in set {
            let origin = node.origin;
            if let Err(wrong) = set::set(source.root_table(), &path, node) {
                let key = format!("conditions.{}.set", condition.name);
                problems.add(origin, key, wrong.found, wrong.allowed);
            }
        }
        if !problems.is_empty() {
            return Err(problems.into_findings());
        }
        let Some(experiment) = read::experiment(&source.root, &problems) else {
            return Err(problems.into_findings());
        };
        let mut resolved = experiment.conditions[0].clone();
        resolved.set.clone_from(&condition.set);
        let scenario = Self { experiment: Arc::new(experiment), source: Arc::new(source) };
        Ok(ResolvedCondition { condition: resolved, scenario })
    }

    /// The tree with condition `index` alone, without its `set`, and what that sets.
    fn root_of(&self, index: usize) -> (Node, Vec<(String, Node)>) {
        let entries = self.source.table().entries.iter().filter(|entry| entry.key != "conditions");
        let mut table = Table { entries: entries.cloned().collect() };
        let mut set = Vec::new();
        let conditions = self.source.table().get("conditions").map(|entry| &entry.node);
        let own = conditions.and_then(Node::as_array).and_then(|nodes| nodes.get(index));
        if let (Some(node), Some(mut own)) = (conditions, own.cloned()) {
            if let Some(removed) = own.as_table_mut().and_then(|table| table.remove("set")) {
                set = removed.node.as_table().map(set::flatten).unwrap_or_default();
            }
            table.insert("conditions", Node::new(node.origin, Value::Array(vec![own])));
        }
        (Node::new(self.source.root.origin, Value::Table(table)), set)
    }

    /// A scenario read from a tree that was made from this one's.
    pub(crate) fn derive(&self, table: Table) -> Result<Self, ScenarioError> {
        let root = Node::new(self.source.root.origin, Value::Table(table));
        Self::read(Source { root, ..Source::clone_without_root(&self.source) })
    }

    /// The tree that this was read from.
    pub(crate) fn table(&self) -> &Table {
        self.source.table()
    }

    /// The origin of the whole, for what has none of its own.
    pub(crate) fn origin(&self) -> Origin {
        self.source.root.origin
    }

    /// The scenario as TOML, overrides applied; what [`Scenario::parse`] reads back as this one.
    pub fn to_toml(&self) -> String {
        tree::to_toml(self.source.table())
    }
}

fn override_node(value: &str, index: usize) -> Node {
    let origin = Origin::Override(index);
    match DeValue::parse(value.trim()) {
        Ok(parsed) if !matches!(parsed.get_ref(), DeValue::Datetime(_)) => {
            tree::of_override(&parsed, index)
        }
        _ => Node::string(origin, value),
    }
}

impl Source {
    fn clone_without_root(&self) -> Self {
        Self {
            text: self.text.clone(),
            file: self.file.clone(),
            overrides: self.overrides.clone(),
            root: Node::new(Origin::File(0), Value::Boolean(false)),
        }
    }

    fn table(&self) -> &Table {
        self.root.as_table().expect("the root is a table")
    }

    fn root_table(&mut self) -> &mut Table {
        self.root.as_table_mut().expect("the root is a table")
    }

    fn refused(&self, mut findings: Vec<Finding>) -> ScenarioError {
        findings.sort();
        let more = findings.len().saturating_sub(LISTED);
        let problems = findings.into_iter().take(LISTED).map(|finding| Problem {
            place: self.place(finding.origin),
            key: finding.key,
            condition: finding.condition,
            found: finding.found,
            allowed: finding.allowed,
        });
        let problems = problems.collect();
        ScenarioError::Refused { file: self.file.clone(), problems, more }
    }

    fn place(&self, origin: Origin) -> Place {
        match origin {
            Origin::File(offset) => place_in(&self.text, offset),
            Origin::Override(index) => Place::Override(self.overrides[index].clone()),
        }
    }
}

/// Line and column, from 1, of a byte offset.
fn place_in(text: &str, offset: usize) -> Place {
    let offset = text.floor_char_boundary(offset);
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    Place::File { line, column: before[start..].chars().count() + 1 }
}

fn not_toml(text: &str, file: Option<PathBuf>, errors: &[toml::de::Error]) -> ScenarioError {
    let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    let mut errors: Vec<&toml::de::Error> = errors.iter().collect();
    errors.sort_by_key(|error| start(error));
    let problems = errors.iter().take(LISTED).map(|error| Problem {
        place: place_in(text, start(error)),
        key: String::new(),
        condition: None,
        found: tree::beginning(error.message(), 200),
        allowed: "TOML".to_owned(),
    });
    let problems = problems.collect();
    ScenarioError::Refused { file, problems, more: errors.len().saturating_sub(LISTED) }
}
