//! Checks what `packaging/` has: the users of the systemd units, the exposure of the units as
//! `systemd-analyze security` computes it, and the default configuration of Debian's package.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use wakeai_api::config::Config;

/// The largest allowed exposure of a unit, on systemd's scale from 0 to 10.
const ALLOWED: f64 = 3.0;

fn packaging() -> PathBuf {
    wakeai_tests::root().join("packaging")
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
    assert_eq!(units().len(), 3, "{:?}", units());
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
            if let Some(user) = text.lines().find_map(|line| line.strip_prefix("User=")) {
                return user.to_owned();
            }
            let start = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
            let (_, rest) = start.split_once("--user ").unwrap();
            rest.split_whitespace().next().unwrap().to_owned()
        })
        .collect();
    assert_eq!(named, made);
}

/// The keys of the default configuration, set or in a comment, each as `law.name` with its value.
fn keys(text: &str) -> Vec<(String, String)> {
    let mut table = String::new();
    let mut keys = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = format!("{name}.");
        }
        let line = line.strip_prefix('#').unwrap_or(line);
        let Some((key, value)) = line.split_once(" = ") else { continue };
        if key.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            keys.push((format!("{table}{key}"), value.to_owned()));
        }
    }
    keys
}

fn default_configuration() -> String {
    fs::read_to_string(packaging().join("etc/agent.toml")).unwrap()
}

#[test]
fn the_default_configuration_has_the_required_keys_and_no_other() {
    let config = Config::parse(&default_configuration()).unwrap();
    assert_eq!(config, Config::new("wlan0", "/etc/wakeai/group.key"));
}

/// Each row of the reference page is a key in the file; where it has a default, the file shows this default.
#[test]
fn the_default_configuration_shows_every_key_with_its_default() {
    let page = include_str!("../../../docs/reference/agent.md");
    let (_, page) = page.split_once("## Configuration\n").unwrap();
    let page = page.split("\n## ").next().unwrap();
    let shown = keys(&default_configuration());
    let mut documented = 0;
    for row in page.lines().filter_map(|line| line.strip_prefix("| `")) {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let (key, default) = (cells[0], cells[1]);
        documented += 1;
        let (_, value) =
            shown.iter().find(|(name, _)| name == key).unwrap_or_else(|| panic!("{key}"));
        let is_value =
            default.starts_with('"') || default.starts_with(|c: char| c.is_ascii_digit());
        if is_value {
            assert_eq!(value, default, "{key}");
        }
    }
    assert_eq!(shown.len(), documented, "{shown:?}");
}

#[test]
fn each_line_of_the_default_configuration_can_be_set() {
    let text = default_configuration();
    for (key, value) in keys(&text) {
        let name = key.rsplit('.').next().unwrap();
        let line = format!("{name} = {value}");
        let mut set = text.replace(&format!("#{line}\n"), &format!("{line}\n"));
        if ["floor", "ceiling", "small_queue", "receive"].contains(&name) {
            set = set.replace("name = \"airtime\"", "name = \"fixed\"");
        }
        if name == "small_queue" {
            set = set.replace("#ceiling = ", "ceiling = ");
        }
        assert!(set.contains(&format!("\n{line}\n")), "{key}");
        Config::parse(&set).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
}

#[test]
fn the_configuration_of_version_0_1_0_is_read() {
    let config = Config::load(&packaging().join("test/agent-0.1.0.toml")).unwrap();
    assert_eq!((config.interface.as_str(), config.station), ("wifi0", Some(17)));
    assert_eq!(config.reserve, Some("1Mbit/s".parse().unwrap()));
    assert_eq!(config.law_name(), "airtime");
    assert_eq!(config.access_point.reservable_percent, 80);
}
