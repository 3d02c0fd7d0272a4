//! Tests of the agent's configuration: each key, its default, its range and its errors.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;

use proptest::option;
use proptest::prelude::*;
use wakeai_control::AirtimeKnobs;
use wakeai_control::laws::LARGEST_WINDOW;
use wakeai_units::{Bytes, Segments};

use super::*;

const SMALLEST: &str = "interface = \"wlan0\"\nkey_file = \"/etc/wakeai/group.key\"\n";

fn problem(text: &str) -> String {
    Config::parse(text).unwrap_err().to_string()
}

#[test]
fn two_keys_are_enough() {
    let config = Config::parse(SMALLEST).unwrap();
    assert_eq!(config.interface, "wlan0");
    assert_eq!(config.presence.port, 19719);
    assert_eq!(config.access_point.buffer, 300);
    assert_eq!(config.access_point.basic_rate, Rate::from_mbps(6));
    assert_eq!(config.bssid, None);
    assert_eq!(config.link_rate, None);
    assert_eq!((config.reserve, config.access_point.reservable_percent), (None, 80));
    assert_eq!(config, Config::new("wlan0", "/etc/wakeai/group.key"));
    assert_eq!(config.law_name(), "airtime");
    assert_eq!(config.log.level, "info");
}

#[test]
fn the_documented_file_is_accepted_and_sets_every_key() {
    let page = include_str!("../../../../../docs/reference/agent.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let config = Config::parse(example).unwrap();
    assert_eq!(config.station, Some(17));
    assert_eq!(config.bssid, Some(Bssid([2, 0, 0x5e, 0x10, 0, 1])));
    assert_eq!(config.link_rate, Some(Rate::from_mbps(54)));
    assert_eq!(config.max, Some(Rate::from_mbps(31)));
    assert_eq!(config.reserve, Some("9.66Mbit/s".parse().unwrap()));
    assert_eq!(config.metrics, Some("127.0.0.1:9719".parse().unwrap()));
    assert_eq!(config.access_point.reservable_percent, 60);
    assert_eq!(config.presence.broadcast, Some(Ipv4Addr::new(192, 168, 1, 255)));
    assert_eq!(config.presence.clock_tolerance, Some(Duration::from_secs(1)));
    let bounds = LawConfig::by_hand(Segments::new(10), Segments::new(50));
    assert_eq!(config.law, Some(bounds));
    assert_eq!(config.datagrams.queue, Queue::Leave);
    assert_eq!(config.api.socket, Some(PathBuf::from("/run/wakeai/agent.sock")));
    assert_eq!(config.api.group, Some(Group::Name("wakeai".to_owned())));
    assert_eq!(config.log.format, LogFormat::Json);
}

/// What is added to the smallest configuration, and what the error says.
const ERRORS: &[(&str, &str)] = &[
    (
        "[access_point]\nbuffer = 0\n",
        "line 4, column 10: `access_point.buffer`: found 0; allowed: an integer from 1 to 1000000",
    ),
    (
        "metrics = \"0.0.0.0:9719\"\n",
        "line 3, column 11: `metrics`: found \"0.0.0.0:9719\"; allowed: an address of the loopback",
    ),
    (
        "[presence]\nport = 65536\n",
        "line 4, column 8: `presence.port`: found 65536; allowed: an integer from 1 to 65535",
    ),
    (
        "bssid = \"01:00:00:00:00:00\"\n",
        "line 3, column 9: `bssid`: found \"01:00:00:00:00:00\"; allowed: six octets",
    ),
    ("[presence]\nclock_tolerance = \"61s\"\n", "a duration from 1ms to 60s"),
    ("bssid = \"auto \"\n", "or \"auto\""),
    (
        "link_rate = \"0Mbit/s\"\n",
        "line 3, column 13: `link_rate`: found \"0Mbit/s\"; allowed: a rate above zero",
    ),
    ("max = \"fast\"\n", "line 3, column 7: `max`: found \"fast\""),
    ("[access_point]\nbasic_rate = \"1Gbit/s\"\n", "a rate from 1Mbit/s to 54Mbit/s"),
    (
        "[access_point]\nreservable_percent = 96\n",
        "`access_point.reservable_percent`: found 96; allowed: an integer from 0 to 95",
    ),
    ("reserve = \"0bit/s\"\n", "`reserve`: found \"0bit/s\"; allowed: a rate above zero"),
    (
        "[law]\nname = \"fixed\"\n",
        "line 4, column 8: `law.name`: found \"fixed\" without bounds; allowed: a ceiling, a floor or a receive window",
    ),
    (
        "[law]\nname = \"fixed\"\nfloor = 9\nceiling = 8\n",
        "line 6, column 11: `law.ceiling`: found 8; allowed: at least `floor`",
    ),
    (
        "[law]\nname = \"airtime\"\nfloor = 9\n",
        "line 5, column 9: `law.floor`: found 9; allowed: nothing: it is a key of the law \"fixed\"",
    ),
    (
        "[law]\nname = \"fixed\"\nceiling = 9\nqueue_min = \"9ms\"\n",
        "`law.queue_min`: found \"9ms\"; allowed: nothing: it is a key of the law \"airtime\"",
    ),
    (
        "[law]\nname = \"none\"\nqueue_min = \"9ms\"\n",
        "`law.queue_min`: found \"9ms\"; allowed: nothing: it is a key of the law \"airtime\"",
    ),
    (
        "[law]\nname = \"airtime\"\nqueue_min = \"0ms\"\n",
        "`law.queue_min`: found \"0ms\"; allowed: a duration from 1ms to 10s",
    ),
    (
        "[law]\nname = \"airtime\"\nqueue_min = \"20ms\"\nqueue_max = \"5ms\"\n",
        "`law.queue_max`: found queue_min 20ms above queue_max 5ms",
    ),
    ("[law]\nname = \"airtime\"\nqueue_rounds_percent = 0\n", "an integer from 1 to 10000"),
    (
        "[law]\nname = \"best\"\n",
        "`law.name`: found \"best\"; allowed: \"none\", \"fixed\", \"shimada-before\"",
    ),
    ("speed = 3\n", "line 3, column 1: `speed`: found an unknown key; allowed: "),
    ("[api]\nsocket = \"agent.sock\"\n", "an absolute path of at most 107 bytes"),
    ("[api]\ngroup = true\n", "line 4, column 9: `api.group`: found true; allowed: a group's name"),
    (
        "[datagrams]\nqueue = \"htb\"\n",
        "`datagrams.queue`: found \"htb\"; allowed: \"fq\", \"leave\"",
    ),
    ("[log]\nformat = \"xml\"\n", "found \"xml\"; allowed: \"text\", \"json\""),
    ("port\n", "line 3, column "),
];

#[test]
fn an_error_names_line_key_found_and_allowed() {
    for (text, expected) in ERRORS {
        let problem = problem(&format!("{SMALLEST}{text}"));
        assert!(problem.contains(expected), "{text}: {problem}");
    }
}

#[test]
fn an_interface_name_that_the_kernel_would_refuse_is_refused() {
    for name in ["", "a/b", "two words", "sixteen-bytes-xx", ".."] {
        let problem = problem(&format!("interface = {name:?}\nkey_file = \"k\"\n"));
        assert!(problem.contains("line 1, column 13: `interface`: found"), "{problem}");
    }
}

#[test]
fn a_missing_key_is_named() {
    assert!(
        problem("interface = \"wlan0\"\n").contains("`key_file`: found nothing: it is required")
    );
}

#[test]
fn all_problems_are_found_and_the_usable_part_is_kept() {
    let text = "interface = 3\nspeed = 9\nbssid = \"x\"\nmax = \"7Mbit/s\"\n\
                [presence]\nport = 0\nbroadcast = \"10.0.0.255\"\ncolour = \"red\"\n\
                [law]\nname = \"fixed\"\nceiling = \"high\"\n[log]\nlevel = 5\nformat = \"json\"\n";
    let examined = Examined::parse(text, None);
    let found = examined.error.as_ref().unwrap().lines();
    for expected in [
        "line 1, column 1: `key_file`: found nothing",
        "line 1, column 13: `interface`: ",
        "line 2, column 1: `speed`: found an unknown key",
        "line 3, column 9: `bssid`: found \"x\"",
        "line 6, column 8: `presence.port`: found 0",
        "line 8, column 1: `presence.colour`: found an unknown key",
        "line 11, column 11: `law.ceiling`: ",
        "line 13, column 9: `log.level`: ",
    ] {
        let count = found.iter().filter(|problem| problem.contains(expected)).count();
        assert_eq!(count, 1, "{expected}: {found:#?}");
    }
    assert_eq!(found.len(), 8, "{found:#?}");
    for bad in ["interface", "key_file", "bssid", "presence.port", "law", "law.name", "log.level"] {
        assert!(!examined.is_good(bad), "{bad}");
    }
    assert!(
        ["max", "presence", "presence.broadcast", "station"]
            .iter()
            .all(|key| examined.is_good(key))
    );
    let config = examined.config.unwrap();
    assert_eq!(config.max, Some(Rate::from_mbps(7)));
    assert_eq!(config.presence.broadcast, Some(Ipv4Addr::new(10, 0, 0, 255)));
    assert_eq!((config.presence.port, config.log.format), (19719, LogFormat::Json));
}

#[test]
fn one_mistake_is_one_problem() {
    for mistake in [
        "[law]\nname = \"best\"\nceiling = 5\n",
        "[law]\nname = \"fixed\"\nceiling = \"high\"\n",
        "[law]\nceiling = 5\n",
        "law = 5\n",
        "[presence]\nport = [1,\n 2]\n",
        "presence.port = 0\n",
        "access_point = { buffer = 0 }\n",
        "station = -1\n",
    ] {
        let examined = Examined::parse(&format!("{SMALLEST}{mistake}"), None);
        let problems = examined.error.unwrap().lines();
        assert_eq!(problems.len(), 1, "{mistake}: {problems:#?}");
        assert!(examined.config.is_some(), "{mistake}");
    }
}

#[test]
fn a_text_that_is_not_toml_is_one_problem() {
    let examined = Examined::parse("interface = \"wlan0\nkey_file = 3\n", None);
    assert_eq!((examined.error.unwrap().lines().len(), examined.config), (1, None));
}

#[test]
fn the_file_is_named_in_the_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.toml");
    std::fs::write(&path, "interface = 3\n").unwrap();
    let problem = Config::load(&path).unwrap_err().to_string();
    let expected = format!("{} is refused:\n  line 1, column 1: `key_file`: ", path.display());
    assert!(problem.starts_with(&expected), "{problem}");
}

