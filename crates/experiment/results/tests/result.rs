//! Tests of the result as JSON and as tables.
#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]
#![allow(clippy::float_cmp, reason = "the expected figures are exact")]

use std::collections::BTreeMap;

use wakeai_results::compare::Comparison;
use wakeai_results::figures::DurationHistogram;
use wakeai_results::result::{
    ErrorCounts, FailedRun, FlowReservation, GuestMachine, Lateness, Max, MaxFrom, MeasuredFlow,
    Outcome, Report, ReservationOutcome, RttMillis, Run, given_maxima,
};
use wakeai_results::table::{self, Layout};
use wakeai_scenario::{
    Direction, FlowKind, ResolvedCondition, Scenario, StationDirection, solo_plan,
};
use wakeai_units::{Bytes, Duration};

const END: Duration = Duration::from_secs(25);

/// A condition of an experiment with `count` stations.
fn condition(name: &str, count: usize) -> ResolvedCondition {
    let text = format!(
        "name = \"x\"\nduration = \"25s\"\nwarmup = \"5s\"\naccess_point.standard = \"802.11n\"\n\
         stations = [{{ name = \"tablet\", count = {count} }}]\n\
         flows = [{{ from = \"tablet\", to = \"server\" }}]\nconditions = [{{ name = \"{name}\" }}]"
    );
    Scenario::parse(&text).unwrap().conditions().swap_remove(0)
}

/// The outcome of a run of `condition` with these flows and round-trip times by group.
fn outcome(
    condition: &ResolvedCondition,
    flows: &[MeasuredFlow],
    rtt: Vec<DurationHistogram>,
) -> Outcome {
    Outcome {
        stations: condition.experiment.expand_stations(),
        end: END,
        flows: flows.to_vec(),
        rtt,
        errors: Some(ErrorCounts::default()),
        lateness: None,
        packets_digest: None,
        frames: None,
        drops: None,
        wall_s: None,
        field: None,
    }
}

/// A flow of `station` that receives `mbps` from the end of the warmup to the end of the run.
fn flow(station: usize, mbps: u64) -> MeasuredFlow {
    MeasuredFlow {
        station,
        direction: Direction::Up,
        kind: FlowKind::Tcp,
        algorithm: Some("cubic".to_owned()),
        bytes: Bytes::new(mbps * 125_000 * 25),
        bytes_after_warmup: Bytes::new(mbps * 125_000 * 20),
        bytes_in_second_half: Bytes::new(mbps * 125_000 * 10),
        start: Duration::ZERO,
        completion: None,
        retransmits: Some(12),
        timeouts: Some(1),
        avr: None,
        simulated: None,
        reservation: None,
    }
}

fn maxima(mbps: &[f64]) -> BTreeMap<StationDirection, Max> {
    let key = |station| StationDirection { station, direction: Direction::Up };
    let max = |mbps| Max { mbps, from: MaxFrom::Solo };
    mbps.iter().enumerate().map(|(station, mbps)| (key(station), max(*mbps))).collect()
}

fn run(condition: &str, repeat: u32, flows: &[MeasuredFlow], maxima: &[f64]) -> Run {
    let mut rtt = DurationHistogram::default();
    for millis in 1..=100 {
        rtt.record(Duration::from_micros(millis * 1_000 + 100_000));
    }
    let condition = self::condition(condition, flows.len());
    let errors = ErrorCounts { reordering: 1, local_overflow: 2, duplicate_ack: 30, timeout: 4 };
    let outcome = Outcome { errors: Some(errors), ..outcome(&condition, flows, vec![rtt]) };
    Run::new(&condition, repeat, 0.9, &self::maxima(maxima), &outcome)
}

/// The tables for a terminal of 80 columns, and the tables of `--wide`.
fn tables(report: &Report) -> String {
    let narrow = table::render(report, Layout::default());
    assert_eq!(too_long(&narrow), None);
    narrow + "\n--wide:\n" + &table::render(report, Layout { wide: true, ..Layout::default() })
}

/// A line that does not fit into 80 columns.
fn too_long(text: &str) -> Option<&str> {
    text.lines().find(|line| line.chars().count() > Layout::MIN_COLUMNS)
}

fn report(runs: Vec<Run>) -> Report {
    Report {
        scenario: "quickstart".to_owned(),
        world: "lab".to_owned(),
        version: "0.1.0".to_owned(),
        seed: 1,
        runs,
        guest: None,
        failed: None,
    }
}

#[test]
fn the_json_has_the_keys_of_the_reference() {
    let mut down = flow(1, 4);
    (down.direction, down.completion) = (Direction::Down, Some(Duration::from_millis(15_000)));
    let flows = [flow(0, 10), down];
    let report = report(vec![run("default", 0, &flows, &[20.0])]);
    let value: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap());
}

