//! Tests of results of real machines: what is unknown, which runs count, and what changed between the conditions.
#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::collections::BTreeMap;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use wakeai_results::air::between_conditions;
use wakeai_results::records::{Manifest, Records};
use wakeai_results::result::{
    ErrorCounts, FieldRun, FieldStation, MeasuredFlow, Outcome, RadioMeans, RadioReading, Report,
    Run,
};
use wakeai_results::table::{self, Layout};
use wakeai_scenario::{Direction, FlowKind, Scenario};
use wakeai_units::{Bytes, Duration};

fn scenario() -> Scenario {
    Scenario::parse(
        "name = \"real\"\nduration = \"10s\"\naccess_point.standard = \"802.11n\"\n\
         stations = [{ name = \"tablet\", count = 2 }]\nflows = [{ from = \"tablet\", to = \"server\" }]\n\
         conditions = [{ name = \"default\" }, { name = \"airtime\" }]",
    )
    .unwrap()
}

fn station(name: &str) -> FieldStation {
    FieldStation {
        station: name.to_owned(),
        counts: true,
        delivered_bytes: 1_500_000,
        before: Some(RadioReading {
            bssid: Some("a".to_owned()),
            frequency_mhz: Some(5_180),
            signal_dbm: Some(-60),
            tx_mbps: Some(65.0),
            ..RadioReading::default()
        }),
        ..FieldStation::default()
    }
}

/// A run of the condition with this index, after a change to its first tablet. Its kernel was monitored, or not.
fn run(
    condition: usize,
    block: u32,
    monitored: bool,
    change: impl FnOnce(&mut FieldStation),
) -> Run {
    let scenario = scenario();
    let flow = |station, known: bool| MeasuredFlow {
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
        timeouts: known.then_some(2),
        avr: None,
        simulated: None,
        reservation: None,
    };
    let mut stations = vec![station("server"), station("tablet1"), station("tablet2")];
    change(&mut stations[1]);
    let counts = stations.iter().all(|one| one.counts);
    let outcome = Outcome {
        stations: scenario.expand_stations(),
        end: Duration::from_secs(10),
        flows: vec![flow(0, monitored), flow(1, true)],
        rtt: Vec::new(),
        errors: monitored.then(ErrorCounts::default),
        lateness: None,
        packets_digest: None,
        frames: None,
        drops: None,
        wall_s: Some(10.0),
        field: Some(FieldRun { block, counts, stations, ..FieldRun::default() }),
    };
    Run::new(&scenario.conditions()[condition], block, 10.0, &BTreeMap::new(), &outcome)
}

fn report(runs: Vec<Run>) -> Report {
    Report {
        scenario: "real".to_owned(),
        world: "field".to_owned(),
        version: "0.1.0".to_owned(),
        seed: 1,
        runs,
        guest: None,
        failed: None,
    }
}

