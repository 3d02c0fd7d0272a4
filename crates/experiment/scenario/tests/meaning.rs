//! Tests the meaning of an accepted scenario: defaults, overrides, single flows and solo runs.
#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

use proptest::prelude::*;
use wakeai_control::{LawConfig, LawName};
use wakeai_scenario::{
    AccessPoint, Chunks, Direction, Experiment, HostQueue, Medium, Node, Place, Scenario, SoloRun,
    TcpProfile, repeat_seed, solo_lengths, solo_plan,
};
use wakeai_units::{Bytes, Duration, Rate, Segments};
use wakeai_wifi::{
    Cell, Contention, GuardInterval, Protection, QueueDiscipline, QueueLimit, Scheduler, Standard,
    Width, Wired,
};

/// The smallest valid scenario.
const LEAST: &str = r#"
name = "least"
duration = "600s"
access_point = { standard = "802.11g" }
stations = [{ name = "tablet" }]
flows = [{ from = "tablet", to = "server" }]
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn pairs(overrides: &[(&str, &str)]) -> Vec<(String, String)> {
    overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn with(scenario: &Scenario, overrides: &[(&str, &str)]) -> Scenario {
    scenario.with_overrides(&pairs(overrides)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn what_is_left_out_has_the_defaults_of_the_reference() {
    let scenario = parse(LEAST);
    assert_eq!(scenario.warmup, Duration::ZERO);
    let AccessPoint { buffer, medium: Medium::Wifi(wifi) } = scenario.access_point else {
        panic!("not Wi-Fi")
    };
    assert_eq!(buffer, QueueLimit::Packets(300));
    assert_eq!((wifi.queue, wifi.protection), (QueueDiscipline::Fifo, Protection::None));
    assert_eq!((wifi.basic_rate, wifi.control_rate), (Rate::from_mbps(6), None));
    assert_eq!(wifi.retry_limit, 7);
    let wired = Wired {
        rate: Rate::from_mbps(1_000),
        delay: Duration::from_millis(1),
        queue: QueueLimit::Packets(1_000),
        loss_ppm: 0,
    };
    assert_eq!(scenario.wired, wired);
    let group = &scenario.stations[0];
    assert_eq!((group.count, group.queue, group.frame_error_ppm), (1, 1_000, 0));
    assert_eq!((group.host_queue, group.tcp), (HostQueue::Fifo, TcpProfile::Linux));
    assert_eq!((group.wired_delay, group.max, group.proxy), (Duration::ZERO, None, false));
    let flow = &scenario.flows[0];
    assert_eq!((flow.size, flow.start, flow.jitter), (None, Duration::ZERO, Duration::ZERO));
    assert_eq!((flow.algorithm.as_deref(), flow.chunks), (Some("cubic"), Chunks::Count(1)));
    assert_eq!((flow.rate, flow.limit, flow.reserve), (None, None, false));
    assert!(scenario.events.is_empty());
    assert_eq!(scenario.conditions.len(), 1);
    assert_eq!(
        (&*scenario.conditions[0].name, scenario.conditions[0].law.as_ref()),
        ("default", None)
    );
}

#[test]
fn each_standard_has_its_own_rate_contention_and_aggregation() {
    let expected = [
        (Standard::A, "54Mbit/s", Width::Mhz20, 2, 0),
        (Standard::G, "54Mbit/s", Width::Mhz20, 2, 0),
        (Standard::N, "65Mbit/s", Width::Mhz20, 3, 65_535),
        (Standard::Ac, "390Mbit/s", Width::Mhz80, 3, 65_535),
        (Standard::Ax, "600.5Mbit/s", Width::Mhz80, 3, 65_535),
    ];
    for (standard, rate, width, aifsn, ampdu) in expected {
        let scenario = parse(&LEAST.replace("802.11g", standard.into()));
        let radio = scenario.stations[0].radio.unwrap();
        assert_eq!((radio.standard, radio.rate.to_string().as_str()), (standard, rate));
        let contention = Contention { aifsn, cw_min: 15, cw_max: 1_023, txop: Duration::ZERO };
        let bss = scenario.access_point.wifi().unwrap();
        assert_eq!((radio.contention, bss.contention), (contention, contention));
        assert_eq!(bss.ampdu_of(standard), Bytes::new(ampdu));
        assert_eq!((bss.streams, bss.guard_interval), (1, GuardInterval::Ns800));
        assert_eq!(bss.width, width);
    }
}

#[test]
fn control_frames_go_at_the_rate_that_is_given() {
    let control = |scenario: &Scenario| scenario.access_point.wifi().unwrap().control_rate;
    assert_eq!(control(&parse(LEAST)), None);
    let given = with(&parse(LEAST), &[("access_point.control_rate", "6Mbit/s")]);
    assert_eq!(control(&given), Some(Rate::from_mbps(6)));
}

#[test]
fn a_station_of_an_older_standard_has_that_standard_s_defaults() {
    let text = LEAST
        .replace("802.11g\"", "802.11ax\", width = \"20MHz\", streams = 2")
        .replace("\"tablet\" }]", "\"tablet\" }, { name = \"old\", standard = \"802.11ac\" }]");
    let scenario = parse(&text);
    let rate = |group: usize| scenario.stations[group].radio.unwrap().rate.to_string();
    assert_eq!(rate(0), "286.8Mbit/s");
    // This is a rate of 802.11ac with one stream at the access point's 20 MHz.
    assert_eq!(rate(1), "78Mbit/s");
}

#[test]
fn aggregates_apply_to_all_stations_that_can_have_them() {
    let access_point = "access_point.standard";
    let scenario = with(
        &parse(LEAST),
        &[
            (access_point, "802.11ax"),
            ("access_point.ampdu", "2000000"),
            ("access_point.ampdu_subframes", "200"),
            ("stations.tablet.standard", "802.11ac"),
        ],
    );
    let (bss, radio) = (scenario.access_point.wifi().unwrap(), scenario.stations[0].radio.unwrap());
    assert_eq!((bss.ampdu, bss.ampdu_subframes), (Bytes::new(2_000_000), 200));
    assert_eq!(bss.ampdu_of(radio.standard), Bytes::new(1_048_575));
    assert_eq!(bss.subframes_of(radio.standard), 64);
}

#[test]
fn a_cell_has_two_rates_and_a_scheduler() {
    let cell = "medium = \"cellular\", uplink = \"20Mbit/s\", downlink = \"80Mbit/s\"";
    let scenario = parse(&LEAST.replace("standard = \"802.11g\"", cell));
    let cell = Cell {
        uplink: Rate::from_mbps(20),
        downlink: Rate::from_mbps(80),
        scheduler: Scheduler::ProportionalFair,
    };
    assert_eq!(scenario.access_point.medium, Medium::Cellular(cell));
    assert_eq!(scenario.stations[0].radio, None);
}

#[test]
fn an_override_reaches_any_key_and_may_go_without_quotes() {
    let scenario = with(
        &parse(LEAST),
        &[
            ("duration", "10s"),
            ("access_point.contention.cw_min", "31"),
            ("wired.delay", "\"5ms\""),
            ("stations.tablet.count", "3"),
            ("stations.1.wired_delay", "256ms"),
            ("flows.1.size", "10MB"),
            ("conditions", "[{ name = \"a\" }, { name = \"b\", law = \"airtime\" }]"),
            ("conditions.b.agents", "[\"tablet1\", \"tablet3\"]"),
        ],
    );
    assert_eq!(scenario.duration, Duration::from_secs(10));
    assert_eq!(scenario.access_point.wifi().unwrap().contention.cw_min, 31);
    assert_eq!(scenario.stations[0].radio.unwrap().contention.cw_min, 31);
    assert_eq!(scenario.wired.delay, Duration::from_millis(5));
    assert_eq!(scenario.stations[0].wired_delay, Duration::from_millis(256));
    assert_eq!(scenario.expand(1).flows.len(), 3);
    assert_eq!(scenario.flows[0].size, Some(Bytes::new(10_000_000)));
    assert_eq!(scenario.conditions()[1].agents(), [true, false, true]);
    // The scenario reads back from its TOML.
    assert_eq!(*parse(&scenario.to_toml()), *scenario);
}

#[test]
fn later_overrides_win_and_a_wrong_one_is_named() {
    let once = with(&parse(LEAST), &[("duration", "10s"), ("duration", "20s")]);
    assert_eq!(with(&once, &[("duration", "30s")]).duration, Duration::from_secs(30));
    let error = once.with_overrides(&pairs(&[("duration", "40s"), ("wired.queue", "0")]));
    let error = error.unwrap_err();
    assert_eq!(error.problems()[0].place, Place::Override("wired.queue".to_owned()));
    insta::assert_snapshot!(error);
}

#[test]
fn a_condition_sets_keys_for_itself_alone() {
    let text = format!(
        "{LEAST}
        [[conditions]]
        name = \"default\"
        [[conditions]]
        name = \"far\"
        law = \"fixed\"
        bounds = [{{ stations = \"tablet2\", floor = 3 }}]
        set = {{ \"stations.tablet.wired_delay\" = \"256ms\", stations.tablet.count = 2 }}
        "
    );
    // The text is refused, because the bounds name a station that only exists with `set`.
    assert!(Scenario::parse(&text).is_err());
    let scenario = parse(&text.replace("\"tablet2\"", "\"tablet\""));
    let [default, far] = &scenario.conditions()[..] else { panic!("two conditions") };
    assert_eq!(default.experiment.stations[0].wired_delay, Duration::ZERO);
    assert_eq!(far.experiment.stations[0].wired_delay, Duration::from_millis(256));
    assert_eq!((default.name(), far.name(), far.law()), ("default", "far", Some(LawName::Fixed)));
    assert_eq!((default.agents(), far.agents()), (vec![false], vec![true; 2]));
    let floor = Segments::new(3);
    let law = Some(LawConfig::by_hand(floor, Segments::MAX));
    assert_eq!(far.laws(), [law.clone(), law]);
    assert_eq!(far.condition.set.len(), 2);
}

#[test]
fn groups_on_both_sides_make_one_flow_for_each_pair() {
    let text = LEAST
        .replace(
            "{ name = \"tablet\" }",
            "{ name = \"a\", count = 2 }, { name = \"b\", count = 3 }",
        )
        .replace(
            "{ from = \"tablet\", to = \"server\" }",
            "{ from = \"a\", to = \"b\" }, { from = \"server\", to = \"b2\" }",
        );
    let expanded = parse(&text).expand(1);
    let names: Vec<_> = expanded.stations.iter().map(|station| &*station.name).collect();
    assert_eq!(names, ["a1", "a2", "b1", "b2", "b3"]);
    let pairs: Vec<_> = expanded.flows.iter().map(|flow| (flow.from, flow.to)).collect();
    let station = Node::Station;
    let mesh = [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)];
    let mut expected: Vec<_> = mesh.map(|(from, to)| (station(from), station(to))).into();
    expected.push((Node::Server, station(3)));
    assert_eq!(pairs, expected);
    let (peer, down) = (&expanded.flows[0], &expanded.flows[6]);
    assert_eq!((peer.direction(), peer.station()), (Direction::Peer, 0));
    assert_eq!((down.direction(), down.station()), (Direction::Down, 3));
}

#[test]
fn starts_are_the_same_in_every_world() {
    let jitter = "{ from = \"tablet\", to = \"server\", start = \"1s\", jitter = \"100ms\" }";
    let text = LEAST
        .replace("{ from = \"tablet\", to = \"server\" }", jitter)
        .replace("name = \"tablet\"", "name = \"tablet\", count = 4");
    let scenario = parse(&text);
    let starts = |seed| {
        let flows = scenario.expand(seed).flows;
        flows.iter().map(|flow| flow.start.as_nanos()).collect::<Vec<_>>()
    };
    // The snapshot keeps these starts: with another generator, or another order of draws, old runs
    // could not be reproduced.
    insta::assert_debug_snapshot!((starts(1), starts(2)));
    assert_eq!(repeat_seed(1, 0), 1);
    assert_eq!(repeat_seed(u64::MAX, 1), 0);
}

proptest! {
    #[test]
    fn a_start_lies_between_start_and_start_plus_jitter(seed: u64, jitter in 0_u64..1_000) {
        let flow = format!(
            "{{ from = \"tablet\", to = \"server\", start = \"3ns\", jitter = \"{jitter}ns\" }}"
        );
        let text = LEAST.replace("{ from = \"tablet\", to = \"server\" }", &flow);
        let start = parse(&text).expand(seed).flows[0].start.as_nanos();
        prop_assert!((3..=3 + jitter).contains(&start));
    }
}

#[test]
fn ten_thousand_stations_both_ways_expand_and_share_two_solo_runs() {
    let both = "{ from = \"tablet\", to = \"server\" }, { from = \"server\", to = \"tablet\" }";
    let text = LEAST
        .replace("{ from = \"tablet\", to = \"server\" }", both)
        .replace("name = \"tablet\"", "name = \"tablet\", count = 10000");
    let scenario = parse(&text);
    let expanded = scenario.expand(1);
    assert_eq!((expanded.stations.len(), expanded.flows.len()), (10_000, 20_000));
    assert_eq!(expanded.stations[9_999].name, "tablet10000");
    let plan = solo_plan(&scenario.conditions()[0]);
    assert_eq!(plan.iter().map(|run| run.applies_to.len()).collect::<Vec<_>>(), [10_000; 2]);
}

/// A scenario with different groups, a given maximum, a target, a law and an event.
const MIXED: &str = r#"
name = "mixed"
duration = "100s"
warmup = "5s"
access_point = { standard = "802.11ac" }
stations = [
    { name = "phone", count = 2 },
    { name = "twin", count = 2, max = "100Mbit/s" },
    { name = "same" },
    { name = "old", standard = "802.11n", count = 3 },
]
flows = [
    { from = "phone", to = "server", size = "10MB", jitter = "1s", chunks = 3, limit = "1Mbit/s" },
    { from = "server", to = "phone", algorithm = "wakeai_av", rate = "5Mbit/s", reserve = true },
    { from = "same", to = "server" },
    { from = "twin", to = "server" },
    { from = "old1", to = "server", kind = "udp", rate = "5Mbit/s" },
    { from = "old2", to = "old3" },
    { from = "old1", to = "server" },
]
events = [{ at = "50s", station = "phone", wired_delay = "512ms" }]

[[conditions]]
name = "default"

[[conditions]]
name = "controlled"
law = "airtime"

[[conditions]]
name = "far"
set = { "stations.old.wired_delay" = "10ms" }
"#;

#[test]
fn a_solo_run_is_one_endless_flow_of_one_station_and_nothing_else() {
    let conditions = parse(MIXED).conditions();
    let plan = solo_plan(&conditions[1]);
    let texts = plan.iter().map(|run| {
        let Experiment { stations, flows, .. } = &*run.condition.experiment;
        format!("# for {:?}\n{stations:#?}\n{flows:#?}", run.applies_to)
    });
    insta::assert_snapshot!(texts.collect::<Vec<_>>().join("\n\n"));
    for run in &plan {
        let scenario = &run.condition.experiment;
        assert_eq!(
            (scenario.duration, scenario.warmup),
            (Duration::from_secs(100), Duration::from_secs(5))
        );
        assert_eq!((scenario.conditions.len(), scenario.conditions[0].law.as_ref()), (1, None));
        assert_eq!((scenario.events.len(), scenario.expand(1).flows.len()), (0, 1));
        let flow = &scenario.flows[0];
        assert_eq!((flow.size, flow.rate, flow.jitter), (None, None, Duration::ZERO));
        assert_eq!(flow.limit, None);
    }
    let alone = plan[0].condition.experiment.stations[0].radio;
    assert_eq!(alone, parse(MIXED).stations[0].radio);
}

#[test]
fn conditions_share_the_solo_runs_that_their_set_does_not_reach() {
    let conditions = parse(MIXED).conditions();
    let texts = |index: usize| -> Vec<String> {
        solo_plan(&conditions[index]).iter().map(SoloRun::key).collect()
    };
    let (default, controlled, far) = (texts(0), texts(1), texts(2));
    assert_eq!(default, controlled);
    let shared = far.iter().filter(|text| default.contains(text)).count();
    assert_eq!((default.len(), far.len(), shared), (4, 4, 2)); // the runs of `phone` and `same`
}

#[test]
fn a_solo_run_leaves_time_after_a_long_warmup() {
    let scenario = with(&parse(LEAST), &[("warmup", "90s")]);
    let plan = solo_plan(&scenario.conditions()[0]);
    let first = solo_lengths(&plan[0].condition.experiment).next();
    assert_eq!(first, Some(Duration::from_secs(150)));
}

#[test]
fn a_bss_has_the_keys_of_the_wire_that_it_leaves_out_from_wired() {
    let text = r#"
name = "two"
duration = "10s"
[access_point]
standard = "802.11n"
[wired]
rate = "50Mbit/s"
delay = "7ms"
queue = 9
loss = 0.01
[[bss]]
name = "as-wired"
[[bss]]
name = "own"
wired = { rate = "5Mbit/s" }
[[stations]]
name = "a"
bss = "own"
[[flows]]
from = "a"
to = "server"
"#;
    let scenario = parse(text);
    let wired = Wired {
        rate: Rate::from_mbps(50),
        delay: Duration::from_millis(7),
        queue: QueueLimit::Packets(9),
        loss_ppm: 10_000,
    };
    let own = Wired { rate: Rate::from_mbps(5), ..wired };
    assert_eq!(scenario.bsss.iter().map(|bss| bss.wired).collect::<Vec<_>>(), [wired, own]);
}
