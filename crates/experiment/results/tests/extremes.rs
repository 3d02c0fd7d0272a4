//! Every figure of a result at its extremes. `docs/reference/records.md` has the same as a table, and the last tests
//! compare the names of the figures.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use wakeai_results::figures::{AvrMeter, DurationHistogram};
use wakeai_results::records::GoodputRow;
use wakeai_results::result::{
    Drops, ErrorCounts, FailedRun, FlowReservation, FrameCounts, Lateness, Max, MaxFrom,
    MeasuredFlow, Outcome, Report, ReservationOutcome, Run, SimulatedFlow,
};
use wakeai_results::table::{self, Layout};
use wakeai_scenario::{Direction, FlowKind, Scenario, StationDirection};
use wakeai_units::{Bytes, Duration, Rate};

/// What happened in a run.
#[derive(Clone, Copy)]
struct Case {
    /// The world: the lab has no figures of the simulator, and the simulator no lateness.
    lab: bool,
    duration: Duration,
    warmup: Duration,
    /// The bytes of each flow.
    bytes: [u64; 2],
    /// The samples of the RTT.
    rtt: &'static [u64],
    /// What each station reaches alone, Mbit/s; a negative number is unknown.
    alone: [f64; 2],
    /// The value of all counts.
    count: u64,
}

const SECOND: Duration = Duration::from_secs(1);

/// Two stations in a run of 10 s, without anything.
const NOTHING: Case = Case {
    lab: false,
    duration: Duration::from_secs(10),
    warmup: Duration::ZERO,
    bytes: [0, 0],
    rtt: &[],
    alone: [20.0, 20.0],
    count: 0,
};

fn scenario() -> Scenario {
    let text = "name = \"x\"\nduration = \"25s\"\naccess_point.standard = \"802.11n\"\n\
                stations = [{ name = \"a\" }, { name = \"b\" }]\n\
                flows = [{ from = \"a\", to = \"server\" }, { from = \"b\", to = \"server\" }]";
    Scenario::parse(text).unwrap()
}

fn flow(case: &Case, station: usize) -> MeasuredFlow {
    let (bytes, count) = (Bytes::new(case.bytes[station]), case.count);
    MeasuredFlow {
        station,
        direction: Direction::Up,
        kind: FlowKind::Tcp,
        algorithm: Some("cubic".to_owned()),
        bytes,
        bytes_after_warmup: bytes,
        bytes_in_second_half: Bytes::ZERO,
        start: Duration::ZERO,
        completion: None,
        retransmits: Some(count),
        timeouts: Some(count),
        avr: AvrMeter::new(Rate::from_mbps(1), case.warmup).finish(case.duration),
        simulated: (!case.lab).then_some(SimulatedFlow {
            syn_timeouts: count,
            syn_wait_s: 0.0,
            longest_stall_s: case.duration.as_secs_f64(),
        }),
        reservation: Some(FlowReservation::without(ReservationOutcome::Waiting)),
    }
}

fn run(case: &Case) -> Run {
    let mut rtt = DurationHistogram::default();
    case.rtt.iter().for_each(|micros| rtt.record(Duration::from_micros(*micros)));
    let key = |station| StationDirection { station, direction: Direction::Up };
    let known = case.alone.iter().enumerate().filter(|(_, mbps)| **mbps >= 0.0);
    let maxima: BTreeMap<_, _> = known
        .map(|(station, mbps)| (key(station), Max { mbps: *mbps, from: MaxFrom::Solo }))
        .collect();
    let count = case.count;
    let scenario = scenario();
    let outcome = Outcome {
        stations: scenario.expand_stations(),
        end: case.duration,
        flows: vec![flow(case, 0), flow(case, 1)],
        rtt: vec![rtt, DurationHistogram::default()],
        errors: Some(ErrorCounts {
            reordering: count,
            local_overflow: count,
            duplicate_ack: count,
            timeout: count,
        }),
        lateness: case.lab.then_some(Lateness {
            releases: count,
            p50_ms: 0.0,
            p99_ms: 0.0,
            max_ms: 0.0,
            faithful: true,
            waits_p99_ms: 0.0,
        }),
        packets_digest: None,
        frames: Some(FrameCounts { ppdus: count, mpdus: count }),
        drops: (!case.lab).then_some(Drops {
            hosts: count,
            access_point: count,
            wired_up: count,
            wired_down: count,
            air: count,
        }),
        wall_s: None,
        field: None,
    };
    let mut condition = scenario.conditions().swap_remove(0);
    Arc::make_mut(&mut condition.experiment).warmup = case.warmup;
    Run::new(&condition, 0, 0.5, &maxima, &outcome)
}