#[test]
fn a_report_reads_back_from_its_json() {
    let report = report(vec![run("default", 0, &[flow(0, 10), flow(1, 5)], &[20.0, 20.0])]);
    assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
}

#[test]
fn the_table_compares_conditions_and_spreads_repeats() {
    let mut runs = vec![
        run("default", 0, &[flow(0, 10), flow(1, 5)], &[20.0, 20.0]),
        run("default", 1, &[flow(0, 12), flow(1, 5)], &[20.0, 20.0]),
        run("airtime", 0, &[flow(0, 10), flow(1, 10)], &[20.0, 20.0]),
        run("airtime", 1, &[flow(0, 10), flow(1, 10)], &[20.0, 20.0]),
    ];
    let lateness = Lateness {
        releases: 9,
        p50_ms: 0.01,
        p99_ms: 0.4,
        max_ms: 3.0,
        faithful: true,
        waits_p99_ms: 2.0,
    };
    runs[3].lateness = Some(lateness);
    insta::assert_snapshot!(tables(&report(runs)));
}

#[test]
fn the_table_of_one_run_without_maxima_has_dashes_for_what_is_unknown() {
    let mut run = run("default", 0, &[flow(0, 0)], &[]);
    run.rtt_ms = RttMillis::default();
    run.lateness = Some(Lateness {
        releases: 9,
        p50_ms: 0.5,
        p99_ms: 1.4,
        max_ms: 30.0,
        faithful: false,
        waits_p99_ms: 2.0,
    });
    insta::assert_snapshot!(tables(&report(vec![run])));
}

#[test]
fn goodput_counts_between_warmup_or_start_and_the_flow_s_own_end() {
    let mut late = flow(0, 0);
    late.start = Duration::from_secs(10);
    late.completion = Some(Duration::from_secs(5));
    late.bytes_after_warmup = Bytes::new(125_000 * 50); // 50 Mbit in 5 s
    let run = run("default", 0, &[late, flow(1, 8)], &[40.0, 40.0]);
    assert_eq!(run.flows[0].goodput_mbps, 10.0);
    assert_eq!(run.flows[0].completion_s, Some(5.0));
    assert_eq!(run.total_goodput_mbps, 50.0 / 20.0 + 8.0);
    assert_eq!(run.mean_utilisation, Some(f64::midpoint(10.0 / 40.0, 8.0 / 40.0)));
}

#[test]
fn a_station_with_flows_both_ways_is_one_whose_shares_add_up() {
    let mut down = flow(0, 6);
    down.direction = Direction::Down;
    let flows = [flow(0, 10), down];
    let mut maxima = maxima(&[20.0]);
    let key = StationDirection { station: 0, direction: Direction::Down };
    maxima.insert(key, Max { mbps: 30.0, from: MaxFrom::Given });
    let condition = condition("default", 1);
    let outcome = outcome(&condition, &flows, Vec::new());
    let run = Run::new(&condition, 0, 0.0, &maxima, &outcome);
    assert_eq!(run.jain, Some(1.0));
    assert_eq!(run.mean_utilisation, Some(10.0 / 20.0 + 6.0 / 30.0));
    let directions: Vec<_> = run.stations.iter().map(|s| (&*s.direction, s.max_from)).collect();
    assert_eq!(directions, [("up", Some(MaxFrom::Solo)), ("down", Some(MaxFrom::Given))]);
}

#[test]
fn nothing_received_is_no_fairness_rather_than_perfect_fairness() {
    let run = run("default", 0, &[flow(0, 0), flow(1, 0)], &[20.0, 20.0]);
    assert_eq!((run.jain, run.capacity_normalised), (None, None));
    assert_eq!(run.mean_utilisation, Some(0.0));
}

#[test]
fn groups_are_told_apart_where_there_are_several() {
    let text = "name = \"x\"\nduration = \"25s\"\naccess_point.standard = \"802.11n\"\n\
                stations = [{ name = \"phone\", count = 2 }, { name = \"load\" }]\n\
                flows = [{ from = \"phone\", to = \"server\" }]\nwarmup = \"5s\"\n\
                conditions = [{ name = \"default\" }, { name = \"airtime\" }]";
    let conditions = Scenario::parse(text).unwrap().conditions();
    let mut slow = DurationHistogram::default();
    slow.record(Duration::from_millis(2));
    let run = |condition: &ResolvedCondition, first| {
        let flows = [flow(0, first), flow(1, 6), flow(2, 4)];
        let rtt = vec![DurationHistogram::default(), slow.clone()];
        Run::new(condition, 0, 0.0, &BTreeMap::new(), &outcome(condition, &flows, rtt))
    };
    let report = report(vec![run(&conditions[0], 6), run(&conditions[1], 9)]);
    let groups = &report.runs[0].groups;
    assert_eq!(
        (&*groups[0].group, groups[0].goodput_mbps, groups[0].jain),
        ("phone", 12.0, Some(1.0))
    );
    assert_eq!((groups[0].rtt_ms.p95, groups[1].rtt_ms.p95), (None, Some(2.0)));
    insta::assert_snapshot!(tables(&report));
}

