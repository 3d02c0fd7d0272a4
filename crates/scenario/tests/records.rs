//! The records on disk, read back.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::collections::BTreeMap;
use std::path::Path;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use wakeai_scenario::figures::RttHistogram;
use wakeai_scenario::records::{
    AirKind, AirOf, AirtimeRow, EventKind, EventRow, Host, Manifest, Queue, QueueRow, Records,
    SampleRow, Way,
};
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
        simulated: None,
        reservation: None,
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
        drops: None,
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
        let (cwnd, k_us) = (u32::MAX - number, number.checked_sub(50_000));
        let row = SampleRow { at_ns, flow, cwnd, k_us, ..SampleRow::default() };
        records.sample(row).unwrap();
    }
    let kind = EventKind::Error;
    let event = EventRow { at_ns: 5, flow: 1, connection: 0, kind, value: 3, cwnd: 10 };
    records.event(event).unwrap();
    for queue in [Queue::Station(1), Queue::AccessPoint] {
        records.queue(QueueRow { at_ns: 6, queue, packets: 7 }).unwrap();
    }
    for of in [AirOf::Down(0), AirOf::All] {
        let kind = AirKind::TcpAck;
        records.airtime(AirtimeRow { at_ns: 8, of, kind, air_ns: 9 }).unwrap();
    }
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

const ALL: [&str; 8] = [
    "airtime.parquet",
    "events.parquet",
    "flows.parquet",
    "queues.parquet",
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
    let queues = rows(&directory.join("queues.parquet")).join("\n");
    let airtime = rows(&directory.join("airtime.parquet")).join("\n");
    let (events, flows) = (events.join("\n"), flows.join("\n"));
    insta::assert_snapshot!(format!(
        "last sample\n{last}\n\nevents\n{events}\n\nflows\n{flows}\n\nqueues\n{queues}\n\n\
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
        let mut records = Records::create(directory.path(), &scenario, manifest()).unwrap();
        records.begin_run("default", 0, &scenario.expand(7));
        records.sample(SampleRow::default()).unwrap();
    }
    assert_eq!(names(directory.path()), ALL);
    assert_eq!(std::fs::read(directory.path().join("samples.parquet")).unwrap(), before);
}

/// Records with a capture of two stations, `packets` at the first, not finished yet.
fn captured(directory: &Path, packets: u64) -> Records {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut records = Records::create(directory, &scenario, manifest()).unwrap();
    let mut run = records.capture().unwrap().run("default", 0, ["tablet1", "tablet2"]).unwrap();
    for at in 0..packets {
        run.packet(Host::Station(0), at, Way::In, &[0; 40], 1_500);
    }
    run.finish().unwrap();
    records
}

fn empty_report() -> Report {
    let text = |text: &str| text.to_owned();
    Report { scenario: text("x"), world: text("sim"), version: text("0"), seed: 1, runs: vec![] }
}

#[test]
fn captures_replace_those_of_the_same_run_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let pcap = directory.path().join("pcap");
    std::fs::create_dir_all(pcap.join("default-0")).unwrap();
    let others = [pcap.join("own.pcapng"), pcap.join("default-0/notes.txt")];
    let stale = pcap.join("default-0/tablet3.pcapng");
    for path in others.iter().chain([&stale]) {
        std::fs::write(path, "before").unwrap();
    }
    drop(captured(directory.path(), 10));
    assert!(stale.exists() && !directory.path().join(".pcap.partial").exists());
    captured(directory.path(), 10).finish(&empty_report()).unwrap();
    assert!(others.iter().all(|path| std::fs::read(path).unwrap() == b"before"));
    let mut all = names(&pcap.join("default-0"));
    all.sort();
    assert_eq!(all, ["notes.txt", "server.pcapng", "tablet1.pcapng", "tablet2.pcapng"]);
    assert!(!directory.path().join(".pcap.partial").exists());
}

#[test]
fn captures_are_whole_also_where_they_are_larger_than_what_is_kept_of_them() {
    let directory = tempfile::tempdir().unwrap();
    captured(directory.path(), 5_000).finish(&empty_report()).unwrap();
    let length = |host: &str| {
        let path = directory.path().join(format!("pcap/default-0/{host}.pcapng"));
        std::fs::metadata(path).unwrap().len()
    };
    // A packet has 32 bytes of block, its own 40, and 12 of options.
    assert_eq!(length("tablet1") - length("tablet2"), 5_000 * (32 + 40 + 12));
}

#[test]
fn a_capture_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut records = Records::create(directory.path(), &scenario, manifest()).unwrap();
    let mut run = records.capture().unwrap().run("default", 0, ["tablet1"]).unwrap();
    std::fs::remove_file(directory.path().join(".pcap.partial/default-0/tablet1.pcapng")).unwrap();
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