fn report(runs: Vec<Run>) -> Report {
    let (scenario, version) = ("x".to_owned(), "0".to_owned());
    let failed = FailedRun { run: "default 2".to_owned(), reason: "why".to_owned(), asked: 2 };
    Report {
        scenario,
        world: "sim".to_owned(),
        version,
        seed: u64::MAX,
        guest: None,
        runs,
        failed: Some(failed),
    }
}

/// The JSON of a report of these cases. The tables can be drawn of it, too.
fn json_of(cases: &[Case]) -> Value {
    let report = report(cases.iter().map(run).collect());
    for wide in [false, true] {
        let text = table::render(&report, Layout { wide, ..Layout::default() });
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
    let text = report.to_json();
    assert_eq!(Report::from_json(&text).unwrap().runs.len(), cases.len(), "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Checks figures, each by its path below `/runs/0` or `/aggregates/0/figures`.
fn check(cases: &[Case], expected: &[(&str, Value)]) {
    let found = json_of(cases);
    for (path, value) in expected {
        let path = match path.strip_prefix('*') {
            Some(figure) => format!("/aggregates/0/figures/{figure}"),
            None => format!("/runs/0/{path}"),
        };
        assert_eq!(found.pointer(&path), Some(value), "{path} of {found:#}");
    }
}

#[test]
fn where_nothing_arrives_goodputs_are_0_and_figures_of_nothing_are_null() {
    let null = Value::Null;
    check(
        &[NOTHING],
        &[
            ("total_goodput_mbps", json!(0.0)),
            ("jain", null.clone()),
            ("capacity_normalised", null.clone()),
            ("mean_utilisation", json!(0.0)),
            ("rtt_ms/p50", null.clone()),
            ("rtt_ms/p95", null.clone()),
            ("rtt_ms/p99", null.clone()),
            ("errors/reordering", json!(0)),
            ("stations/0/goodput_mbps", json!(0.0)),
            ("groups/0/goodput_mbps", json!(0.0)),
            ("groups/0/jain", null.clone()),
            ("groups/0/rtt_ms/p50", null.clone()),
            ("flows/0/bytes", json!(0)),
            ("flows/0/goodput_mbps", json!(0.0)),
            ("flows/0/completion_s", null.clone()),
            ("flows/0/avr", json!(0.0)),
            ("flows/0/longest_stall_s", json!(10.0)),
            ("flows/0/reservation/standing", json!("waiting")),
            ("flows/0/reservation/share", null.clone()),
            ("flows/0/reservation/admitted_s", json!(0.0)),
            ("frames/mpdus", json!(0)),
            ("drops/air", json!(0)),
            ("*jain", null.clone()),
            ("*completion_s.mean", null.clone()),
            ("*completion_s.last", null.clone()),
        ],
    );
    let lab = Case { lab: true, ..NOTHING };
    check(
        &[lab],
        &[
            ("lateness/releases", json!(0)),
            ("lateness/p99_ms", json!(0.0)),
            ("lateness/faithful", json!(true)),
        ],
    );
    let found = json_of(&[lab]);
    for absent in
        ["/runs/0/drops", "/runs/0/flows/0/syn_timeouts", "/runs/0/flows/0/longest_stall_s"]
    {
        assert_eq!(found.pointer(absent), None, "the lab has no {absent}");
    }
    assert_eq!(json_of(&[NOTHING]).pointer("/runs/0/lateness"), None);
    let text = table::render(&report(vec![run(&lab)]), Layout::default());
    assert!(text.contains("no packet was released"), "{text}");
}

#[test]
fn a_solo_goodput_that_is_zero_or_unknown_makes_the_shares_null() {
    for alone in [0.0, -1.0] {
        let case = Case { bytes: [1_250_000; 2], alone: [20.0, alone], ..NOTHING };
        let null = Value::Null;
        check(
            &[case],
            &[
                ("jain", json!(1.0)),
                ("capacity_normalised", null.clone()),
                ("mean_utilisation", null),
            ],
        );
        let max = if alone < 0.0 { Value::Null } else { json!(0.0) };
        check(&[case], &[("stations/1/max_mbps", max)]);
    }
}

#[test]
fn one_byte_and_one_sample_and_one_run_are_enough_for_figures_but_not_for_an_interval() {
    let case = Case { bytes: [1, 0], rtt: &[1_234], count: 1, ..NOTHING };
    let single =
        |value: Value| json!({ "runs": 1, "mean": value, "half": null, "deviation": null });
    check(
        &[case],
        &[
            // Rates are whole bits per second: a byte in 10 s is none.
            ("total_goodput_mbps", json!(0.0)),
            ("flows/0/bytes", json!(1)),
            ("flows/0/goodput_mbps", json!(0.0)),
            ("jain", Value::Null),
            ("rtt_ms/p50", json!(1.234)),
            ("rtt_ms/p95", json!(1.234)),
            ("rtt_ms/p99", json!(1.234)),
            ("errors/timeout", json!(1)),
            ("*rtt_ms.p95", single(json!(1.234))),
            ("*retransmits", single(json!(2.0))),
        ],
    );
    let second = Case { bytes: [1, 0], duration: SECOND, ..NOTHING };
    check(
        &[second],
        &[
            ("total_goodput_mbps", json!(0.000_008)),
            ("jain", json!(0.5)),
            ("mean_utilisation", json!(0.0)),
        ],
    );
    let twice = json_of(&[case, Case { rtt: &[], ..case }]);
    assert_eq!(twice.pointer("/aggregates/0/figures/rtt_ms.p95"), Some(&single(json!(1.234))));
    assert_eq!(twice.pointer("/aggregates/0/figures/retransmits/half"), Some(&json!(0.0)));
}

#[test]
fn a_run_shorter_than_a_round_trip_has_no_samples_and_one_without_length_no_goodput() {
    let short = Case { duration: Duration::from_millis(1), bytes: [1_448, 0], ..NOTHING };
    let null = Value::Null;
    check(
        &[short],
        &[
            ("simulated_s", json!(0.001)),
            ("total_goodput_mbps", json!(11.584)),
            ("rtt_ms/p50", null.clone()),
            ("flows/0/avr", null.clone()),
            ("flows/0/longest_stall_s", json!(0.001)),
        ],
    );
    // All flows have completed at the end of the warmup: no time is left.
    let empty = Case { duration: SECOND, warmup: SECOND, bytes: [u64::MAX; 2], ..NOTHING };
    check(
        &[empty],
        &[("total_goodput_mbps", json!(0.0)), ("flows/0/goodput_mbps", json!(0.0)), ("jain", null)],
    );
    let row = GoodputRow { at_ns: 0, interval_ns: 0, flow: 0, bytes: 9 };
    assert!(row.mbps() == 0.0);
}

#[test]
fn the_largest_numbers_neither_overflow_nor_wrap() {
    let case = Case {
        bytes: [u64::MAX; 2],
        duration: Duration::from_nanos(1),
        rtt: &[u64::MAX / 1_000],
        count: u64::MAX,
        ..NOTHING
    };
    let largest_rate = json!(18_446_744_073_709.55);
    let largest_sum = json!(u64::MAX as f64);
    check(
        &[case],
        &[
            ("total_goodput_mbps", largest_rate.clone()),
            ("flows/0/goodput_mbps", largest_rate),
            ("flows/0/bytes", json!(u64::MAX)),
            ("flows/0/retransmits", json!(u64::MAX)),
            ("errors/timeout", json!(u64::MAX)),
            ("frames/ppdus", json!(u64::MAX)),
            ("drops/wired_down", json!(u64::MAX)),
            ("jain", json!(1.0)),
            ("rtt_ms/p99", json!(4_294_967.295)),
            ("*retransmits/mean", largest_sum),
        ],
    );
    let row = GoodputRow { at_ns: u64::MAX, interval_ns: 1, flow: u32::MAX, bytes: u64::MAX };
    assert!(row.mbps() > 1e13);
}

#[test]
fn a_hundred_thousand_flows_have_figures() {
    let text = "name = \"x\"\nduration = \"10s\"\naccess_point.standard = \"802.11n\"\n\
                stations = [{ name = \"a\", count = 10000 }]\nflows = [{ from = \"a\", to = \"server\" }]";
    let scenario = Scenario::parse(text).unwrap();
    let flows: Vec<MeasuredFlow> = (0..100_000)
        .map(|index| {
            let case = Case { bytes: [1_250 * (index % 2); 2], count: 3, ..NOTHING };
            MeasuredFlow { station: index as usize % 10_000, ..flow(&case, 0) }
        })
        .collect();
    let outcome = Outcome {
        stations: scenario.expand_stations(),
        end: Duration::from_secs(10),
        flows,
        rtt: Vec::new(),
        errors: Some(ErrorCounts::default()),
        lateness: None,
        packets_digest: None,
        frames: None,
        drops: None,
        wall_s: None,
        field: None,
    };
    let run = Run::new(&scenario.conditions()[0], 0, 1.0, &BTreeMap::new(), &outcome);
    assert_eq!((run.flows.len(), run.stations.len()), (100_000, 10_000));
    assert!((run.total_goodput_mbps - 50.0).abs() < 1e-9, "{}", run.total_goodput_mbps);
    assert!((run.jain.unwrap() - 0.5).abs() < 1e-9, "{:?}", run.jain);
    let report = Report { failed: None, ..report(vec![run]) };
    let value: Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(value.pointer("/aggregates/0/figures/retransmits/mean"), Some(&json!(300_000.0)));
}

/// The page, from the heading of the extremes on.
fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/records.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, below) =
        text.split_once("\n## Figures at their extremes\n").expect("the page has the heading");
    below.split("\n## ").next().unwrap().to_owned()
}

/// The names in the first column of the page's tables.
fn on_the_page() -> BTreeSet<String> {
    let rows = page();
    let first = rows
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next().map(str::to_owned));
    let names = first
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    names.collect()
}

