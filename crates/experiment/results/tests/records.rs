//! Tests of the records on disk.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::collections::BTreeMap;
use std::path::Path;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use wakeai_connection::{ErrorCode, EventKind, Figures};
use wakeai_results::records::{
    AirKind, AirOf, AirtimeRow, EventRow, GoodputRow, Host, Manifest, Output, Queue, QueueRow,
    Records, RecordsError, Row, RowEvent, SampleRow, Way,
};
use wakeai_results::result::{ErrorCounts, MeasuredFlow, Outcome, Report, Run};
use wakeai_scenario::{Direction, Expanded, FlowKind, Scenario};
use wakeai_units::{Bytes, Duration, Segments};

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

fn run(scenario: &Scenario, expanded: &Expanded) -> Run {
    let flow = |station| MeasuredFlow {
        station,
        direction: Direction::Up,
        kind: FlowKind::Tcp,
        algorithm: Some("cubic".to_owned()),
        bytes: Bytes::new(12_500_000),
        bytes_after_warmup: Bytes::new(12_500_000),
        bytes_in_second_half: Bytes::new(6_250_000),
        start: Duration::ZERO,
        completion: None,
        retransmits: Some(3),
        timeouts: Some(0),
        avr: None,
        simulated: None,
        reservation: None,
    };
    let outcome = Outcome {
        stations: expanded.stations.clone(),
        end: Duration::from_secs(10),
        flows: vec![flow(0), flow(1)],
        rtt: Vec::new(),
        errors: Some(ErrorCounts::default()),
        lateness: None,
        packets_digest: None,
        frames: None,
        drops: None,
        wall_s: None,
        field: None,
    };
    Run::new(&scenario.conditions()[0], 0, 10.0, &BTreeMap::new(), &outcome)
}

/// The output in `directory`, where an earlier result may be replaced.
fn forced(directory: &Path) -> Output {
    Output { force: true, ..Output::from(directory) }
}

