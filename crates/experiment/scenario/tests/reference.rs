//! Checks that the examples of the reference page agree with the code.
#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

mod every_key;

use every_key::page::examples;
use every_key::reader;
use wakeai_scenario::Scenario;

#[test]
fn the_examples_of_the_reference_are_accepted() {
    let examples = examples();
    assert_eq!(examples.len(), 3);
    for example in examples {
        Scenario::parse(&example).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn every_key_has_a_value_in_the_last_example() {
    let example = examples().pop().unwrap();
    for table in ["", "access_point", "wired", "stations.tablet", "flows.1", "events.1"] {
        for key in reader::of_table(table, &[]) {
            let header = [format!("[{key}]"), format!("[[{key}]]"), format!("\n{key} =")];
            assert!(header.iter().any(|text| example.contains(text)), "{table}: {key}");
        }
    }
}
