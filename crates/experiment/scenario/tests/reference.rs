//! Checks that the reference pages agree with the code.
#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

mod every_key;

use std::path::Path;

use every_key::page::examples;
use every_key::reader;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use wakeai_scenario::Scenario;
use wakeai_scenario::records::{Manifest, Records};
use wakeai_scenario::result::Report;

fn page(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference");
    std::fs::read_to_string(docs.join(name)).unwrap()
}

#[test]
fn the_examples_of_the_reference_are_accepted() {
    let examples = examples();
    assert_eq!(examples.len(), 2);
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

#[test]
fn every_column_and_file_is_in_the_reference() {
    let page = page("records.md");
    let directory = tempfile::tempdir().unwrap();
    let scenario = Scenario::parse(&examples()[0]).unwrap();
    let text = |text: &str| text.to_owned();
    let manifest = Manifest {
        version: text("0"),
        world: text("sim"),
        scenario: text("x"),
        seed: 1,
        repeat: 1,
        conditions: Vec::new(),
    };
    let report = Report {
        scenario: text("x"),
        world: text("sim"),
        version: text("0"),
        seed: 1,
        runs: vec![],
        failed: None,
    };
    Records::create(directory.path(), &scenario, manifest).unwrap().finish(&report).unwrap();
    let mut columns = 0;
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(page.contains(&format!("`{name}`")), "{name}");
        if name.ends_with(".parquet") {
            let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
            for column in reader.metadata().file_metadata().schema_descr().columns() {
                assert!(
                    page.contains(&format!("`{}`", column.name())),
                    "{name}: {}",
                    column.name()
                );
                columns += 1;
            }
        }
    }
    assert!(columns > 40, "{columns}");
}