fn write(output: impl Into<Output>, samples: u32) {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let expanded = scenario.expand(7);
    let mut records = Records::create(output, &scenario, manifest()).unwrap();
    records.begin_run("default", 0, &expanded);
    for number in 0..samples {
        let flow = number % 2;
        let at_ns = u64::from(number) * 1_000_000;
        let cwnd = Segments::new(u32::MAX - number);
        let k = number.checked_sub(50_000).map(|us| Duration::from_micros(u64::from(us)));
        let figures = Figures { cwnd, k, ..Figures::default() };
        let row = SampleRow { at_ns, flow, figures, ..SampleRow::default() };
        records.row(Row::Sample(row)).unwrap();
    }
    let event = RowEvent::Connection(EventKind::Error(ErrorCode::DuplicateAck));
    let event = EventRow { at_ns: 5, flow: 1, connection: 0, event, cwnd: Segments::new(10) };
    records.row(Row::Event(event)).unwrap();
    let row = GoodputRow { at_ns: 100_000_000, interval_ns: 50_000_000, flow: 1, bytes: 250_000 };
    records.row(Row::Goodput(row)).unwrap();
    for queue in [Queue::Station(1), Queue::AccessPoint] {
        records.row(Row::Queue(QueueRow { at_ns: 6, queue, packets: 7 })).unwrap();
    }
    for of in [AirOf::Down(0), AirOf::All] {
        let kind = AirKind::TcpAck;
        records.row(Row::Airtime(AirtimeRow { at_ns: 8, of, kind, air_ns: 9 })).unwrap();
    }
    let run = run(&scenario, &expanded);
    records.end_run(&run).unwrap();
    let report = Report {
        scenario: "records".to_owned(),
        world: "sim".to_owned(),
        version: "0.1.0".to_owned(),
        seed: 7,
        runs: vec![run],
        guest: None,
        failed: None,
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

const ALL: [&str; 10] = [
    "airtime.parquet",
    "events.parquet",
    "flows.parquet",
    "goodput.parquet",
    "queues.parquet",
    "result.json",
    "run.json",
    "samples.parquet",
    "scenario.toml",
    "wakeai.files",
];

#[test]
fn what_was_written_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("made/on/the/way");
    write(directory.as_path(), 100_000);
    assert_eq!(names(&directory), ALL);

    let samples = rows(&directory.join("samples.parquet"));
    assert_eq!(samples.len(), 100_000);
    let events = rows(&directory.join("events.parquet"));
    let flows = rows(&directory.join("flows.parquet"));
    let manifest = std::fs::read_to_string(directory.join("run.json")).unwrap();
    let last = &samples[99_999];
    let goodput = rows(&directory.join("goodput.parquet")).join("\n");
    let queues = rows(&directory.join("queues.parquet")).join("\n");
    let airtime = rows(&directory.join("airtime.parquet")).join("\n");
    let (events, flows) = (events.join("\n"), flows.join("\n"));
    insta::assert_snapshot!(format!(
        "last sample\n{last}\n\nevents\n{events}\n\nflows\n{flows}\n\ngoodput\n{goodput}\n\nqueues\n{queues}\n\n\
         airtime\n{airtime}\n\nrun.json\n{manifest}"
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
        let output = forced(directory.path());
        let mut records = Records::create(output, &scenario, manifest()).unwrap();
        records.begin_run("default", 0, &scenario.expand(7));
        records.row(Row::Sample(SampleRow::default())).unwrap();
    }
    assert_eq!(names(directory.path()), ALL);
    assert_eq!(std::fs::read(directory.path().join("samples.parquet")).unwrap(), before);
}

/// Unfinished records with a capture of two stations, and `packets` packets at the first.
fn captured(output: impl Into<Output>, packets: u64) -> Records {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut records = Records::create(output, &scenario, manifest()).unwrap();
    let mut run = records.capture().unwrap().run("default", 0, ["tablet1", "tablet2"]).unwrap();
    for at in 0..packets {
        run.packet(Host::Station(0), at, Way::In, &[0; 40], 1_500);
    }
    run.finish().unwrap();
    records
}

fn empty_report() -> Report {
    let text = |text: &str| text.to_owned();
    Report {
        scenario: text("x"),
        world: text("sim"),
        version: text("0"),
        seed: 1,
        runs: vec![],
        guest: None,
        failed: None,
    }
}

#[test]
fn a_result_is_replaced_with_all_its_captures_and_nothing_else_is() {
    let directory = tempfile::tempdir().unwrap();
    let pcap = directory.path().join("pcap");
    captured(directory.path(), 10).finish(&empty_report()).unwrap();
    let others = [pcap.join("own.pcapng"), directory.path().join("notes.txt")];
    for path in &others {
        std::fs::write(path, "mine").unwrap();
    }
    drop(captured(forced(directory.path()), 10));
    assert_eq!(names(&pcap.join("default-0")).len(), 3, "the new records were not finished");

    write(forced(directory.path()), 10);
    assert_eq!(names(&pcap), ["own.pcapng"], "the new result has no captures");
    assert!(others.iter().all(|path| std::fs::read(path).unwrap() == b"mine"));
    let theirs = ["notes.txt", "pcap"].map(str::to_owned);
    let mut expected: Vec<_> = ALL.map(str::to_owned).into_iter().chain(theirs).collect();
    expected.sort();
    assert_eq!(names(directory.path()), expected);
    captured(forced(directory.path()), 10).finish(&empty_report()).unwrap();
    let captures = ["server.pcapng", "tablet1.pcapng", "tablet2.pcapng"];
    assert_eq!(names(&pcap.join("default-0")), captures);
}

fn refused(output: impl Into<Output>) -> RecordsError {
    let error = Records::create(output, &Scenario::parse(SCENARIO).unwrap(), manifest());
    let error = error.unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("--out"), "{error}");
    error
}

#[test]
fn an_earlier_result_is_replaced_where_that_is_wanted_alone() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 10);
    let before = std::fs::read(directory.path().join("samples.parquet")).unwrap();
    let error = refused(directory.path());
    assert!(matches!(error, RecordsError::Earlier(_)), "{error}");
    assert!(error.to_string().contains("--force"), "{error}");
    assert_eq!(names(directory.path()), ALL);
    assert_eq!(std::fs::read(directory.path().join("samples.parquet")).unwrap(), before);
    write(forced(directory.path()), 20);
    assert_eq!(rows(&directory.path().join("samples.parquet")).len(), 20);
}