/// The paths of all numbers of a report, without the numbers in lists.
fn leaves(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(keys) => {
            for (key, value) in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(value, &path, found);
            }
        }
        Value::Array(values) => {
            for value in values {
                leaves(value, path, found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

#[test]
fn the_page_has_every_figure_of_the_json() {
    let mut found = BTreeSet::new();
    for case in [NOTHING, Case { lab: true, ..NOTHING }] {
        let mut value = json_of(&[case]);
        value.as_object_mut().unwrap().remove("aggregates");
        leaves(&value["runs"], "", &mut found);
        leaves(&value["failed"], "failed", &mut found);
    }
    for name in [
        "condition",
        "repeat",
        "stations.station",
        "stations.direction",
        "groups.group",
        "flows.station",
        "flows.direction",
        "flows.kind",
        "flows.algorithm",
        "failed.run",
        "failed.reason",
        "failed.asked",
    ] {
        assert!(found.remove(name), "{name} is a name, not a figure");
    }
    let page = on_the_page();
    let missing: Vec<_> = found.difference(&page).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_page_has_every_column_of_the_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/records.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (tables, _) = text.split_once("\n## Figures at their extremes\n").unwrap();
    let (_, tables) = tables.split_once("\n## `goodput.parquet`").unwrap();
    let (tables, _) = tables.split_once("\n## `flows.parquet`").unwrap();
    let rows = tables.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let columns: BTreeSet<&str> = rows.collect();
    assert!(columns.len() > 25, "{columns:?}");
    let page = on_the_page();
    let missing: Vec<_> = columns.iter().filter(|name| !page.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
