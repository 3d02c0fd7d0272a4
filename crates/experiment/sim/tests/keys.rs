//! Every key of the reference page has an effect in the simulator, or the user is told that it has
//! none.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

mod common;
#[path = "../../scenario/tests/every_key/mod.rs"]
mod every_key;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use common::report;
use every_key::{Effect, cases, page};
use serde_json::Value;
use wakeai_scenario::Scenario;
use wakeai_world::{Options, Progress};

/// The result as the user gets it, but without its real times, and without what follows from the runs.
fn result(scenario: &Scenario) -> Value {
    let report = report(scenario, &Options::default());
    let mut result: Value = serde_json::from_str(&report.to_json()).unwrap();
    result.as_object_mut().unwrap().remove("aggregates").unwrap();
    result
}

/// The keys in which two results differ. Entries of a list are not distinguished.
fn differences(a: &Value, b: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    compare("", a, b, &mut found);
    found
}

fn compare(path: &str, a: &Value, b: &Value, found: &mut BTreeSet<String>) {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).for_each(|(a, b)| compare(&format!("{path}[]"), a, b, found));
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for (key, a) in a {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, a, &b[key], found);
            }
        }
        _ if a == b => {}
        _ => found.extend([path.to_owned()]),
    }
}

/// The simulator's notes to the user.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Progress for Notes {
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// The simulator's notes about a scenario.
fn notes(scenario: &Scenario) -> String {
    let notes = Notes::default();
    wakeai_sim::run(&Options::default(), 1, scenario, &notes).unwrap();
    notes.0.into_inner().unwrap().join("\n")
}

#[test]
fn every_key_changes_the_result() {
    let mut known = BTreeMap::<String, Value>::new();
    let mut forgotten = Vec::new();
    for case in cases() {
        let base = case.base();
        let before = known.entry(base.to_toml()).or_insert_with(|| result(&base));
        let found = differences(before, &result(&case.changed()));
        let as_said = match case.effect {
            Effect::Run => !found.is_empty(),
            Effect::Report(keys) => found.iter().eq(keys),
            Effect::Nothing => found.is_empty() && notes(&case.changed()).contains(case.set[0].0),
        };
        if !as_said {
            forgotten.push(format!("{:?} is to change {:?}: {found:?}", case.set, case.effect));
        }
    }
    assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
}

#[test]
fn the_examples_of_the_reference_run() {
    for example in page::examples() {
        let scenario = Scenario::parse(&example).unwrap();
        let set = |key: String, value: &str| (key, value.to_owned());
        let mut changes = vec![set("duration".into(), "3s"), set("warmup".into(), "1s")];
        changes.extend((1..=scenario.events.len()).map(|n| set(format!("events.{n}.at"), "2s")));
        let short = scenario.with_overrides(&changes).unwrap();
        for run in report(&short, &Options::default()).runs {
            assert!(run.total_goodput_mbps > 0.0, "{}, {}", scenario.name, run.condition);
        }
    }
}