#[test]
fn force_replaces_only_an_earlier_result() {
    for name in ALL {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        for way in ["beside a result", "alone", "as a link", "as a directory"] {
            let _ = std::fs::remove_file(&path);
            match way {
                "beside a result" => {
                    write(directory.path(), 10);
                    std::fs::write(&path, "mine").unwrap();
                }
                "alone" => {
                    for name in ALL {
                        let _ = std::fs::remove_file(directory.path().join(name));
                    }
                    std::fs::write(&path, "mine").unwrap();
                }
                "as a link" => std::os::unix::fs::symlink("nowhere", &path).unwrap(),
                _ => std::fs::create_dir(&path).unwrap(),
            }
            let before = names(directory.path());
            for output in [forced(directory.path()), directory.path().into()] {
                let error = refused(output.clone());
                let is_known = matches!(error, RecordsError::Foreign(_))
                    || (!output.force && matches!(error, RecordsError::Earlier(_)));
                assert!(is_known, "{name} {way}: {error}");
            }
            assert_eq!(names(directory.path()), before, "{name} {way}");
            if path.is_file() {
                assert_eq!(std::fs::read(&path).unwrap(), b"mine", "{name} {way}");
            }
        }
    }
}

#[test]
fn captures_replace_nothing_of_somebody_elses() {
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path().join("pcap/default-0");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("tablet1.pcapng"), "mine").unwrap();
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut records = Records::create(forced(directory.path()), &scenario, manifest()).unwrap();
    let error = records.capture().unwrap_err();
    assert!(matches!(error, RecordsError::Foreign(_)), "{error}");
    drop(records);
    assert_eq!(names(directory.path()), ["pcap"]);
}

#[test]
fn the_scenario_that_is_run_is_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 10);
    let path = directory.path().join("scenario.toml");
    let elsewhere = directory.path().join("link.toml");
    std::os::unix::fs::symlink(&path, &elsewhere).unwrap();
    let before = std::fs::read(&path).unwrap();
    for scenario in [&path, &elsewhere] {
        let error =
            refused(Output { scenario: Some(scenario.clone()), ..forced(directory.path()) });
        assert!(matches!(error, RecordsError::Input(_)), "{error}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_that_appears_meanwhile_stays_and_the_result_is_aside() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 10);
    let earlier = std::fs::read(directory.path().join("samples.parquet")).unwrap();
    for kept in ["result-1", "result-2"] {
        let records = captured(forced(directory.path()), 10);
        std::fs::write(directory.path().join("flows.parquet"), "mine").unwrap();
        let error = records.finish(&empty_report()).unwrap_err();
        assert!(!error.is_usage() && error.to_string().contains(kept), "{error}");
        let mut all: Vec<_> = ALL.to_vec();
        all.insert(4, "pcap");
        assert_eq!(names(&directory.path().join(kept)), all);
        assert_eq!(std::fs::read(directory.path().join("flows.parquet")).unwrap(), b"mine");
        let now = std::fs::read(directory.path().join("samples.parquet")).unwrap();
        assert!(now == earlier, "the earlier result is back");
        assert!(!directory.path().join(".wakeai.partial").exists());
        assert!(!directory.path().join("pcap").exists());
        for name in ALL {
            std::fs::remove_file(directory.path().join(name)).unwrap();
        }
        write(directory.path(), 10);
    }
}

#[test]
fn two_runs_do_not_write_to_one_directory() {
    let directory = tempfile::tempdir().unwrap();
    let partial = directory.path().join(".wakeai.partial");
    let records = captured(directory.path(), 10);
    assert!(matches!(refused(directory.path()), RecordsError::Busy(_)));
    drop(records);
    assert!(!partial.exists());
    // These are files as a killed process leaves them.
    std::fs::create_dir_all(partial.join("pcap")).unwrap();
    for name in ["lock", "samples.parquet", "pcap/server.pcapng"] {
        std::fs::write(partial.join(name), "half").unwrap();
    }
    write(directory.path(), 10);
    assert_eq!(names(directory.path()), ALL);
    // Wakeai did not make this directory, which has the same name.
    let directory = tempfile::tempdir().unwrap();
    let partial = directory.path().join(".wakeai.partial");
    std::fs::create_dir(&partial).unwrap();
    std::fs::write(partial.join("notes"), "mine").unwrap();
    assert!(matches!(refused(directory.path()), RecordsError::Foreign(_)));
    assert!(partial.join("notes").exists());
}

#[test]
fn directories_that_were_made_for_nothing_go_again() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("results/today/one");
    drop(captured(out.as_path(), 10));
    assert!(names(directory.path()).is_empty());
    std::fs::create_dir(directory.path().join("results")).unwrap();
    drop(captured(out.as_path(), 10));
    assert_eq!(names(directory.path()), ["results"]);
}

