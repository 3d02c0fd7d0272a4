//! A short run of the lab, without and with a law.

use std::time::Instant;

use serde_json::Value;

use crate::{file, passed};
use wakeai_tests::{ANY_LATENESS, nothing_left, stderr, stdout, wakeai};

/// One host has a longer queue than a device has by default on newer kernels.
const SCENARIO: &str = r#"
name = "three"
duration = "5s"
warmup = "1s"
[access_point]
standard = "802.11g"
[wired]
delay = "10ms"
[[stations]]
name = "tablet"
count = 2
max = "20Mbit/s"
[[stations]]
name = "phone"
queue = 60000
max = "20Mbit/s"
[[flows]]
from = "tablet"
to = "server"
[[flows]]
from = "phone"
to = "server"
[[conditions]]
name = "default"
[[conditions]]
name = "airtime"
law = "airtime"
"#;

pub(crate) fn ends_with_its_table() {
    let began = Instant::now();
    let path = file("three.toml", SCENARIO).display().to_string();
    let out = "/tmp/three";
    let found = wakeai(&[&["lab", &path, "--out", out] as &[&str], &ANY_LATENESS].concat());
    let (table, said) = (stdout(&found), stderr(&found));
    println!("{table}{said}");
    assert_eq!(found.status.code(), Some(0));
    for condition in [" default ", " airtime "] {
        assert!(table.lines().any(|line| line.starts_with(condition)), "no row{condition}");
    }
    assert!(!said.contains("lost outside of the medium"), "{said}");
    let report = std::fs::read_to_string(format!("{out}/result.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    for run in report["runs"].as_array().unwrap() {
        let flows = run["flows"].as_array().unwrap();
        assert_eq!(flows.len(), 3);
        assert!(flows.iter().all(|flow| flow["bytes"].as_u64().unwrap() > 100_000), "{flows:?}");
    }
    nothing_left();
    passed("a lab ended with its table", began);
}
