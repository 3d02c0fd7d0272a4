//! The dependencies between the crates go one way (ARCHITECTURE.md). This file lists what each
//! crate uses, and the tests fail for any other dependency, and for one that is listed and not used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each crate, with the crates of this workspace that it uses. A crate comes after those that it uses.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("wifi", &["units"]),
    ("connection", &["units"]),
    ("settings", &["units"]),
    ("control", &["units", "settings", "wifi", "connection"]),
    ("medium", &["units", "wifi"]),
    ("algorithms", &["connection"]),
    ("tcp", &["units", "connection", "algorithms"]),
    ("quic", &["units", "connection", "algorithms"]),
    ("net", &["units"]),
    ("daemon", &["net"]),
    ("host", &["units"]),
    ("kernel", &["units", "connection", "host"]),
    ("api", &["units", "settings", "control", "net"]),
    ("agent", &["units", "control", "daemon", "host", "kernel", "api"]),
    ("assign", &["units", "host", "kernel", "api"]),
    ("proxy", &["units", "net", "daemon", "host", "kernel"]),
    ("tus", &[]),
    ("serve", &["units", "net", "daemon", "tus"]),
    ("put", &["units", "control", "net", "api", "tus"]),
    ("probe", &["units", "net"]),
    ("tables", &["units", "connection"]),
    ("scenario", &["units", "settings", "wifi", "control"]),
    ("results", &["units", "connection", "tables", "scenario"]),
    ("world", &["units", "wifi", "connection", "control", "medium", "scenario", "results"]),
    ("report", &["tables", "results"]),
    (
        "sim",
        &[
            "units",
            "connection",
            "control",
            "medium",
            "tcp",
            "quic",
            "scenario",
            "results",
            "world",
        ],
    ),
    ("air", &["units", "wifi", "medium", "host", "scenario", "results", "world"]),
    (
        "lab",
        &[
            "units",
            "wifi",
            "connection",
            "control",
            "medium",
            "net",
            "host",
            "kernel",
            "api",
            "scenario",
            "results",
            "world",
            "air",
        ],
    ),
    (
        "field",
        &[
            "units",
            "connection",
            "settings",
            "control",
            "host",
            "kernel",
            "api",
            "agent",
            "scenario",
            "results",
            "world",
        ],
    ),
    ("validation", &["units", "wifi", "control", "medium", "scenario", "results", "world", "sim"]),
    ("python", &["tables", "scenario", "results", "world", "sim"]),
    ("guest", &[]),
    ("virtual-lab", &["units", "connection", "scenario", "results", "world", "lab", "guest"]),
    ("top", &["units", "connection", "host", "kernel", "api", "tables", "results"]),
    (
        "cli",
        &[
            "units",
            "net",
            "daemon",
            "host",
            "kernel",
            "api",
            "agent",
            "assign",
            "proxy",
            "serve",
            "put",
            "probe",
            "scenario",
            "results",
            "world",
            "report",
            "sim",
            "air",
            "lab",
            "field",
            "top",
            "virtual-lab",
        ],
    ),
    (
        "fuzz-targets",
        &[
            "units",
            "connection",
            "control",
            "host",
            "api",
            "proxy",
            "tus",
            "serve",
            "probe",
            "scenario",
            "results",
            "world",
            "sim",
        ],
    ),
    ("tests", &["host", "kernel", "api", "agent", "connection", "control", "guest", "units"]),
];

/// What only the tests and benches of a crate use in addition.
const ARROWS_OF_TESTS: &[(&str, &[&str])] = &[
    ("kernel", &["guest"]),
    ("put", &["serve"]),
    ("probe", &["wifi", "medium"]),
    ("world", &["tables"]),
    ("cli", &["tests"]),
    ("field", &["guest"]),
];

/// A crate of the workspace.
struct Member {
    /// The folder below `crates/` in which it lies: its wing, or "" for a crate that is in none.
    wing: String,
    manifest: PathBuf,
    uses: BTreeSet<String>,
    /// What only its tests and benches use.
    tests_use: BTreeSet<String>,
}

/// The packages of the workspace, as `cargo metadata` has them.
fn packages() -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(wakeai_tests::root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// The crates of the workspace by their names without `wakeai-`.
fn members() -> BTreeMap<String, Member> {
    packages().iter().map(member).collect()
}

fn member(package: &serde_json::Value) -> (String, Member) {
    let ours = |name: &str| name.strip_prefix("wakeai-").map(str::to_owned);
    let used = |for_tests: bool| -> BTreeSet<String> {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|dependency| (dependency["kind"] == "dev") == for_tests)
            .filter_map(|dependency| ours(dependency["name"].as_str().unwrap()))
            .collect()
    };
    let (uses, all_tests_use) = (used(false), used(true));
    let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
    let below = manifest.strip_prefix(wakeai_tests::root()).unwrap();
    let folders: Vec<_> = below.iter().map(|part| part.to_str().unwrap()).collect();
    let wing = match folders[..] {
        ["crates", wing, _, "Cargo.toml"] => wing.to_owned(),
        _ => String::new(),
    };
    let name = package["name"].as_str().unwrap();
    let tests_use = all_tests_use.difference(&uses).cloned().collect();
    let name = ours(name).unwrap_or_else(|| panic!("{name} is not named wakeai-*"));
    (name, Member { wing, manifest, uses, tests_use })
}

/// The list of `name` in a table; empty where the table has no line for it.
fn listed(table: &[(&str, &[&str])], name: &str) -> BTreeSet<String> {
    let lines = table.iter().filter(|line| line.0 == name);
    lines.flat_map(|line| line.1.iter().map(|used| (*used).to_owned())).collect()
}

