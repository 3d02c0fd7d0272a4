//! Six stations beside the lab, and forty machines on this one.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use wakeai_tests::{ANY_LATENESS, Machine, stderr, stdout, wakeai};

use crate::rig::Rig;

/// Six stations with two conditions; `max` is given, so that no station runs alone.
const SIX: &str = r#"
name = "six"
duration = "15s"
warmup = "3s"
[access_point]
standard = "802.11n"
[wired]
delay = "10ms"
[[stations]]
name = "tablet"
count = 6
max = "50Mbit/s"
[[flows]]
from = "tablet"
to = "server"
[[conditions]]
name = "default"
[[conditions]]
name = "airtime"
law = "airtime"
"#;

/// Forty stations.
const FORTY: &str = r#"
name = "forty"
duration = "20s"
warmup = "2s"
[access_point]
standard = "802.11n"
[wired]
delay = "10ms"
[[stations]]
name = "tablet"
count = 40
[[flows]]
from = "tablet"
to = "server"
"#;

/// The 99th percentile of the lab's lateness up to which it is faithful by its own bounds.
const FAITHFUL_MS: f64 = 1.0;

fn mean(report: &Value, condition: &str, figure: &str) -> f64 {
    let all = report["aggregates"].as_array().unwrap();
    let of = all.iter().find(|one| one["condition"] == condition).unwrap();
    of["figures"][figure]["mean"].as_f64().unwrap()
}

#[test]
#[ignore = "make test-field"]
fn six_machines_on_emulated_air_have_the_lab_s_figures() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(SIX);
    let out = rig.directory.path().join("out");
    let out = out.to_str().unwrap();
    let ended = rig.field(&["--json", "--repeat", "3", "--out", out]);
    assert_eq!(ended.status.code(), Some(0), "{}\n{}", stderr(&ended), stdout(&ended));
    let field: Value = serde_json::from_str(&stdout(&ended)).unwrap();
    let compared = wakeai(&["compare", out, "--conditions", "default,airtime"]);
    assert!(stdout(&compared).contains("3 runs each, paired by block"), "{}", stdout(&compared));
    let scenario = rig.directory.path().join("six.toml");
    fs::write(&scenario, SIX).unwrap();
    drop(rig);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("six.toml");
    fs::write(&path, SIX).unwrap();
    let lab = lab(path.to_str().unwrap());
    for condition in ["default", "airtime"] {
        for figure in ["total_goodput_mbps", "jain", "rtt_ms.p95"] {
            let [field, lab] = [&field, &lab].map(|report| mean(report, condition, figure));
            println!("{condition} {figure}: field {field:.3}, lab {lab:.3}");
        }
    }
    let [field_mbps, lab_mbps] =
        [&field, &lab].map(|one| mean(one, "airtime", "total_goodput_mbps"));
    assert!((field_mbps / lab_mbps - 1.0).abs() < 0.05, "{field_mbps} and {lab_mbps}");
    let [field_jain, lab_jain] = [&field, &lab].map(|one| mean(one, "airtime", "jain"));
    assert!((field_jain - lab_jain).abs() < 0.03, "{field_jain} and {lab_jain}");
    for run in field["runs"].as_array().unwrap() {
        let [skew, error] =
            ["start_skew_ms", "clock_error_ms"].map(|key| run["field"][key].as_f64().unwrap());
        println!("start skew {skew:.2} ms, clocks within {error:.2} ms");
        assert!(skew + error < 20.0, "{skew} ms, {error} ms");
    }
}

/// The report of the lab. Where the machine has kept it waiting, so that its air was another one, it is run again, twice at most.
fn lab(path: &str) -> Value {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let lab = wakeai(&[&["lab", path, "--json", "--repeat", "3"][..], &ANY_LATENESS].concat());
        assert_eq!(lab.status.code(), Some(0), "{}", stderr(&lab));
        let report: Value = serde_json::from_str(&stdout(&lab)).unwrap();
        let runs = report["runs"].as_array().unwrap().iter();
        let late_ms: Vec<f64> =
            runs.map(|run| run["lateness"]["p99_ms"].as_f64().unwrap()).collect();
        println!("lateness of the lab: {late_ms:.2?} ms");
        if attempts == 3 || late_ms.iter().all(|late| *late <= FAITHFUL_MS) {
            return report;
        }
    }
}

/// The processor time of a process and of its children that run, seconds.
fn processor_s(pid: u32) -> f64 {
    let of = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks =
            |index: usize| fields.get(index).and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
        (ticks(11) + ticks(12)) / 100.0
    };
    let children = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().flat_map(|task| {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    of(&pid.to_string()) + children.map(|child| of(&child)).sum::<f64>()
}

#[test]
#[ignore = "make test-field"]
fn forty_machines_need_little_of_their_connections_and_of_the_controlling_machine() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(FORTY);
    let running = rig.start(&["--solo", "0s", "--json"]);
    rig.wait_for_traffic("tablet40");
    std::thread::sleep(Duration::from_secs(2));
    let (bytes, processor, began) = (rig.carried(), processor_s(running.id()), Instant::now());
    std::thread::sleep(Duration::from_secs(12));
    let (after, used) = (rig.carried(), processor_s(running.id()) - processor);
    let seconds = began.elapsed().as_secs_f64();
    let most =
        bytes.iter().zip(&after).map(|(a, b)| (b - a) as f64 * 8.0 / seconds).fold(0.0, f64::max);
    println!(
        "a connection carries at most {most:.0} bit/s; the controller takes {:.2} % of a core",
        used / seconds * 100.0
    );
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    assert!(most <= 2_000.0, "{most} bit/s");
    assert!(used / seconds < 0.05, "{used} s of {seconds} s");
    let report: Value = serde_json::from_str(&stdout(&ended)).unwrap();
    println!("start skew of forty: {}", report["runs"][0]["field"]["start_skew_ms"]);
    rig.wait_until_nothing_is_left();
}
