//! `wakeai sim` as a user runs it.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use wakeai_tests::{stderr, stdout, wakeai};

/// Writes a scenario: two stations upload half a megabyte each, under two conditions.
fn scenario(directory: &Path, flow: &str) -> PathBuf {
    let path = directory.join("scenario.toml");
    let text = format!(
        "name = \"small\"\nduration = \"5s\"\n[access_point]\nstandard = \"802.11g\"\n\
         [[stations]]\nname = \"tablet\"\ncount = 2\n\
         [[flows]]\nfrom = \"tablet\"\nto = \"server\"\nsize = \"500kB\"\n{flow}\n\
         [[conditions]]\nname = \"default\"\n\
         [[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"\n"
    );
    fs::write(&path, text).unwrap();
    path
}

/// The result without the keys that differ between equal runs.
fn result(arguments: &[&str]) -> Value {
    let output = wakeai(arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "", "nothing to say beside the result");
    let mut result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    for run in result["runs"].as_array_mut().unwrap() {
        assert!(run.as_object_mut().unwrap().remove("wall_s").is_some());
    }
    result
}

#[test]
fn the_result_is_one_object_that_depends_on_scenario_and_seed_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), "jitter = \"50ms\"");
    let path = path.to_str().unwrap();
    let one = result(&["sim", path, "--json", "--repeat", "2", "--jobs", "1"]);
    assert_eq!((&one["world"], one["runs"].as_array().unwrap().len()), (&"sim".into(), 4));
    assert_eq!(one["runs"][0]["flows"][0]["bytes"], 500_000);
    assert_eq!(one["runs"][0]["stations"][0]["max_from"], "solo");
    assert_eq!(one, result(&["sim", path, "--json", "--repeat", "2", "--jobs", "3"]));
    assert_ne!(one, result(&["sim", path, "--json", "--repeat", "2", "--seed", "5"]));
}

#[test]
fn the_readme_shows_what_its_commands_print() {
    let readme = fs::read_to_string(wakeai_tests::root().join("README.md")).unwrap();
    let quickstart = ["sim", "scenarios/quickstart.toml", "--conditions", "default,airtime"];
    let print = |more: &[&str]| {
        let mut command = Command::new(wakeai_tests::program());
        let command = command.args(quickstart).args(more).current_dir(wakeai_tests::root());
        stdout(&command.output().unwrap())
    };
    let command = format!("$ wakeai {}\n", quickstart.join(" "));
    let (_, shown) = readme.split_once(&command).expect("README.md shows the command");
    let (shown, _) = shown.split_once("```").unwrap();
    assert_eq!(shown, print(&[]));

    let result: Value = serde_json::from_str(&print(&["--repeat", "5", "--json"])).unwrap();
    let figure = |condition: usize, name: &str, decimals: usize| {
        let spread = &result["aggregates"][condition]["figures"][name];
        let [mean, half] = ["mean", "half"].map(|key| spread[key].as_f64().unwrap());
        let half = format!("{half:.decimals$}");
        let is_zero = half.bytes().all(|digit| b"0.".contains(&digit));
        let mean = format!("{mean:.decimals$}");
        if is_zero { mean } else { format!("{mean} ± {half}") }
    };
    let rows = [("rtt_ms.p95", 0), ("total_goodput_mbps", 2), ("jain", 3)];
    for figures in rows.map(|(name, decimals)| [0, 1].map(|of| figure(of, name, decimals))) {
        let is_row = |line: &str| figures.iter().all(|figure| line.contains(figure.as_str()));
        assert!(readme.lines().any(is_row), "no row of README.md has {figures:?}");
    }
}

