//! The keys of a scenario: those of the reference page, those that are read, and for each a change
//! that must have an effect. Shared by the tests of every crate that a key goes through.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

mod access_point;
mod conditions;
mod flows;
pub(crate) mod page;
pub(crate) mod reader;
pub(crate) mod refusals;
mod run;
mod stations;

use wakeai_scenario::{Scenario, ScenarioError};

/// The scenario of every case: two stations send, a third receives. Their solo goodputs are given,
/// so that a difference is one of the run itself.
const BASE: &str = r#"
name = "keys"
duration = "3s"

[access_point]
standard = "802.11n"

[[stations]]
name = "tablet"
count = 2
max = "40Mbit/s"

[[stations]]
name = "phone"
max = "40Mbit/s"

[[flows]]
from = "tablet"
to = "server"

[[flows]]
from = "server"
to = "phone"

[[conditions]]
name = "one"
"#;

/// `--set KEY=VALUE`, in order.
pub(crate) type Settings = &'static [(&'static str, &'static str)];

/// The effect of a key on a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes the run itself, and so its figures.
    Run,
    /// It changes only the report: these keys of the result and no others, see
    /// docs/reference/scenario.md.
    Report(&'static [&'static str]),
    /// It changes nothing: the reference says so of this world, and the world tells the user.
    Nothing,
}

/// One change that must have an effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// The settings beforehand.
    pub(crate) base: Settings,
    /// The change: the key of the case, then the keys that have to change with it.
    pub(crate) set: Settings,
    /// The effect of the change in the simulator.
    pub(crate) effect: Effect,
}

impl Case {
    /// A change that affects the run.
    const fn run(base: Settings, set: Settings) -> Self {
        Self { base, set, effect: Effect::Run }
    }

    /// The key that it is for, as in [`page::keys`].
    pub(crate) fn key(&self) -> String {
        key_of_path(self.set[0].0)
    }

    /// The scenario with which it is compared.
    pub(crate) fn base(&self) -> Scenario {
        overridden(&Scenario::parse(BASE).unwrap(), self.base)
            .unwrap_or_else(|error| panic!("{:?}: {error}", self.base))
    }

    /// With the change.
    pub(crate) fn changed(&self) -> Scenario {
        overridden(&self.base(), self.set).unwrap_or_else(|error| panic!("{:?}: {error}", self.set))
    }
}

/// `scenario` with `settings`, as `--set` makes it.
pub(crate) fn overridden(
    scenario: &Scenario,
    settings: Settings,
) -> Result<Scenario, ScenarioError> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    scenario.with_overrides(&settings.iter().map(owned).collect::<Vec<_>>())
}

/// All changes, in the order of the page.
pub(crate) fn cases() -> Vec<Case> {
    [run::CASES, access_point::CASES, stations::CASES, flows::CASES, conditions::CASES].concat()
}

/// A path of `--set` without the names and numbers of entries: `stations.tablet.queue` is
/// `stations[].queue`.
fn key_of_path(path: &str) -> String {
    let mut key = String::new();
    let mut parts = path.split('.');
    while let Some(part) = parts.next() {
        if !key.is_empty() {
            key.push('.');
        }
        key.push_str(part);
        if ["stations", "flows", "events", "conditions", "bounds"].contains(&part)
            && parts.clone().next().is_some()
        {
            parts.next();
            if parts.clone().next().is_some() {
                key.push_str("[]");
            }
        }
    }
    key
}
