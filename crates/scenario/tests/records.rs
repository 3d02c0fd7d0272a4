//! The records on disk, read back.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::collections::BTreeMap;
use std::path::Path;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use wakeai_scenario::figures::RttHistogram;
use wakeai_scenario::records::{EventKind, EventRow, Manifest, Records, SampleRow};
use wakeai_scenario::result::{ErrorCounts, Measured, MeasuredFlow, Report, Run};
use wakeai_scenario::{Direction, Expanded, FlowKind, Scenario};
use wakeai_units::{Bytes, Duration};

const SCENARIO: &str = r#"
    name = "records"
    duration = "10s"
    access_point = { standard = "802.11n" }
    stations = [{ name = "tablet", count = 2 }]
    flows = [{ from = "tablet", to = "server" }]
"#;

fn manifest() -> Manifest {
    Manifest {
        version: "0.1.0".to_owned(),
        world: "sim".to_owned(),
        scenario: "records".to_owned(),
        seed: 7,
        repeat: 1,
        conditions: vec!["default".to_owned()],
    }
}

fn run(expanded: &Expanded) -> Run {
    let flow = |station| MeasuredFlow {
        station,
        direction: Direction::Up,
        kind: FlowKind::Tcp,
        algorithm: Some("cubic".to_owned()),
        bytes: Bytes::new(12_500_000),
        bytes_after_warmup: Bytes::new(12_500_000),
        start: Duration::ZERO,
        completion: None,
        retransmits: 3,
        timeouts: 0,
        avr: None,
    };
    Run::new(&Measured {
        condition: "default",
        repeat: 0,
        warmup: Duration::ZERO,
        end: Duration::from_secs(10),
        wall_s: 10.0,
        stations: &expanded.stations,
        flows: &[flow(0), flow(1)],
        rtt: &RttHistogram::new(),
        errors: ErrorCounts::default(),
        maxima: &BTreeMap::new(),
        lateness: None,
    })
}

fn write(directory: &Path, samples: u32) {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let expanded = scenario.expand(7);
    let mut records = Records::create(directory, &scenario, manifest()).unwrap();
    records.begin_run("default", 0, &expanded);
    for number in 0..samples {
        let flow = number % 2;
        let at_ns = u64::from(number) * 1_000_000;
        let row = SampleRow { at_ns, flow, cwnd: u32::MAX - number, ..SampleRow::default() };
        records.sample(row).unwrap();
    }
    let kind = EventKind::Error;
    let event = EventRow { at_ns: 5, flow: 1, connection: 0, kind, value: 3, cwnd: 10 };
    records.event(event).unwrap();
    let run = run(&expanded);
    records.end_run(&run).unwrap();
    let report = Report {
        scenario: "records".to_owned(),
        world: "sim".to_owned(),
        version: "0.1.0".to_owned(),
        seed: 7,
        runs: vec![run],
    };
    records.finish(&report).unwrap();
}

/// The rows of a file, each as `column: value` pairs.
fn rows(path: &Path) -> Vec<String> {
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries.map(|entry| name(entry).into_string().unwrap()).collect();
    names.sort();
    names
}

const ALL: [&str; 6] = [
    "events.parquet",
    "flows.parquet",
    "result.json",
    "run.json",
    "samples.parquet",
    "scenario.toml",
];

#[test]
fn what_was_written_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("made/on/the/way");
    write(&directory, 100_000);
    assert_eq!(names(&directory), ALL);

    let samples = rows(&directory.join("samples.parquet"));
    assert_eq!(samples.len(), 100_000);
    let events = rows(&directory.join("events.parquet"));
    let flows = rows(&directory.join("flows.parquet"));
    let manifest = std::fs::read_to_string(directory.join("run.json")).unwrap();
    let last = &samples[99_999];
    let (events, flows) = (events.join("\n"), flows.join("\n"));
    insta::assert_snapshot!(format!(
        "last sample\n{last}\n\nevents\n{events}\n\nflows\n{flows}\n\nrun.json\n{manifest}"
    ));

    let scenario = Scenario::load(&directory.join("scenario.toml")).unwrap();
    assert_eq!(*scenario, *Scenario::parse(SCENARIO).unwrap());
    let result = std::fs::read_to_string(directory.join("result.json")).unwrap();
    let report: Report = serde_json::from_str(&result).unwrap();
    assert_eq!(report.runs.len(), 1);
}

#[test]
fn records_that_are_not_finished_leave_the_earlier_ones_alone() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 10);
    let before = std::fs::read(directory.path().join("samples.parquet")).unwrap();
    {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let mut records = Records::create(directory.path(), &scenario, manifest()).unwrap();
        records.begin_run("default", 0, &scenario.expand(7));
        records.sample(SampleRow::default()).unwrap();
    }
    assert_eq!(names(directory.path()), ALL);
    assert_eq!(std::fs::read(directory.path().join("samples.parquet")).unwrap(), before);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let error = Records::create(&file.path().join("out"), &scenario, manifest()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&file.path().display().to_string()), "{text}");
    assert!(text.contains("--out"), "{text}");
}

#[test]
fn equal_runs_write_equal_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one"), directory.path().join("two"));
    write(&one, 40_000);
    write(&two, 40_000);
    for name in ALL {
        let same = std::fs::read(one.join(name)).unwrap() == std::fs::read(two.join(name)).unwrap();
        assert!(same, "{name}");
    }
}

#[test]
fn records_can_be_written_from_another_thread() {
    fn sendable<T: Send>() {}
    sendable::<Records>();
}