#[test]
fn the_knobs_of_airtime_are_taken_over() {
    let text = "[law]\nname = \"airtime\"\nqueue_rounds_percent = 150\nqueue_min = \"10ms\"\n\
                queue_max = \"40ms\"\n";
    let config = Config::parse(&format!("{SMALLEST}{text}")).unwrap();
    let Some(LawConfig::Airtime(knobs)) = config.law else { panic!("{:?}", config.law) };
    assert_eq!(knobs.queue_rounds_percent, 150);
    assert_eq!(knobs.queue_min, Duration::from_millis(10));
    assert_eq!(knobs.queue_max, Duration::from_millis(40));
}

#[test]
fn a_value_that_no_file_can_have_is_named_when_it_is_written() {
    let good = || Config::new("wlan0", "/etc/wakeai/group.key");
    let bounds = LawConfig::by_hand(Segments::new(9), Segments::new(8));
    let not_utf8 = std::ffi::OsStr::from_bytes(b"\xff");
    let cases: [(Config, &str); 5] = [
        (Config { interface: "a/b".to_owned(), ..good() }, "`interface`: found \"a/b\""),
        (Config { max: Some(Rate::ZERO), ..good() }, "`max`: found \"0bit/s\""),
        (
            Config { access_point: AccessPoint { buffer: 0, ..AccessPoint::default() }, ..good() },
            "`access_point.buffer`: found 0; allowed: an integer from 1 to 1000000",
        ),
        (
            Config { law: Some(bounds), ..good() },
            "`law.ceiling`: found 8; allowed: at least `floor`",
        ),
        (Config { key_file: not_utf8.into(), ..good() }, "cannot be written as TOML"),
    ];
    for (config, expected) in cases {
        let problem = config.to_toml().unwrap_err().to_string();
        assert!(problem.contains(expected), "{problem}");
    }
}

