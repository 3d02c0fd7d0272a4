//! The arrows between the crates point one way (ARCHITECTURE.md): what a crate may use is listed
//! here, and a dependency that is not listed fails.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::collections::BTreeMap;
use std::process::Command;

/// Each crate, with the crates of this workspace that it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("wifi", &["units"]),
    ("connection", &["units"]),
    ("control", &["units", "wifi", "connection"]),
    ("medium", &["units", "wifi"]),
    ("algorithms", &["units", "connection"]),
    ("scenario", &["units", "wifi", "connection"]),
    ("host", &["units"]),
    ("api", &["units", "control"]),
    ("world", &["units", "wifi", "connection", "control", "medium", "scenario"]),
    ("tcp", &["units", "connection", "algorithms"]),
    (
        "sim",
        &["units", "connection", "control", "medium", "algorithms", "scenario", "tcp", "world"],
    ),
    ("validation", &["units", "medium", "scenario", "world", "sim"]),
    ("guest", &[]),
    ("kernel", &["units", "connection", "algorithms", "host", "guest"]),
    ("agent", &["units", "control", "api", "host", "kernel"]),
    ("proxy", &["units", "host", "kernel"]),
    ("assign", &["units", "api", "host", "kernel"]),
    (
        "lab",
        &[
            "units",
            "wifi",
            "connection",
            "control",
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
            "units", "scenario", "api", "host", "kernel", "assign", "agent", "world", "sim", "lab",
            "proxy", "guest",
        ],
    ),
];

/// The crates of the workspace and what each uses of the others, for building and for tests.
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
fn only_the_kernel_crate_uses_libbpf() {
    for (name, _) in ARROWS {
        let manifest = format!("{}/../{name}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let uses = std::fs::read_to_string(manifest).unwrap().contains("libbpf");
        assert_eq!(uses, *name == "kernel", "{name}");
    }
}
