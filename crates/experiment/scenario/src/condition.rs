//! The conditions that are compared: their laws, and the stations that run agents.

use wakeai_control::LawConfig;

use crate::stations::Selector;

/// A law for some stations, as in a fleet whose agents were not all updated or configured alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawRule {
    /// The stations.
    pub stations: Selector,
    /// Their law.
    pub law: LawConfig,
}

/// An entry of `[[conditions]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The name of the condition, which is unique in the file.
    pub name: String,
    /// The law of the agents; with `None` no agent runs.
    pub law: Option<LawConfig>,
    /// The stations that run an agent; empty means all.
    pub agents: Vec<Selector>,
    /// The stations with another law than the condition's.
    pub laws: Vec<LawRule>,
    /// The bounds of the law `fixed`, for some stations each.
    pub bounds: Vec<LawRule>,
    /// The path and the value of each key that `set` changes, as they are written in the file.
    pub set: Vec<(String, String)>,
}

impl Condition {
    /// A condition without a law.
    pub(crate) fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            law: None,
            agents: Vec::new(),
            laws: Vec::new(),
            bounds: Vec::new(),
            set: Vec::new(),
        }
    }
}
