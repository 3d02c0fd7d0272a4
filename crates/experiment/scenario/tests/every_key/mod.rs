//! The keys of a scenario: those that the reference page lists, those that are read, and for each
//! key a change that must have an effect. The tests of every crate that handles keys share this
//! module.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

mod access_point;
mod bss;
mod conditions;
mod flows;
pub(crate) mod page;
pub(crate) mod reader;
pub(crate) mod refusals;
mod run;
mod stations;

use wakeai_scenario::{Scenario, ScenarioError};

/// The scenario of every case: two stations send, a third receives. It states their solo goodputs,
/// so that no solo runs are made, and any difference comes from the run itself.
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

/// Settings as of `--set KEY=VALUE`, in their order.
pub(crate) type Settings = &'static [(&'static str, &'static str)];

/// The effect of a key on a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The key changes the run itself, and so its figures.
    Run,
    /// The key changes only these keys of the result (docs/reference/scenario.md).
    Report(&'static [&'static str]),
    /// The key changes nothing. The reference says that this world (the simulator or the lab)
    /// ignores it, and the world tells the user.
    Nothing,
}

/// One change that must have an effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// The settings of the scenario before the change.
    pub(crate) base: Settings,
    /// The change: first the key of the case, then the keys that have to change with it.
    pub(crate) set: Settings,
    /// The effect of the change in the simulator.
    pub(crate) effect: Effect,
}

impl Case {
    /// A change that affects the run.
    const fn run(base: Settings, set: Settings) -> Self {
        Self { base, set, effect: Effect::Run }
    }

    /// The key that the case is for, written as in [`page::keys`].
    pub(crate) fn key(&self) -> String {
        key_of_path(self.set[0].0)
    }

    /// The scenario before the change.
    pub(crate) fn base(&self) -> Scenario {
        overridden(&Scenario::parse(BASE).unwrap(), self.base)
            .unwrap_or_else(|error| panic!("{:?}: {error}", self.base))
    }

    /// The scenario with the change.
    pub(crate) fn changed(&self) -> Scenario {
        overridden(&self.base(), self.set).unwrap_or_else(|error| panic!("{:?}: {error}", self.set))
    }
}

/// `scenario` with `settings` applied, as `--set` applies them.
pub(crate) fn overridden(
    scenario: &Scenario,
    settings: Settings,
) -> Result<Scenario, ScenarioError> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    scenario.with_overrides(&settings.iter().map(owned).collect::<Vec<_>>())
}

/// All changes, in the order of the page.
pub(crate) fn cases() -> Vec<Case> {
    [run::CASES, access_point::CASES, bss::CASES, stations::CASES, flows::CASES, conditions::CASES]
        .concat()
}

/// A path of `--set` without the names and numbers of entries: `stations.tablet.queue` becomes
/// `stations[].queue`.
fn key_of_path(path: &str) -> String {
    let mut key = String::new();
    let mut parts = path.split('.');
    while let Some(part) = parts.next() {
        if !key.is_empty() {
            key.push('.');
        }
        key.push_str(part);
        if ["bss", "stations", "flows", "events", "conditions", "bounds", "laws"].contains(&part)
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
