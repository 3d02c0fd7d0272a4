//! The dependencies between the crates go one way (ARCHITECTURE.md). This file lists what each
//! crate may use, and the test fails for any other dependency.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Each crate, with the crates of this workspace that it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("net", &["units"]),
    ("metrics", &["net"]),
    ("wifi", &["units"]),
    ("connection", &["units"]),
    ("control", &["units", "wifi", "connection"]),
    ("medium", &["units", "wifi"]),
    ("algorithms", &["units", "connection"]),
    ("tables", &["units", "connection"]),
    ("scenario", &["units", "wifi", "connection", "tables"]),
    ("report", &["scenario", "tables"]),
    ("host", &["units"]),
    ("api", &["units", "control", "metrics"]),
    // Its tests read the records back.
    ("world", &["units", "wifi", "connection", "tables", "control", "medium", "scenario"]),
    ("tcp", &["units", "connection", "algorithms"]),
    (
        "sim",
        &["units", "connection", "control", "medium", "algorithms", "scenario", "tcp", "world"],
    ),
    ("validation", &["units", "wifi", "control", "medium", "scenario", "world", "sim"]),
    ("python", &["scenario", "world", "sim"]),
    ("guest", &[]),
    ("kernel", &["units", "connection", "algorithms", "host", "guest"]),
    ("agent", &["units", "control", "metrics", "api", "host", "kernel"]),
    ("proxy", &["units", "net", "metrics", "host", "kernel"]),
    ("transfer", &["units", "net", "control", "metrics", "api"]),
    ("assign", &["units", "api", "host", "kernel"]),
    ("top", &["units", "connection", "tables", "scenario", "host", "api", "kernel"]),
    ("probe", &["units", "net", "wifi", "medium"]), // its tests send through the medium
    (
        "fuzz-targets",
        &[
            "units",
            "connection",
            "control",
            "scenario",
            "api",
            "host",
            "world",
            "sim",
            "proxy",
            "probe",
            "transfer",
        ],
    ),
    (
        "lab",
        &[
            "units",
            "wifi",
            "connection",
            "control",
            "metrics",
            "medium",
            "scenario",
            "api",
            "host",
            "kernel",
            "world",
        ],
    ),
    (
        "cli",
        &[
            "units", "net", "metrics", "scenario", "api", "host", "kernel", "assign", "agent",
            "world", "sim", "lab", "proxy", "probe", "report", "top", "transfer", "guest",
        ],
    ),
];

/// The crates of the workspace, each with the other crates that it uses, also for tests only.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ours = |name: &str| name.strip_prefix("wakeai-").map(str::to_owned);
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let name = package["name"].as_str().unwrap();
            let used = package["dependencies"].as_array().unwrap().iter();
            let used = used.filter_map(|dependency| ours(dependency["name"].as_str().unwrap()));
            (ours(name).unwrap_or_else(|| panic!("{name} is not named wakeai-*")), used.collect())
        })
        .collect()
}

#[test]
fn every_arrow_between_crates_is_an_allowed_one() {
    let allowed: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    for (name, used) in dependencies() {
        let may_use = allowed
            .get(name.as_str())
            .unwrap_or_else(|| panic!("crate {name} has no place in the architecture yet"));
        for other in used {
            assert!(
                may_use.contains(&other.as_str()),
                "{name} must not use {other}; it may use {may_use:?}"
            );
        }
    }
}

#[test]
fn the_table_of_arrows_has_no_cycle_and_no_removed_crate() {
    let existing = dependencies();
    let mut seen = Vec::new();
    for (name, uses) in ARROWS {
        assert!(existing.contains_key(*name), "{name} is in the table and not in the workspace");
        assert!(
            uses.iter().all(|used| seen.contains(used)),
            "{name} uses a crate that comes later"
        );
        seen.push(name);
    }
}

#[test]
fn only_tests_use_the_crate_of_guests() {
    for (name, _) in ARROWS {
        let manifest = format!("{}/../{name}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let built_with = manifest.split("[dev-dependencies]").next().unwrap();
        assert!(!built_with.contains("wakeai-guest."), "{name}");
    }
}

#[test]
fn nothing_but_the_fuzzer_s_programs_uses_the_crate_of_its_targets() {
    for (name, used) in dependencies() {
        assert!(!used.contains(&"fuzz-targets".to_owned()), "{name}");
    }
}

#[test]
fn only_the_kernel_crate_uses_libbpf() {
    for (name, _) in ARROWS {
        let manifest = format!("{}/../{name}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let uses = std::fs::read_to_string(manifest).unwrap().contains("libbpf");
        assert_eq!(uses, *name == "kernel", "{name}");
    }
}

/// The Rust files below a directory.
fn sources(directory: &Path, found: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn the_page_on_security_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let mut source = String::new();
    sources(&root.join("crates"), &mut source);
    let quoted = page.split('`').skip(1).step_by(2);
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    // A name with three underscores or more is the name of a test. The names of options and
    // counters have fewer.
    let tests = quoted.filter(|name| name.chars().all(word) && name.matches('_').count() >= 3);
    let tests: Vec<&str> = tests.collect();
    assert!(tests.len() > 40, "{}", tests.len());
    for name in tests {
        let is_there = [format!("fn {name}("), format!(" {name},\n")];
        assert!(is_there.iter().any(|text| source.contains(text)), "{name}");
    }
}
