//! Checks that the reference page has exactly the keys that the reader reads, and that each key can
//! be set in a file, by `--set` and by a condition's `set`.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

mod every_key;

use std::collections::BTreeSet;

use every_key::refusals::{REFUSALS, Refusal};
use every_key::{Case, cases, overridden, page, reader};
use wakeai_scenario::{Experiment, Scenario};

#[test]
fn the_reference_has_the_keys_that_are_read_and_no_others() {
    let (page, read) = (page::keys(), reader::keys());
    let missing: Vec<&String> = read.difference(&page).collect();
    assert!(missing.is_empty(), "read, and not in the reference: {missing:?}");
    let unknown: Vec<&String> = page.difference(&read).collect();
    assert!(unknown.is_empty(), "in the reference, and not read: {unknown:?}");
    assert!(page.len() > 60, "{page:?}");
}

#[test]
fn every_key_of_the_reference_has_a_case_that_changes_it() {
    let covered: BTreeSet<String> = cases().iter().map(Case::key).collect();
    let page = page::keys();
    let missing: Vec<&String> = page.difference(&covered).collect();
    assert!(missing.is_empty(), "without a case in every_key: {missing:?}");
    let unknown: Vec<&String> = covered.difference(&page).collect();
    assert!(unknown.is_empty(), "not in the reference: {unknown:?}");
}

#[test]
fn a_key_that_would_say_nothing_is_refused_by_name() {
    let plain = cases()[0].base();
    for Refusal { base, set, names } in REFUSALS {
        let base = overridden(&plain, base).unwrap_or_else(|error| panic!("{error}"));
        let Err(error) = overridden(&base, set) else { panic!("{set:?} is accepted") };
        let named = error.problems().iter().any(|problem| problem.key == *names);
        assert!(named, "{set:?} is refused without the name of {names}: {error}");
    }
}

/// The content of a scenario without its conditions.
fn run_of(scenario: &Experiment) -> Experiment {
    Experiment { conditions: Vec::new(), ..Experiment::clone(scenario) }
}

#[test]
fn what_is_set_on_the_command_line_is_what_a_file_says() {
    for case in cases() {
        let set = case.changed();
        let file = Scenario::parse(&set.to_toml()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Experiment::clone(&set), Experiment::clone(&file), "{:?}", case.set);
        assert_ne!(Experiment::clone(&set), Experiment::clone(&case.base()), "{:?}", case.set);
    }
}

#[test]
fn what_is_set_on_the_command_line_can_be_set_in_a_condition() {
    // A `set` may change neither the name nor the conditions. A table in it is read as a table of
    // paths.
    let settable = |(key, value): &(&str, &str)| {
        *key != "name" && !key.starts_with("conditions") && !value.starts_with('{')
    };
    let mut compared = 0;
    for case in cases().iter().filter(|case| case.set.iter().all(settable)) {
        let keys: Vec<(String, String)> = case
            .set
            .iter()
            .map(|(key, value)| (format!("conditions.one.set.{key}"), (*value).to_owned()))
            .collect();
        let condition = case.base().with_overrides(&keys).unwrap_or_else(|error| panic!("{error}"));
        let resolved = condition.conditions().swap_remove(0).experiment;
        assert_eq!(run_of(&resolved), run_of(&case.changed()), "{:?}", case.set);
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}