#[test]
fn a_table_is_printed_and_records_are_kept_with_their_scenario() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), "");
    let out = directory.path().join("out");
    let (path, kept) = (path.to_str().unwrap(), out.to_str().unwrap());
    let table = wakeai(&["sim", path, "--out", kept, "--set", "duration=4s"]);
    assert!(table.status.success(), "{}", stderr(&table));
    assert!(stdout(&table).contains("airtime"), "{}", stdout(&table));
    let manifest = fs::read_to_string(out.join("run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert!(manifest["rows"]["airtime"].as_u64().unwrap() > 0);
    let command = manifest["command"].as_str().unwrap();
    let command = command.replace("scenario.toml", out.join("scenario.toml").to_str().unwrap());
    let mut arguments: Vec<&str> = command.split(' ').skip(1).collect();
    arguments.push("--json");
    let mut first: Value =
        serde_json::from_str(&fs::read_to_string(out.join("result.json")).unwrap()).unwrap();
    for run in first["runs"].as_array_mut().unwrap() {
        run.as_object_mut().unwrap().remove("wall_s");
    }
    assert_eq!(result(&arguments), first);
}

#[test]
fn features_that_the_simulator_lacks_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let cases =
        [("algorithm = \"vegas\"", "vegas", &[][..]), ("", "nobody", &["--conditions", "nobody"])];
    for (flow, named, more) in cases {
        let path = scenario(directory.path(), flow);
        let output = wakeai(&[&["sim", path.to_str().unwrap()], more].concat());
        assert_eq!(output.status.code(), Some(2), "{named}: {}", stderr(&output));
        assert!(stderr(&output).contains(named), "{named}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn records_that_cannot_be_written_exit_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), "");
    let output = wakeai(&["sim", path.to_str().unwrap(), "--out", "/proc/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/proc/nowhere"), "{}", stderr(&output));
}

#[test]
fn packets_are_captured_into_the_directory_of_the_records_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), "");
    let path = path.to_str().unwrap();
    let refused = wakeai(&["sim", path, "--pcap"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--out DIR"), "{}", stderr(&refused));
    let out = directory.path().join("out");
    let output = wakeai(&["sim", path, "--out", out.to_str().unwrap(), "--pcap"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let station = fs::read(out.join("pcap/airtime-0/tablet2.pcapng")).unwrap();
    // Agents in the simulator use the same port as real agents.
    let port = wakeai_api::config::DEFAULT_PORT.to_be_bytes();
    let presence = [[10, 73, 255, 255], [port[0], port[1], port[0], port[1]]].concat();
    assert!(station.windows(presence.len()).any(|bytes| bytes == presence));
}

#[test]
fn results_and_conditions_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let file = scenario(directory.path(), "");
    let file = file.to_str().unwrap();
    let out = directory.path().join("one");
    let out = out.to_str().unwrap();
    let run = |more: &[&str]| wakeai(&[&["sim", file], more].concat());
    assert!(run(&["--repeat", "3", "--out", out]).status.success());
    let other = directory.path().join("other.json");
    fs::write(&other, run(&["--repeat", "3", "--json"]).stdout).unwrap();
    let other = other.to_str().unwrap();
    // The same runs do not differ, and are paired by their seeds.
    let compared = wakeai(&["compare", out, other, "--json"]);
    let value: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let row = &value["conditions"][0];
    assert_eq!(row["paired"], true);
    let goodput = &row["figures"]["total_goodput_mbps"];
    assert_eq!(
        (&goodput["difference"]["mean"], &goodput["difference"]["half"]),
        (&0.0.into(), &0.0.into())
    );
    assert_eq!((&goodput["a"]["runs"], &goodput["a"]), (&3.into(), &goodput["b"]));
    // So are the seeds that both have where one has more.
    fs::write(other, run(&["--repeat", "2", "--json"]).stdout).unwrap();
    let text = stdout(&wakeai(&["compare", out, other]));
    assert!(text.contains("2 runs each, paired by seed; left out"), "{text}");
    // Other seeds are independent runs.
    fs::write(other, run(&["--repeat", "2", "--seed", "9", "--json"]).stdout).unwrap();
    let text = stdout(&wakeai(&["compare", out, other]));
    assert!(text.contains("3 and 2 runs, independent (Welch)"), "{text}");
    // A wrong argument is named, with the reason.
    for (arguments, expected) in [
        (vec!["compare", out], "--conditions A,B"),
        (
            vec!["compare", out, "--conditions", "nobody,default"],
            "there is no condition \"nobody\"",
        ),
        (vec!["compare", out, file], "it is no result"),
        (vec!["compare", out, "/nowhere"], "cannot use /nowhere"),
    ] {
        let refused = wakeai(&arguments);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(expected), "{}", stderr(&refused));
    }
}

#[test]
fn a_value_of_set_that_a_later_one_replaces_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = scenario(directory.path(), "");
    let set =
        ["--set", "duration=1s", "--set", "wired.delay=1ms", "--set", "duration=2s", "--json"];
    let output = wakeai(&[&["sim", file.to_str().unwrap()], &set[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("duration=1s has no effect") && !said.contains("wired"), "{said}");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(value["runs"][0]["simulated_s"].as_f64().unwrap() <= 2.0);
}

#[test]
fn a_scenario_is_read_from_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let file = scenario(directory.path(), "");
    let ask = |text: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wakeai"));
        command.args(["sim", "-", "--json"]).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = ask(&fs::read(file).unwrap());
    assert!(output.status.success(), "{}", stderr(&output));
    let refused = ask(b"name = 3");
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("standard input is refused"), "{}", stderr(&refused));
}
