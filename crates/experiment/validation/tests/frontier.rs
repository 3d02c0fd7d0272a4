//! The command `frontier` on its smallest setting.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::Path;
use std::process::Command;

use wakeai_validation::frontier::{FrontierReport, FrontierRow, Point};

/// Twenty stations of 802.11g: a few short windows are its whole frontier.
const SETTING: &str = "g-20";

fn frontier(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakeai-validation"));
    let output = command.args(["frontier", SETTING, "--seeds", "1"]).args(arguments).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn row(arguments: &[&str]) -> FrontierRow {
    let report: FrontierReport = serde_json::from_str(&frontier(arguments)).unwrap();
    let [row] = <[FrontierRow; 1]>::try_from(report.settings).unwrap();
    row
}

/// The file `keep`, with another goodput of `default`.
fn with_default_of(keep: &Path, mbps: f64) {
    let mut kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(keep).unwrap()).unwrap();
    let scenario = kept["runs"].as_object_mut().unwrap().values_mut().next().unwrap();
    scenario[""]["1"]["goodput"] = mbps.into();
    std::fs::write(keep, kept.to_string()).unwrap();
}

#[test]
fn a_law_is_drawn_beside_fixed_windows_and_what_does_not_depend_on_it_is_run_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (keep, earlier, pictures) = (path("keep.json"), path("earlier.json"), path("pictures"));
    let json = frontier(&["--keep", &keep, "--json", "--write", &pictures]);
    std::fs::write(&earlier, &json).unwrap();
    let report: FrontierReport = serde_json::from_str(&json).unwrap();
    let first = &report.settings[0];

    let delays: Vec<f64> = first.windows.iter().map(|window| window.point.p95_ms).collect();
    assert!(delays.len() >= 5 && delays[0] < delays[4], "{delays:?}");
    let shortest = first.shortest().unwrap();
    assert!(shortest.point.goodput >= 0.99 * first.law.goodput, "{shortest:?}");
    assert_eq!(first.others.len(), 3, "default and two tables");
    let drawn = std::fs::read(Path::new(&pictures).join("frontier.json")).unwrap();
    let drawn: FrontierReport = serde_json::from_slice(&drawn).unwrap();
    assert_eq!(drawn, report, "validation/frontier.py draws what --json prints");

    let page = std::fs::read_to_string(Path::new(&pictures).join("frontier.md")).unwrap();
    assert!(page.contains("\n| [g-20](g-20.svg) | ") && page.contains("\n|---|---|"), "{page}");
    assert!(page.contains(" of 1 settings hold."), "{page}");

    with_default_of(Path::new(&keep), 1.0);
    let again = row(&["--keep", &keep, "--law-only", "--json"]);
    assert!((again.others["default"].goodput - 1.0).abs() < f64::EPSILON, "taken from the file");
    assert_eq!((again.law, &again.windows), (first.law, &first.windows));

    let table = frontier(&["--keep", &keep, "--law-only", "--baseline", &earlier]);
    assert!(table.contains("goodput at least .99 in 1 of 1 (nine tenths: held)"), "{table}");

    let of_the_papers: Point = first.others["shimada-after"];
    let other = row(&["--keep", &keep, "--law-only", "--json", "--law", "'shimada-after'"]);
    assert_eq!(other.law, of_the_papers, "--law sets the law");
}

#[test]
fn the_terms_of_the_law_are_counted() {
    let table = frontier(&["--terms", "--markdown"]);
    let row = table.lines().find(|line| line.starts_with("| g-20 | ")).expect("a row");
    // 20 stations send for 35 s, of which the first ten do not count.
    let minutes: f64 = row.split(" | ").nth(1).unwrap().parse().unwrap();
    assert!((7.0..9.0).contains(&minutes), "{row}");
    assert!(table.contains("| probing | draining | released | longer target |"), "{table}");
}
