//! The law `airtime` over a part of the matrix, as a table.
//!
//! After a change of the law, run the whole matrix (`wakeai-validation law`) and compare all rows, because a gain in
//! one row may be a loss in another. `cargo insta review` accepts a new table.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use wakeai_validation::law::figures::is_of_the_law;
use wakeai_validation::law::{self, LawRow, Promise};

/// The settings that are run here, with one seed each. The whole matrix with five seeds takes minutes.
const SETTINGS: [&str; 11] = [
    "g-10",
    "n-4",
    "n-20",
    "ac-12",
    "n-20-tsq",
    "n-24-mac80211",
    "ac-beside-n",
    "n-near-and-far",
    "g-20-sized",
    "n-half-limited",
    "n-half-agents",
];

/// The settings about the law alone.
const ALONE: [&str; 5] =
    ["new-n-4-tsq", "new-n-10", "lie-rate-huge", "lie-hog-rate-tiny", "lie-sends-reserves"];

fn rows(names: &[&str]) -> Vec<LawRow> {
    let mut settings = law::matrix();
    settings.retain(|setting| names.contains(&setting.name));
    assert_eq!(settings.len(), names.len());
    law::figures::run(&settings, |_| true, 1, 2).unwrap()
}

#[test]
fn the_law_beside_cubic_and_the_papers_table() {
    insta::assert_snapshot!(law::table::render(&rows(&SETTINGS)));
}

#[test]
fn newcomers_and_lies() {
    insta::assert_snapshot!(law::table::render(&rows(&ALONE)));
}

#[test]
fn what_a_change_of_the_law_does_not_touch_is_kept_and_nothing_else() {
    for setting in law::matrix() {
        let scenario = wakeai_scenario::Scenario::parse(&setting.toml).unwrap();
        let (fresh, kept): (Vec<_>, Vec<_>) =
            scenario.conditions.iter().partition(|one| is_of_the_law(one));
        assert!(fresh.iter().any(|one| one.name == "airtime"), "{}", setting.name);
        let alone = setting.promise.is_of_the_law_alone();
        assert_eq!(kept.is_empty(), alone, "{}: {kept:?}", setting.name);
    }
}

#[test]
fn every_setting_is_a_scenario_and_has_a_name_of_its_own() {
    let settings = law::matrix();
    assert!(settings.len() >= 40);
    for (index, setting) in settings.iter().enumerate() {
        let scenario = wakeai_scenario::Scenario::parse(&setting.toml).unwrap();
        assert_eq!(scenario.name, setting.name);
        assert!(settings[..index].iter().all(|other| other.name != setting.name));
        let (Promise::Limited(group, _) | Promise::Beside(group)) = &setting.promise else {
            continue;
        };
        assert!(setting.count_of(group) > 0, "{}: no group {group}", setting.name);
    }
}