#[test]
fn what_is_no_directory_is_refused_and_a_link_to_one_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("file"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
    for name in ["file", "file/below", "dangling", "dangling/below"] {
        let error = refused(path(name).as_path());
        assert!(matches!(error, RecordsError::NotADirectory { .. }), "{name}: {error}");
    }
    assert_eq!(names(directory.path()), ["dangling", "file"]);
    std::fs::create_dir(path("real")).unwrap();
    std::os::unix::fs::symlink("real", path("link")).unwrap();
    write(path("link").as_path(), 10);
    assert_eq!(names(&path("real")), ALL);
}

#[test]
fn captures_larger_than_their_buffer_are_complete() {
    let directory = tempfile::tempdir().unwrap();
    captured(directory.path(), 5_000).finish(&empty_report()).unwrap();
    let length = |host: &str| {
        let path = directory.path().join(format!("pcap/default-0/{host}.pcapng"));
        std::fs::metadata(path).unwrap().len()
    };
    // A packet of 40 bytes takes 32 bytes more for its block and 12 for its options.
    assert_eq!(length("tablet1") - length("tablet2"), 5_000 * (32 + 40 + 12));
}

#[test]
fn a_capture_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut records = Records::create(directory.path(), &scenario, manifest()).unwrap();
    let mut run = records.capture().unwrap().run("default", 0, ["tablet1"]).unwrap();
    std::fs::remove_file(directory.path().join(".wakeai.partial/pcap/default-0/tablet1.pcapng"))
        .unwrap();
    for at in 0..5_000 {
        run.packet(Host::Station(0), at, Way::Out, &[0; 40], 40);
    }
    let text = run.finish().unwrap_err().to_string();
    assert!(text.contains("tablet1.pcapng") && text.contains("--out"), "{text}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let error =
        Records::create(file.path().join("out").as_path(), &scenario, manifest()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&file.path().display().to_string()), "{text}");
    assert!(text.contains("--out"), "{text}");
}

#[test]
fn equal_runs_write_equal_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one"), directory.path().join("two"));
    write(one.as_path(), 40_000);
    write(two.as_path(), 40_000);
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

#[test]
fn every_column_and_file_is_in_the_reference() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/records.md");
    let page = std::fs::read_to_string(page).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let scenario = Scenario::parse(SCENARIO).unwrap();
    Records::create(directory.path(), &scenario, manifest())
        .unwrap()
        .finish(&empty_report())
        .unwrap();
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