#[test]
fn what_a_machine_without_root_does_not_know_is_null_in_json_tables_and_parquet() {
    let report = report(vec![run(0, 0, false, |_| {})]);
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    for code in ["reordering", "local_overflow", "duplicate_ack", "timeout"] {
        let found = json.pointer(&format!("/runs/0/errors/{code}"));
        assert_eq!(found, Some(&serde_json::Value::Null), "{code}");
        assert!(json["aggregates"][0]["figures"][format!("errors.{code}")].is_null());
    }
    assert!(json["aggregates"][0]["figures"]["timeouts"].is_null(), "one of two is unknown");
    assert!(json["runs"][0]["flows"][0]["timeouts"].is_null());
    assert_eq!(json["runs"][0]["flows"][1]["timeouts"], 2);
    assert_eq!(json["runs"][0]["flows"][0]["goodput_mbps"], 10.0);
    assert_eq!(Report::from_json(&report.to_json()).unwrap(), report);

    let text = table::render(&report, Layout { wide: true, ..Layout::default() });
    let row = text.lines().find(|line| line.trim_start().starts_with("default")).unwrap();
    let dashes = row.split_whitespace().rev().take_while(|cell| *cell == "-").count();
    assert_eq!(dashes, 8, "four codes, two shares of solo goodput, and round-trip times: {text}");

    let directory = tempfile::tempdir().unwrap();
    let manifest = Manifest {
        version: "0.1.0".to_owned(),
        world: "field".to_owned(),
        scenario: "real".to_owned(),
        seed: 1,
        repeat: 1,
        conditions: vec!["default".to_owned()],
    };
    let mut records = Records::create(directory.path(), &scenario(), manifest).unwrap();
    records.begin_run("default", 0, &scenario().expand(1));
    records.end_run(&report.runs[0]).unwrap();
    records.finish(&report).unwrap();
    let manifest = std::fs::read_to_string(directory.path().join("run.json")).unwrap();
    assert!(manifest.contains("wakeai field scenario.toml --machines FILE --seed 1"), "{manifest}");
    let file = std::fs::File::open(directory.path().join("flows.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<String> =
        reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
    assert!(rows[0].contains("retransmits: 3, timeouts: null"), "{}", rows[0]);
    assert!(rows[1].contains("retransmits: 3, timeouts: 2"), "{}", rows[1]);
}

#[test]
fn a_run_that_does_not_count_says_what_each_station_delivered() {
    let lost = run(0, 0, true, |tablet| {
        tablet.counts = false;
        tablet.reason = Some("its interface had no carrier for 1.0 s".to_owned());
        tablet.delivered_bytes = 200_000;
    });
    let text = table::render(&report(vec![lost, run(1, 0, true, |_| {})]), Layout::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(
            "DOES NOT COUNT: default of block 1: tablet1: its interface had no carrier for 1.0 s \
             delivered in default of block 1: tablet1 0.2 MB (does not count), tablet2 1.5 MB"
        ),
        "{text}"
    );
}

#[test]
fn what_changed_between_conditions_is_said_with_its_figures() {
    let said = |change: fn(&mut FieldStation)| {
        let mut runs = Vec::new();
        for block in 0..2 {
            runs.push(run(0, block, true, |_| {}));
            runs.push(run(1, block, true, change));
        }
        between_conditions(&runs)
    };
    assert_eq!(said(|_| {}), [""; 0]);
    assert_eq!(
        said(|tablet| tablet.before.as_mut().unwrap().signal_dbm = Some(-66)),
        ["the signal of tablet1 was -66 dBm under airtime and -60 dBm under default (-6 dB)"]
    );
    assert_eq!(
        said(|tablet| tablet.before.as_mut().unwrap().signal_dbm = Some(-62)),
        [""; 0],
        "2 dB are nothing"
    );
    // What was read in the run counts more than what was read before and after.
    assert_eq!(
        said(|tablet| {
            let means = RadioMeans {
                tx_mbps: Some(52.0),
                signal_dbm: Some(-61.0),
                ..RadioMeans::default()
            };
            tablet.during = Some(means);
            tablet.before.as_mut().unwrap().signal_dbm = Some(-90);
        }),
        [
            "the PHY rate to the access point of tablet1 was 52 Mbit/s under airtime and 65 Mbit/s under default (-20 %)"
        ]
    );
    assert_eq!(
        said(|tablet| tablet.before.as_mut().unwrap().bssid = Some("b".to_owned())),
        ["the access point of tablet1 was b under airtime and a under default in 2 of 2 blocks"]
    );
    assert_eq!(
        said(|tablet| tablet.before.as_mut().unwrap().frequency_mhz = Some(5_200)),
        [
            "the channel of tablet1 was 5200 MHz under airtime and 5180 MHz under default in 2 of 2 blocks"
        ]
    );
    assert_eq!(said(|tablet| tablet.before = None), [""; 0], "a driver that does not tell");
}

#[test]
fn others_and_rates_of_what_is_received_are_compared_by_block() {
    let busy = |others: f64, rx: f64| {
        move |tablet: &mut FieldStation| {
            tablet.others_percent = Some(others);
            tablet.during = Some(RadioMeans { rx_mbps: Some(rx), ..RadioMeans::default() });
        }
    };
    let pairs = vec![run(0, 0, true, busy(3.0, 100.0)), run(1, 0, true, busy(12.0, 130.0))];
    let expected = [
        "the PHY rate from the access point of tablet1 was 130 Mbit/s under airtime and 100 Mbit/s under default (+30 %)",
        "others used 12 % of the channel of tablet1 under airtime and 3 % under default",
    ];
    assert_eq!(between_conditions(&pairs), expected);
    let text = table::render(&report(pairs.clone()), Layout { columns: 200, wide: false });
    assert!(expected.iter().all(|said| text.contains(said)), "{text}");
    let json: serde_json::Value = serde_json::from_str(&report(pairs).to_json()).unwrap();
    assert_eq!(json["air"], serde_json::json!(expected));
    let apart = [run(0, 0, true, busy(3.0, 100.0)), run(1, 1, true, busy(12.0, 130.0))];
    assert_eq!(between_conditions(&apart), [""; 0], "no block has both");
}
