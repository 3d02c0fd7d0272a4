//! Checks the users of the systemd units, and the exposure of the units as `systemd-analyze
//! security` computes it.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test is skipped")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest allowed exposure of a unit, on systemd's scale from 0 to 10.
const ALLOWED: f64 = 3.0;

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn units() -> Vec<PathBuf> {
    let files = fs::read_dir(packaging()).unwrap().map(|entry| entry.unwrap().path());
    let mut units: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|it| it == "service")).collect();
    units.sort();
    units
}

#[test]
fn each_unit_is_exposed_by_three_of_ten_at_most() {
    assert_eq!(units().len(), 2, "{:?}", units());
    for unit in units() {
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(["security", "--offline=true", "--no-pager"]).arg(&unit);
        let Ok(found) = analyze.output() else {
            println!("SKIPPED: there is no systemd-analyze");
            return;
        };
        let said = String::from_utf8(found.stdout).unwrap();
        if said.is_empty() {
            // Before systemd 250, systemd-analyze has no --offline.
            println!("SKIPPED: {}", String::from_utf8_lossy(&found.stderr));
            return;
        }
        let (_, overall) = said.rsplit_once("Overall exposure level for ").unwrap();
        let exposure: f64 = overall.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
        assert!(exposure <= ALLOWED, "{}: {overall}", unit.display());
    }
}

/// The users of the units are those that `packaging/wakeai.conf` makes.
#[test]
fn each_unit_serves_as_a_user_of_its_own() {
    let made = fs::read_to_string(packaging().join("wakeai.conf")).unwrap();
    let made: Vec<_> = made
        .lines()
        .filter_map(|line| line.strip_prefix("u ")?.split_whitespace().next())
        .collect();
    let named: Vec<_> = units()
        .iter()
        .map(|unit| {
            let text = fs::read_to_string(unit).unwrap();
            let start = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
            let (_, rest) = start.split_once("--user ").unwrap();
            rest.split_whitespace().next().unwrap().to_owned()
        })
        .collect();
    assert_eq!(named, made);
}