fn rates() -> impl Strategy<Value = Rate> {
    (1_u64..1_000_000_000_000).prop_map(Rate::from_bps)
}

fn automatic<T: Clone + fmt::Debug>(
    given: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    option::of(given)
}

fn laws() -> impl Strategy<Value = Option<LawConfig>> {
    let segments = |range| Strategy::prop_map(range, Segments::new);
    let ceilings = prop_oneof![Just(Segments::MAX), segments(500..=LARGEST_WINDOW)];
    let receive = prop_oneof![Just(Segments::MAX), segments(2..=LARGEST_WINDOW)];
    let knobs = (1_u32..=10_000, 1_u64..5_000, 5_000_u64..10_000, any::<bool>()).prop_map(
        |(percent, min, max, downloads)| AirtimeKnobs {
            queue_rounds_percent: percent,
            queue_min: Duration::from_millis(min),
            queue_max: Duration::from_millis(max),
            downloads,
        },
    );
    prop_oneof![
        Just(None),
        Just(Some(LawConfig::ShimadaBefore)),
        Just(Some(LawConfig::ShimadaAfter)),
        (segments(0..=500), ceilings, 0_u64..=100_000_000, receive).prop_map(|it| {
            let (floor, ceiling, bytes, receive) = it;
            let small_queue = Bytes::new(if ceiling == Segments::MAX { 0 } else { bytes });
            Some(LawConfig::Fixed { floor, ceiling, small_queue, receive })
        }),
        knobs.prop_map(|knobs| Some(LawConfig::Airtime(knobs))),
    ]
}