#[test]
fn the_arrows_between_crates_are_those_of_the_table() {
    for (name, member) in members() {
        assert_eq!(member.uses, listed(ARROWS, &name), "what {name} uses, and what the table says");
        let tests = listed(ARROWS_OF_TESTS, &name);
        assert_eq!(
            member.tests_use, tests,
            "what the tests of {name} use, and what the table says"
        );
    }
}

#[test]
fn the_table_of_arrows_has_no_cycle_and_no_removed_crate() {
    let existing = members();
    let mut seen = Vec::new();
    for (name, uses) in ARROWS {
        assert!(existing.contains_key(*name), "{name} is in the table and not in the workspace");
        assert!(
            uses.iter().all(|used| seen.contains(used)),
            "{name} uses a crate that comes later"
        );
        seen.push(name);
    }
    assert_eq!(seen.len(), existing.len(), "each crate has one line");
}

#[test]
fn the_arrows_between_the_wings_go_one_way() {
    let members = members();
    for (name, member) in &members {
        let allowed: &[&str] = match (member.wing.as_str(), name.as_str()) {
            ("core", _) => &["core"],
            // It replays the records of an experiment.
            ("device", "top") => &["core", "device", "experiment"],
            ("device", _) => &["core", "device"],
            _ => &["core", "device", "experiment"],
        };
        for used in &member.uses {
            let wing = members[used].wing.as_str();
            assert!(allowed.contains(&wing), "{name} ({}) uses {used} ({wing})", member.wing);
        }
    }
}

#[test]
fn only_the_virtual_lab_and_tests_use_the_crate_of_guests() {
    for (name, member) in members() {
        let allowed = ["virtual-lab", "tests"].contains(&name.as_str());
        assert!(allowed || !member.uses.contains("guest"), "{name}");
    }
}

#[test]
fn nothing_but_the_fuzzer_s_programs_uses_the_crate_of_its_targets() {
    for (name, member) in members() {
        let used = member.uses.union(&member.tests_use).any(|used| used == "fuzz-targets");
        assert!(!used, "{name}");
    }
}

#[test]
fn only_the_kernel_crate_uses_libbpf() {
    for (name, member) in members() {
        let uses = fs::read_to_string(member.manifest).unwrap().contains("libbpf");
        assert_eq!(uses, name == "kernel", "{name}");
    }
}

/// The Rust files below a directory.
fn sources(directory: &Path, found: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn the_page_on_security_names_tests_that_exist() {
    let root = wakeai_tests::root();
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let mut source = String::new();
    for directory in ["crates", "tests"] {
        sources(&root.join(directory), &mut source);
    }
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

/// The places that a row of "Where is …" names and that do not exist. A place with a folder counts from `crates/`, a
/// file without one from the folder that was named before it or from one above that.
fn missing_places(cell: &str, root: &Path) -> Vec<String> {
    let crates = root.join("crates");
    let mut folder = crates.clone();
    let mut missing = Vec::new();
    for place in cell.split('`').skip(1).step_by(2) {
        if !place.contains('/') && Path::new(place).extension().is_none() {
            continue; // the name of an item
        }
        let (place, any_file) = match place.split_once('*') {
            Some((start, _)) => (start.rsplit_once('/').map_or("", |(folder, _)| folder), true),
            None => (place, false),
        };
        let above = folder.ancestors().take_while(|above| above.starts_with(root));
        let Some(there) = [crates.as_path()]
            .into_iter()
            .chain(above)
            .map(|base| base.join(place))
            .find(|path| path.exists())
        else {
            missing.push(place.to_owned());
            continue;
        };
        let is_folder = there.is_dir() || any_file;
        folder = if is_folder { there } else { there.parent().unwrap().to_owned() };
    }
    missing
}

#[test]
fn every_place_that_the_table_names_exists() {
    let root = wakeai_tests::root();
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let table = page.split("## Where is").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 50, "{}", rows.len());
    for row in rows {
        let cell = row.split(" | ").nth(1).unwrap();
        assert_eq!(missing_places(cell, root), Vec::<String>::new(), "{row}");
    }
}

#[test]
fn a_place_that_does_not_exist_is_noticed() {
    let root = wakeai_tests::root();
    let missing = |cell| missing_places(cell, root);
    assert!(missing("`core/units/src`: `rate.rs`; `Rate`; `../packaging/*.service`").is_empty());
    assert_eq!(
        missing("`core/units/src`: `no.rs`; `../no/*.md`, `core/no`"),
        ["no.rs", "../no", "core/no"]
    );
}

#[test]
fn the_fuzzer_s_lock_knows_what_the_crates_depend_on() {
    let lock = fs::read_to_string(wakeai_tests::root().join("fuzz/Cargo.lock")).unwrap();
    let mut locked = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let quoted: Vec<&str> = package.split('"').skip(1).step_by(2).collect();
        let Some((name, rest)) = quoted.split_first() else { continue };
        let names: BTreeSet<_> = rest.iter().filter_map(|text| text.split(' ').next()).collect();
        locked.insert(*name, names);
    }
    let mut compared = 0;
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let Some(known) = locked.get(name) else { continue };
        let all = package["dependencies"].as_array().unwrap().iter();
        for dependency in all.filter(|dependency| dependency["kind"] != "dev") {
            let used = dependency["name"].as_str().unwrap();
            assert!(
                known.contains(used),
                "{name} uses {used}: `cargo metadata --offline` in fuzz/ brings the lock up to date"
            );
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared} dependencies");
}
