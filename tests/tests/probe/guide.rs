//! Runs the commands of `docs/guides/field.md` in their order.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::lab::{Lab, SERVER};
use wakeai_tests::probe::{Listener, inside};
use wakeai_tests::{Machine, stderr, stdout};

/// The lines of the guide's code blocks that are commands.
fn commands() -> Vec<Vec<&'static str>> {
    let guide = include_str!("../../../docs/guides/field.md");
    let blocks = guide.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("wakeai "));
    lines.map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn every_command_of_the_guide_works_as_it_stands_there() {
    let Some(_machine) = Machine::share() else { return };
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("agent.toml");
    wakeai_agent::key::GroupKeys::generate(&directory.path().join("group.key")).unwrap();
    let key = directory.path().join("group.key").display().to_string();
    let text = format!(
        "interface = \"wlan0\" # of the laptop\nkey_file = {key:?}\nbssid = \"02:00:00:00:00:01\"\nstation = 1\n"
    );
    fs::write(&config, text).unwrap();
    let lab = Lab::start(directory.path(), "standard = \"802.11n\"");
    let mut seen = 0;
    // The listener that the next command names.
    let mut listening: Option<Listener> = None;
    for words in commands() {
        seen += 1;
        let probe = words.get(1).copied().unwrap_or("");
        if words[0] == "top" {
            watch(&words, &lab, directory.path());
            continue;
        }
        if probe == "air" {
            // The lab emulates the radio below IP, so its stations have no Wi-Fi interface. The guests' stations have
            // one.
            let output = inside(&lab.name("a")).args(words).output().unwrap();
            let (said, status) = (stderr(&output), output.status.code());
            assert!(status == Some(1) && said.contains("no Wi-Fi interface"), "{said}");
            continue;
        }
        // The listener of `probe buffer` is the station, that of `probe solo` the wired machine.
        let (listens, measures) = if probe == "solo" { ("server", "a") } else { ("a", "server") };
        if words.contains(&"--listen") {
            let address = if listens == "server" { SERVER } else { "10.73.0.1" };
            listening = Some(Listener::start(inside(&lab.name(listens)), probe, address, &[]));
            continue;
        }
        let is_measuring = words.contains(&"--to");
        if is_measuring && listening.is_none() {
            // The listener ends after a measurement. The guide says that the next measurement needs a new one.
            let address = if listens == "server" { SERVER } else { "10.73.0.1" };
            listening = Some(Listener::start(inside(&lab.name(listens)), probe, address, &[]));
        }
        let in_b = || Listener::start(inside(&lab.name("b")), probe, "10.73.0.2", &[]);
        let second = words.contains(&"SECOND").then(in_b);
        let replaced = words.iter().map(|word| match (*word, &listening, &second) {
            ("STATION" | "SERVER", Some(listener), _) => listener.address.clone(),
            ("TOKEN", Some(listener), _) => listener.token.clone(),
            ("SECOND", _, Some(second)) => second.address.clone(),
            ("TOKEN2", _, Some(second)) => second.token.clone(),
            ("/etc/wakeai/agent.toml", ..) => config.display().to_string(),
            (word, ..) => word.to_owned(),
        });
        let host = if is_measuring { measures } else { "a" };
        let mut command: Command = inside(&lab.name(host));
        let output = command.args(replaced).output().unwrap();
        if is_measuring {
            listening = None;
        }
        let shown = format!("{words:?}: {}{}", stdout(&output), stderr(&output));
        println!("{shown}");
        assert!(output.status.success(), "{shown}");
    }
    assert!(seen >= 8, "{seen} commands");
    let written = fs::read_to_string(&config).unwrap();
    assert!(written.contains("# of the laptop") && written.contains("max = "), "{written}");
    drop((listening, lab));
}

/// Runs one of the guide's commands of the live screen for a few readings. Without a terminal it
/// prints them.
fn watch(words: &[&str], lab: &Lab, directory: &Path) {
    let mut words = words.to_vec();
    if !words.contains(&"--json") {
        words.push("--json");
    }
    if !words.contains(&"--once") && !words.contains(&"--replay") {
        words.extend(["--duration", "3s"]);
    }
    let mut command = inside(&lab.name("a"));
    let output = command.args(words).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("{\"at_s\":"), "{}", stdout(&output));
}