/// The test has the longest names that a user may choose, and figures with many digits.
#[test]
fn no_line_is_longer_than_80_columns() {
    let text = format!(
        "name = \"x\"\nduration = \"25s\"\nwarmup = \"5s\"\naccess_point.standard = \"802.11n\"\n\
         stations = [{{ name = \"{}\", count = 2 }}, {{ name = \"{}\" }}]\n\
         flows = [{{ from = \"{0}\", to = \"server\" }}]",
        "phone".repeat(6),
        "l".repeat(32),
    );
    let scenario = Scenario::parse(&text).unwrap();
    let reservation = FlowReservation {
        outcome: ReservationOutcome::Refused,
        share: Some(1.2),
        taken: Some(0.4),
        limit: Some(0.8),
        admitted_s: 0.0,
    };
    let mut with_target = flow(2, 123_456);
    (with_target.avr, with_target.reservation) = (Some(0.5), Some(reservation));
    let mut runs = Vec::new();
    for (condition, first) in
        [("w".repeat(32), 1), ("long-name-with-many-parts-of-it".into(), 9_999)]
    {
        for repeat in 0..2 {
            let flows = [flow(0, first * u64::from(1 + repeat)), flow(1, 6), with_target.clone()];
            let mut run = run(&condition, repeat, &flows, &[1.0, 2.0, 3.0]);
            for (result, station) in run.stations.iter_mut().zip(scenario.expand_stations()) {
                result.station = station.name;
            }
            let of = &scenario.conditions()[0];
            let outcome = outcome(of, &flows, vec![DurationHistogram::default(); 2]);
            run.groups = Run::new(of, repeat, 0.9, &BTreeMap::new(), &outcome).groups;
            runs.push(run);
        }
    }
    for run in &mut runs[2..] {
        run.rtt_ms = RttMillis { p50: Some(9.0), p95: Some(99_999.9), p99: Some(99_999.9) };
        run.groups.iter_mut().for_each(|group| group.rtt_ms = run.rtt_ms);
    }
    runs[3].lateness = Some(Lateness {
        releases: 9,
        p50_ms: 0.5,
        p99_ms: 1.4,
        max_ms: 30.0,
        faithful: false,
        waits_p99_ms: 2.0,
    });
    let report = Report { scenario: "very ".repeat(20), ..report(runs) };
    let text = table::render(&report, Layout::default());
    assert_eq!(too_long(&text), None, "{text}");
    assert!(text.contains("Gbit/s") && text.contains("refused"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_wider_terminal_gives_names_more_room() {
    let report = report(vec![run(&"n".repeat(32), 0, &[flow(0, 10)], &[20.0])]);
    let text = |columns| table::render(&report, Layout { columns, wide: false });
    assert!(!text(80).contains(&"n".repeat(32)) && text(110).contains(&"n".repeat(32)));
    assert_eq!(text(10), text(80));
}

/// The repeats with these numbers, whose goodputs in Mbit/s are these.
fn repeats(runs: &[(u32, u64)]) -> Report {
    let of = |(repeat, mbps): &(u32, u64)| run("default", *repeat, &[flow(0, *mbps)], &[20.0]);
    report(runs.iter().map(of).collect())
}

/// The comparison of two results with the first seeds 1 and `seed`.
fn compared(a: &[(u32, u64)], seed: u64, b: &[(u32, u64)]) -> Comparison {
    Comparison::of_reports(&repeats(a), &Report { seed, ..repeats(b) }).unwrap()
}

#[test]
fn the_seeds_that_both_results_have_are_pairs_and_the_others_are_left_out() {
    let found = compared(&[(0, 10), (1, 20), (2, 90)], 1, &[(0, 11), (1, 21)]);
    let row = &found.conditions[0];
    assert_eq!((row.paired, row.left_out.a, row.left_out.b), (true, 1, 0));
    let goodput = row.figures["total_goodput_mbps"];
    assert_eq!((goodput.a.runs, goodput.b.runs), (2, 2));
    assert_eq!((goodput.a.interval.mean, goodput.b.interval.mean), (15.0, 16.0));
    assert_eq!((goodput.difference.mean, goodput.difference.half), (1.0, Some(0.0)));
    let text = found.render(false);
    assert!(
        text.contains(
            "2 runs each, paired by seed; left out without a partner of the same seed: 1 of a"
        ),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&found.to_json()).unwrap();
    assert_eq!(json["conditions"][0]["left_out"], serde_json::json!({ "a": 1, "b": 0 }));
    // Seeds 1 to 3 and 2 to 4.
    let found = compared(&[(0, 10), (1, 20), (2, 30)], 2, &[(0, 20), (1, 31), (2, 99)]);
    let row = &found.conditions[0];
    assert_eq!((row.paired, row.left_out.a, row.left_out.b), (true, 1, 1));
    assert_eq!(row.figures["total_goodput_mbps"].difference.mean, 0.5);
}

#[test]
fn runs_without_two_pairs_are_independent_where_both_sides_have_others() {
    let three = [(0, 10), (1, 20), (2, 30)];
    for (seed, is_paired, left_out) in [(4, false, 0), (3, false, 0), (2, true, 1), (1, true, 0)] {
        let row = compared(&three, seed, &three).conditions.swap_remove(0);
        assert_eq!((row.paired, row.left_out.a, row.left_out.b), (is_paired, left_out, left_out));
        let expected = if is_paired { 3 - left_out } else { 3 };
        assert_eq!(row.figures["total_goodput_mbps"].a.runs, expected);
    }
    let single = compared(&three, 1, &[(0, 11)]);
    let row = &single.conditions[0];
    assert_eq!((row.paired, row.left_out.a), (true, 2));
    assert_eq!(row.figures["total_goodput_mbps"].difference.half, None);
    assert!(single.render(false).contains("a single run has no interval"));
}

#[test]
fn the_table_says_that_a_result_is_incomplete() {
    let mut report = repeats(&[(0, 10), (1, 20)]);
    report.runs.push(run("airtime", 0, &[flow(0, 30)], &[20.0]));
    let failed = FailedRun { run: "airtime 2".to_owned(), reason: "no air".to_owned(), asked: 4 };
    report.failed = Some(failed);
    let text = table::render(&report, Layout::default());
    assert!(text.contains("INCOMPLETE: 3 of 4 runs; the run airtime 2 failed: no air"), "{text}");
    assert!(text.contains("mean of up to 2 repeats"), "{text}");
    assert_eq!(Report::from_json(&report.to_json()).unwrap().failed, report.failed);
}

#[test]
fn a_maximum_that_is_given_needs_no_run() {
    let text = "name = \"x\"\nduration = \"100s\"\naccess_point = { standard = \"802.11ac\" }\n\
                stations = [{ name = \"phone\", count = 2 },\n\
                            { name = \"twin\", count = 2, max = \"100Mbit/s\" }]\n\
                flows = [{ from = \"phone\", to = \"server\" }, { from = \"twin\", to = \"server\" }]";
    let condition = &Scenario::parse(text).unwrap().conditions()[0];
    let given = given_maxima(condition);
    let stations: Vec<_> = given.keys().map(|key| (key.station, key.direction)).collect();
    assert_eq!(stations, [(2, Direction::Up), (3, Direction::Up)]);
    assert!(
        given.values().all(|max| max.from == MaxFrom::Given && (max.mbps - 100.0).abs() < 1e-9)
    );
    let planned = solo_plan(condition).into_iter().flat_map(|run| run.applies_to);
    let planned: Vec<_> = planned.map(|key| key.station).collect();
    assert!(!planned.contains(&2) && !planned.contains(&3), "{planned:?}");
}

#[test]
fn a_comparison_says_where_guests_differ_so_that_a_seed_is_not_the_same_run() {
    let guest = GuestMachine {
        kernel: "6.12.1-amd64".to_owned(),
        kernel_digest: "01".to_owned(),
        image_digest: "02".to_owned(),
        emulator: "qemu 7.2".to_owned(),
        clock: "1 ns per instruction".to_owned(),
        memory_mb: 1024,
    };
    let with = |guest: &GuestMachine| {
        let runs = vec![run("default", 0, &[flow(0, 10)], &[20.0])];
        Report { guest: Some(guest.clone()), ..report(runs) }
    };
    let compared = |a: &GuestMachine, b: &GuestMachine| {
        Comparison::of_reports(&with(a), &with(b)).unwrap().render(false)
    };
    assert!(!compared(&guest, &guest).contains("differ"));
    assert!(compared(&guest, &guest).contains("a: quickstart in the lab on Linux 6.12.1-amd64, "));
    let other = GuestMachine { image_digest: "03".to_owned(), memory_mb: 2048, ..guest.clone() };
    let text = compared(&guest, &other);
    let expected = "the guests differ in the programs and modules, the memory: runs of the same seed are not the same";
    assert!(text.contains(expected), "{text}");
    let host = Report { guest: None, ..with(&guest) };
    assert!(
        !Comparison::of_reports(&host, &with(&guest)).unwrap().render(false).contains("differ")
    );
}
