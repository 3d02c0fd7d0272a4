//! `wakeai lab --kernel` with the kernel's own 802.11 stack, beside the simulator's model of the same file: hosts with TCP small
//! queues. The guests' clock counts instructions, so a figure is the same on any machine as long as the kernel and the
//! program are.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A scenario with this standard, number of stations and direction, whose rates are pinned.
fn scenario(standard: &str, stations: u32, (from, to): (&str, &str), seconds: u32) -> String {
    format!(
        "name = \"stack\"\nduration = \"{seconds}s\"\nwarmup = \"1s\"\n\
         [access_point]\nstandard = \"{standard}\"\nstack = \"mac80211\"\nbuffer = 180\n\
         [wired]\ndelay = \"5ms\"\n\
         [[stations]]\nname = \"sta\"\ncount = {stations}\nmax = \"50Mbit/s\"\n\
         [[flows]]\nfrom = \"{from}\"\nto = \"{to}\"\n\
         [[conditions]]\nname = \"default\"\n\
         [[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"\n"
    )
}

/// What makes the runs of a condition in guests.
const LAB: [&str; 5] = ["lab", "--kernel", "6.12", "--jobs", "1"];

/// The means of goodput in Mbit/s and of Jain's index over a command's runs of a condition.
#[derive(Debug)]
struct Figures {
    mbps: f64,
    jain: f64,
}

fn figures(report: &Value) -> Figures {
    let runs = report["runs"].as_array().unwrap();
    let mean = |key: &str| {
        let sum: f64 = runs.iter().map(|run| run[key].as_f64().unwrap()).sum();
        sum / runs.len() as f64
    };
    Figures { mbps: mean("total_goodput_mbps"), jain: mean("jain") }
}

/// The result of `wakeai` with these words about a scenario.
fn result(words: &[&str], text: &str, condition: &str, repeat: u32) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.toml");
    std::fs::write(&file, text).unwrap();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("virtual-lab");
    std::fs::create_dir_all(&cache).unwrap();
    let run = Command::new(wakeai_tests::program())
        .arg(words[0])
        .arg(&file)
        .args(&words[1..])
        .args(["--json", "--conditions", condition, "--repeat", &repeat.to_string()])
        .env("XDG_CACHE_HOME", cache)
        .output()
        .unwrap();
    // A run that was not faithful has another status.
    assert!(run.status.success(), "{words:?} {condition}: {}", wakeai_tests::stderr(&run));
    serde_json::from_slice(&run.stdout).unwrap()
}

/// Whether goodput and Jain's index of the guests' runs are within these tolerances of the simulator's.
fn compare(text: &str, condition: &str, repeat: u32, (goodput, jain): (f64, f64)) {
    if let Err(reason) = wakeai_guest::Program::tool("hostapd") {
        return wakeai_guest::testing::skip(&reason.to_string());
    }
    let modelled = figures(&result(&["sim"], text, condition, 10));
    let report = result(&LAB, text, condition, repeat);
    let found = figures(&report);
    let late = &report["runs"][0]["lateness"];
    println!("{condition}: {found:.3?}, the simulator has {modelled:.3?}; {late}");
    let ratio = found.mbps / modelled.mbps;
    assert!((1.0 - goodput..1.0 + goodput).contains(&ratio), "{found:?} {modelled:?}");
    assert!((found.jain - modelled.jain).abs() < jain, "{found:?} {modelled:?}");
}

const UP: (&str, &str) = ("sta", "server");
const DOWN: (&str, &str) = ("server", "sta");

#[test]
#[ignore = "boots guests: minutes"]
fn one_station_of_802_11g_has_what_the_simulator_says() {
    for condition in ["default", "airtime"] {
        compare(&scenario("802.11g", 1, UP, 6), condition, 1, (0.05, 0.001));
    }
}

/// Without another station nothing is lost, so Minstrel finds the highest rate, whatever the scenario's is. Now and then it
/// tries another one.
#[test]
#[ignore = "boots a guest: minutes"]
fn minstrel_finds_the_rate_of_one_station() {
    if let Err(reason) = wakeai_guest::Program::tool("hostapd") {
        return wakeai_guest::testing::skip(&reason.to_string());
    }
    let text = scenario("802.11g", 1, UP, 6);
    let modelled = figures(&result(&["sim"], &text, "default", 10));
    let text = text.replace("\"mac80211\"", "\"mac80211-minstrel\"");
    let text = text.replace("count = 1", "count = 1\nrate = \"12Mbit/s\"");
    let found = figures(&result(&LAB, &text, "default", 1));
    println!("{found:.3?}, the simulator has {modelled:.3?} at 54 Mbit/s");
    assert!((0.9..1.02).contains(&(found.mbps / modelled.mbps)), "{found:?} {modelled:?}");
}

/// The index of six stations without a law differs by .04 from run to run.
#[test]
#[ignore = "boots guests: minutes"]
fn six_stations_of_802_11n_share_as_the_simulator_says_without_a_law() {
    compare(&scenario("802.11n", 6, UP, 12), "default", 3, (0.15, 0.05));
}

#[test]
#[ignore = "boots guests: minutes"]
fn six_stations_of_802_11n_share_as_the_simulator_says_under_airtime() {
    compare(&scenario("802.11n", 6, UP, 12), "airtime", 1, (0.15, 0.05));
}

#[test]
#[ignore = "boots guests: minutes"]
fn six_stations_of_802_11n_download_as_the_simulator_says() {
    for condition in ["default", "airtime"] {
        compare(&scenario("802.11n", 6, DOWN, 6), condition, 1, (0.15, 0.1));
    }
}

/// Twelve stations with windows of 16 segments. With Linux's own limit two packets of each wait at its radio, so that most
/// transmissions carry little; the budget lets one aggregate wait there.
#[test]
#[ignore = "boots guests: minutes"]
fn the_budget_of_one_aggregate_gains_where_small_queues_are_linux_s() {
    if let Err(reason) = wakeai_guest::Program::tool("hostapd") {
        return wakeai_guest::testing::skip(&reason.to_string());
    }
    let window = |name: &str, budget: &str| {
        format!(
            "[[conditions]]\nname = \"{name}\"\nlaw = \"fixed\"\n\
             bounds = [{{ stations = \"sta\", floor = 16, ceiling = 16{budget} }}]\n"
        )
    };
    let (plain, larger) = (window("plain", ""), window("larger", ", small_queue = 65535"));
    let text = format!("{}{plain}{larger}", scenario("802.11n", 12, UP, 4));
    let [without, with] = ["plain", "larger"].map(|condition| {
        let report = result(&LAB, &text, condition, 1);
        let sent = &report["runs"][0]["frames"];
        let frames = sent["mpdus"].as_f64().unwrap() / sent["ppdus"].as_f64().unwrap();
        (figures(&report), frames)
    });
    println!("without {without:.2?}, with {with:.2?} (frames in a transmission)");
    assert!(with.0.mbps > 1.15 * without.0.mbps, "{with:?} {without:?}");
    assert!(with.1 > 1.5 * without.1, "{with:?} {without:?}");
    assert!(with.0.jain > 0.97, "{with:?}");
}
