//! Tests which scenarios are refused, and the messages.
#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::fmt::Write as _;

use wakeai_scenario::{Place, Scenario, ScenarioError};

/// An accepted scenario; each case changes one thing in it.
const GOOD: &str = r#"
name = "x"
duration = "30s"
warmup = "5s"

[access_point]
standard = "802.11n"

[[stations]]
name = "tablet"
count = 12

[[stations]]
name = "phone"

[[flows]]
from = "tablet"
to = "server"

[[conditions]]
name = "default"
"#;

fn refusal(text: &str) -> String {
    match Scenario::parse(text) {
        Ok(_) => "ACCEPTED".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// `GOOD` with `from` replaced by `to`.
fn with(from: &str, to: &str) -> String {
    assert_eq!(GOOD.matches(from).count(), 1, "{from:?} occurs once");
    GOOD.replace(from, to)
}

/// The messages with which [`GOOD`] is refused in each of `cases`, as a readable list.
fn golden(cases: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (from, to) in cases {
        writeln!(text, "{from:?} -> {to:?}").unwrap();
        for line in refusal(&with(from, to)).lines().skip(1) {
            writeln!(text, "{line}").unwrap();
        }
    }
    text
}

const DURATION: &str = "duration = \"30s\"";
const STANDARD: &str = "standard = \"802.11n\"";
const COUNT: &str = "count = 12";
const PHONE: &str = "name = \"phone\"";
const TO: &str = "to = \"server\"";
const CONDITION: &str = "name = \"default\"";

#[test]
fn the_text_that_every_case_starts_from_is_accepted() {
    assert_eq!(refusal(GOOD), "ACCEPTED");
}

#[test]
fn a_wrong_value_is_refused_with_place_found_and_allowed() {
    insta::assert_snapshot!(golden(&[
        (DURATION, "duration = 30"),
        (DURATION, "duration = \"0s\""),
        (DURATION, "duration = \"5s\""),
        (DURATION, "duration = \"9 parsecs\""),
        (DURATION, "duration = 1979-05-27"),
        (DURATION, "# none"),
        ("name = \"x\"", "name = \"\""),
        ("warmup = \"5s\"", "warmup = -5"),
        (STANDARD, "standard = \"802.11y\""),
        (STANDARD, ""),
        (STANDARD, "standard = \"802.11n\"\nqueue = \"codel\""),
        (STANDARD, "standard = \"802.11n\"\nbuffer = \"2kB\""),
        (STANDARD, "standard = \"802.11n\"\nbuffer = 0"),
        (STANDARD, "standard = \"802.11n\"\nbasic_rate = \"7Mbit/s\""),
        (STANDARD, "standard = \"802.11n\"\nwidth = \"80MHz\""),
        (STANDARD, "standard = \"802.11n\"\nguard_interval = \"1600ns\""),
        (STANDARD, "standard = \"802.11g\"\nampdu = 65535"),
        (STANDARD, "standard = \"802.11n\"\nampdu = \"100kB\""),
        (STANDARD, "standard = \"802.11n\"\nstreams = 5"),
        (STANDARD, "standard = \"802.11n\"\ncontention = { cw_min = 16 }"),
        (STANDARD, "standard = \"802.11n\"\ncontention = { cw_min = 63, cw_max = 31 }"),
        (STANDARD, "medium = \"cellular\"\nuplink = \"20Mbit/s\""),
        (COUNT, "count = 0"),
        (COUNT, "count = 10001"),
        (COUNT, "count = 99999999999999999999"),
        (COUNT, "count = 3.5"),
        (COUNT, "rate = \"54Mbit/s\""),
        (COUNT, "frame_error_rate = 1.5"),
        (COUNT, "frame_error_rate = nan"),
        (COUNT, "standard = \"802.11ac\""),
        (COUNT, "tcp = \"windows\""),
        (COUNT, "host_queue = \"codel\""),
        (COUNT, "host_queue = \"mac80211\"\ntcp = \"classic\""),
        (TO, "to = \"server\"\nstart = \"30s\""),
        (TO, "to = \"server\"\nstart = \"29s\"\njitter = \"1s\""),
        (TO, "to = \"server\"\nkind = \"udp\"\nalgorithm = \"cubic\""),
        (TO, "to = \"server\"\nalgorithm = \"A name that is too long\""),
        (TO, "to = \"server\"\nsize = \"10MB\"\nchunks = \"many\""),
        (TO, "to = \"server\"\nchunks = \"auto\""),
        (TO, "to = \"server\"\nturns = true"),
        (TO, "to = \"server\"\nchunks = 2"),
        (TO, "to = \"server\"\nsize = 3\nchunks = 4"),
        (TO, "to = \"server\"\nlimit = \"0Mbit/s\""),
        (TO, "to = \"server\"\nkind = \"udp\"\nlimit = \"2Mbit/s\""),
        (TO, "to = \"server\"\nreserve = true"),
        (TO, "to = \"server\"\nreserve = \"yes\""),
    ]));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_one() {
    insta::assert_snapshot!(golden(&[
        (DURATION, "duration = \"30s\"\nseed = 3"),
        ("warmup", "warm_up"),
        (STANDARD, "standard = \"802.11n\"\nbufer = 300"),
        (COUNT, "cout = 12"),
        (TO, "to = \"server\"\nalgoritm = \"cubic\""),
        (CONDITION, "name = \"default\"\nagent = \"tablet\""),
        (CONDITION, "name = \"default\"\n[wierd]\nrate = \"1Gbit/s\""),
    ]));
}

#[test]
fn a_name_that_is_not_unique_or_means_nobody_is_refused() {
    insta::assert_snapshot!(golden(&[
        (PHONE, "name = \"tablet\""),
        (PHONE, "name = \"tablet7\""),
        (PHONE, "name = \"tablet1\"\ncount = 2"),
        (PHONE, "name = \"server\""),
        (PHONE, "name = \"my phone\""),
        (TO, "to = \"serve\""),
        (TO, "to = \"tablet\""),
        (TO, "to = \"tablet3\""),
        (TO, "to = \"tablet13\""),
        (TO, "to = \"tablet03\""),
        ("from = \"tablet\"", "from = \"server\""),
        (CONDITION, "name = \"default\"\n[[conditions]]\nname = \"default\""),
        (CONDITION, "name = \"a\"\nlaw = \"airtime\"\nagents = \"laptop\""),
    ]));
}

#[test]
fn names_that_only_look_alike_are_accepted() {
    for name in ["tablet0", "tablet13", "tablet07", "tablets", "1", "tablet-1"] {
        assert_eq!(refusal(&with(PHONE, &format!("name = \"{name}\""))), "ACCEPTED", "{name}");
    }
    // The name `tablet1` is free, because a group of one station has only the name `tablet`.
    assert_eq!(refusal(&with(COUNT, "").replace("phone", "tablet1")), "ACCEPTED");
}

#[test]
fn a_law_has_what_it_needs_and_nothing_else() {
    insta::assert_snapshot!(golden(&[
        (CONDITION, "name = \"a\"\nlaw = \"shimada\""),
        (CONDITION, "name = \"a\"\nlaw = \"fixed\""),
        (CONDITION, "name = \"a\"\nlaw = \"fixed\"\nbounds = []"),
        (CONDITION, "name = \"a\"\nbounds = [{ stations = \"tablet\", ceiling = 5 }]"),
        (CONDITION, "name = \"a\"\nlaw = \"airtime\"\nbounds = [{ stations = \"tablet\" }]"),
        (CONDITION, "name = \"a\"\nagents = \"tablet\""),
        (
            CONDITION,
            "name = \"a\"\nlaw = \"fixed\"\n\
             bounds = [{ stations = \"tablet\", floor = 9, ceiling = 5 }]"
        ),
        (
            CONDITION,
            "name = \"a\"\nlaw = \"fixed\"\n\
             bounds = [{ stations = \"tablet\" }, { stations = \"tablet3\" }]"
        ),
    ]));
}

#[test]
fn a_station_with_a_proxy_sends_tcp_to_the_server_with_one_algorithm_and_rate() {
    let proxied = |keys: &str| format!("count = 12\nproxy = true\n{keys}");
    insta::assert_snapshot!(golden(&[
        (COUNT, "proxy = 1"),
        (COUNT, &proxied("tcp = \"classic\"")),
    ]));
    let with_proxy = with(COUNT, &proxied(""));
    assert_eq!(refusal(&with_proxy), "ACCEPTED");
    let second = |keys: &str| format!("to = \"server\"\n[[flows]]\n{keys}");
    let mut text = String::new();
    for flow in [
        "to = \"phone\"".to_owned(),
        "to = \"server\"\nkind = \"udp\"".to_owned(),
        second("from = \"phone\"\nto = \"tablet\""),
        second("from = \"server\"\nto = \"tablet3\""),
        second("from = \"tablet3\"\nto = \"server\"\nalgorithm = \"reno\""),
        second("from = \"tablet3\"\nto = \"server\"\nrate = \"1Mbit/s\""),
    ] {
        writeln!(text, "{flow:?}").unwrap();
        for line in refusal(&with_proxy.replace(TO, &flow)).lines().skip(1) {
            writeln!(text, "{line}").unwrap();
        }
    }
    insta::assert_snapshot!("flows_of_a_station_with_a_proxy", text);
    for flow in [
        second("from = \"tablet3\"\nto = \"server\"\nsize = \"1MB\"\nstart = \"3s\""),
        second("from = \"phone\"\nto = \"server\"\nalgorithm = \"reno\""),
        second("from = \"server\"\nto = \"phone\"\nkind = \"udp\""),
    ] {
        assert_eq!(refusal(&with_proxy.replace(TO, &flow)), "ACCEPTED", "{flow}");
    }
}

#[test]
fn an_event_changes_something_while_the_run_lasts() {
    insta::assert_snapshot!(golden(&[
        (CONDITION, "name = \"a\"\n[[events]]\nat = \"6s\"\nstation = \"tablet2\""),
        (
            CONDITION,
            "name = \"a\"\n[[events]]\nat = \"30s\"\nstation = \"tablet2\"\nwired_delay = \"1s\""
        ),
        (
            CONDITION,
            "name = \"a\"\n[[events]]\nat = \"6s\"\nstation = \"server\"\nrate = \"1Mbit/s\""
        ),
        (
            CONDITION,
            "name = \"a\"\n[[events]]\nat = \"6s\"\nstation = \"phone\"\nrate = \"1Mbit/s\""
        ),
    ]));
}

#[test]
fn what_a_condition_sets_is_checked_where_it_was_written() {
    insta::assert_snapshot!(golden(&[
        (CONDITION, "name = \"a\"\nset = { \"stations.tablet.wired_delay\" = \"2h\" }"),
        (CONDITION, "name = \"a\"\nset = { \"stations.laptop.wired_delay\" = \"2ms\" }"),
        (CONDITION, "name = \"a\"\nset = { \"stations.tablet3.wired_delay\" = \"2ms\" }"),
        (CONDITION, "name = \"a\"\nset = { \"flows.2.algorithm\" = \"reno\" }"),
        (CONDITION, "name = \"a\"\nset = { \"flows.1\" = \"reno\" }"),
        (CONDITION, "name = \"a\"\nset = { \"flows.1.algoritm\" = \"reno\" }"),
        (CONDITION, "name = \"a\"\nset = { duration = \"4s\" }"),
        (CONDITION, "name = \"a\"\nset = { name = \"y\" }"),
        (CONDITION, "name = \"a\"\nset = { \"conditions.a.law\" = \"airtime\" }"),
        (CONDITION, "name = \"a\"\nset = { \"name.first\" = \"y\" }"),
        (CONDITION, "name = \"a\"\nset = { \"access_point..buffer\" = 3 }"),
        (CONDITION, "name = \"a\"\nset = 3"),
    ]));
}

#[test]
fn what_is_not_toml_is_refused_with_its_place() {
    insta::assert_snapshot!(golden(&[
        (DURATION, "duration = "),
        (DURATION, "duration = \"30s\nwarm"),
        (STANDARD, "standard = \"802.11n\"\nstandard = \"802.11n\""),
        (CONDITION, "name = \"default\"\n[[name]]"),
        (CONDITION, "\0"),
    ]));
}

#[test]
fn all_that_is_wrong_is_listed_in_the_order_of_the_file() {
    let text = GOOD.replace("12", "0").replace("802.11n", "802.11q").replace("30s", "x");
    let error = Scenario::parse(&text).unwrap_err();
    let places: Vec<_> = error.problems().iter().map(|problem| problem.place.clone()).collect();
    let file = |line, column| Place::File { line, column };
    assert_eq!(places, [file(3, 12), file(7, 12), file(11, 9)]);
}

#[test]
fn a_long_list_of_problems_is_cut_and_counted() {
    let many: Vec<String> = (0..100).map(|number| format!("key{number} = 1\n")).collect();
    let many = many.concat();
    let error = Scenario::parse(&format!("{many}{GOOD}")).unwrap_err();
    assert_eq!(error.problems().len(), 20);
    assert!(error.to_string().ends_with("and 80 more"), "{error}");
}

#[test]
fn columns_count_characters() {
    let error = Scenario::parse(&with(DURATION, "\"d\\u0075ration\" = \"30s\"; # ü")).unwrap_err();
    assert_eq!(error.problems()[0].place, Place::File { line: 3, column: 24 });
}

#[test]
fn too_many_of_anything_is_refused() {
    let stations = with(COUNT, "count = 9999\n[[stations]]\nname = \"more\"\ncount = 2");
    assert!(refusal(&stations).contains("at most 10000 in all groups"), "{}", refusal(&stations));
    let mesh = with(COUNT, "count = 1000\n[[stations]]\nname = \"more\"\ncount = 1000");
    let mesh = mesh.replace(TO, "to = \"more\"");
    assert!(refusal(&mesh).contains("1000000 flows"), "{}", refusal(&mesh));
    let conditions: Vec<String> =
        (0..101).map(|number| format!("[[conditions]]\nname = \"c{number}\"\n")).collect();
    let conditions = with("[[conditions]]\nname = \"default\"", &conditions.concat());
    assert!(refusal(&conditions).contains("at most 100"), "{}", refusal(&conditions));
}

#[test]
fn a_file_is_named_and_one_that_is_missing_or_huge_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.toml");
    std::fs::write(&path, with(COUNT, "count = 0")).unwrap();
    let text = Scenario::load(&path).unwrap_err().to_string();
    assert!(text.starts_with(&format!("{} is refused:", path.display())), "{text}");
    std::fs::write(&path, "#".repeat(2 << 20)).unwrap();
    assert!(Scenario::load(&path).unwrap_err().to_string().contains("at most 1048576 bytes"));
    let missing = Scenario::load(&directory.path().join("none.toml"));
    assert!(matches!(missing, Err(ScenarioError::Unreadable { .. })));
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(matches!(Scenario::load(&path), Err(ScenarioError::Unreadable { .. })));
}