fn metrics() -> impl Strategy<Value = Local> {
    let addresses = prop_oneof![
        any::<[u8; 3]>().prop_map(|[b, c, d]| IpAddr::from([127, b, c, d])),
        Just(IpAddr::from(Ipv6Addr::LOCALHOST)),
    ];
    (addresses, 1..=u16::MAX)
        .prop_map(|address| Local::try_from(SocketAddr::from(address)).unwrap())
}

fn configs() -> impl Strategy<Value = Config> {
    let octets = any::<[u8; 6]>().prop_map(|[first, rest @ .., last]| {
        let [second, third, fourth, fifth] = rest;
        Bssid([first & !1, second, third, fourth, fifth, last | 1])
    });
    let top = (
        "[a-z0-9\"\\\\é]{1,7}",
        "/[ -~é]{0,40}",
        option::of(any::<u64>()),
        automatic(octets),
        automatic(rates()),
        option::of(rates()),
        option::of(rates()),
        option::of(rates()),
        laws(),
        option::of(metrics()),
    );
    let tolerances = (1_u64..=60_000).prop_map(Duration::from_millis);
    let presence = (1..=u16::MAX, automatic(any::<Ipv4Addr>()), option::of(tolerances));
    let basic_rates = (1_000_000_u64..=54_000_000).prop_map(Rate::from_bps);
    let access_point = (1_u32..=1_000_000, basic_rates, 0_u32..=95);
    let groups = prop_oneof![any::<u32>().prop_map(Group::Id), ".{0,9}".prop_map(Group::Name)];
    let api = (option::of("/[ -~]{0,90}".prop_map(PathBuf::from)), option::of(groups));
    let log = (prop_oneof![Just(LogFormat::Text), Just(LogFormat::Json)], ".{0,20}");
    let queue = prop_oneof![Just(Queue::Fq), Just(Queue::Leave)];
    let all = (top, presence, access_point, queue, api, log);
    all.prop_map(|(top, presence, access_point, queue, api, log)| {
        let (interface, key_file, station, bssid, link_rate, max, max_down, reserve, law, metrics) =
            top;
        let (port, broadcast, clock_tolerance) = presence;
        let (buffer, basic_rate, reservable_percent) = access_point;
        Config {
            interface,
            key_file: key_file.into(),
            station,
            bssid,
            link_rate,
            max,
            max_down,
            reserve,
            metrics,
            presence: Presence { port, broadcast, clock_tolerance },
            access_point: AccessPoint { buffer, basic_rate, reservable_percent },
            law,
            datagrams: Datagrams { queue },
            api: Api { socket: api.0, group: api.1 },
            log: Log { format: log.0, level: log.1 },
        }
    })
}

proptest! {
    #[test]
    fn a_configuration_reads_back_as_it_was_written(config in configs()) {
        let text = config.to_toml().unwrap();
        prop_assert_eq!(Config::parse(&text).unwrap(), config);
    }
}
