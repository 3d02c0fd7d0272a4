//! The lab as a command, with real agents in its stations.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use support::{Machine, host_state, leftovers, nothing_left, stderr, stdout, wait_for, wakeai};

const SCENARIO: &str = r#"
name = "two"
duration = "8s"
warmup = "2s"
[access_point]
standard = "802.11g"
[wired]
delay = "10ms"
[[stations]]
name = "tablet"
count = 2
max = "20Mbit/s"
[[flows]]
from = "tablet"
to = "server"
[[conditions]]
name = "capped"
law = "fixed"
bounds = [{ stations = "tablet", floor = 1, ceiling = 8 }]
"#;

/// How late the emulated radio may be is another test's matter.
const ANY_LATENESS: [&str; 4] = ["--lateness-p99", "10s", "--lateness-max", "60s"];

fn file(directory: &Path, scenario: &str) -> String {
    let path = directory.join("two.toml");
    fs::write(&path, scenario).unwrap();
    path.display().to_string()
}

/// A lab that runs beside the test, once its agents run.
fn start(path: &str) -> Child {
    let lab = Command::new(env!("CARGO_BIN_EXE_wakeai"))
        .args(["lab", path, "--json"])
        .args(ANY_LATENESS)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the agents run", || {
        let sockets = leftovers().iter().filter(|left| left.contains(".sock")).count();
        (sockets == 2).then_some(())
    });
    lab
}

/// Processes that run the program under test, but for zombies.
fn own_processes() -> usize {
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_wakeai")).unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let running = |path: &Path| fs::read_link(path.join("exe")).is_ok_and(|exe| exe == program);
    entries.filter(|entry| running(&entry.path())).count()
}

#[test]
fn the_result_is_one_json_object_and_agents_hold_their_bounds() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let before = host_state();
    let path = file(directory.path(), SCENARIO);
    let found = wakeai(&[&["lab", &path, "--json"] as &[&str], &ANY_LATENESS].concat());
    assert!(found.status.success(), "{}", stderr(&found));
    let report: Value = serde_json::from_str(&stdout(&found)).unwrap();
    assert_eq!((&report["scenario"], &report["world"]), (&"two".into(), &"lab".into()));
    let run = &report["runs"][0];
    assert_eq!(run["condition"], "capped");
    assert_eq!(run["flows"].as_array().unwrap().len(), 2);
    // 8 segments at 20 ms and more: at most 4.7 Mbit/s for each; uncapped they fill 20 and more.
    let goodput = run["total_goodput_mbps"].as_f64().unwrap();
    assert!(goodput > 0.5 && goodput < 9.5, "{goodput} Mbit/s");
    nothing_left();
    assert_eq!(host_state(), before);
    assert_eq!(own_processes(), 0);
}

#[test]
fn kill_9_of_the_lab_leaves_nothing_after_one_more_command() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let before = host_state();
    let mut lab = start(&file(directory.path(), SCENARIO));
    // Somewhere between the start of the traffic and its end.
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(lab.try_wait().unwrap(), None, "it runs still");
    lab.kill().unwrap();
    lab.wait().unwrap();

    let any = wakeai(&["doctor"]);
    assert!(stderr(&any).contains("removed network namespace"), "{}", stderr(&any));
    nothing_left();
    assert_eq!(host_state(), before);
    wait_for("its processes are gone", || (own_processes() == 0).then_some(()));
    assert_eq!(stderr(&wakeai(&["sweep"])), "", "the second finds nothing");
}

#[test]
fn agents_hear_each_other_over_the_emulated_air() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let law = SCENARIO.find("law = ").unwrap();
    let airtime = format!("{}law = \"airtime\"\n", &SCENARIO[..law]);
    let mut lab = start(&file(directory.path(), &airtime));
    let senders = || {
        let found = wakeai(&["status", "--json"]);
        let text = stdout(&found);
        let agents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let mut senders: Vec<_> =
            agents.flatten().filter_map(|agent| agent["status"]["senders"].as_u64()).collect();
        senders.sort_unstable();
        senders
    };
    wait_for("both count both", || (senders() == [2, 2]).then_some(()));
    kill(Pid::from_raw(lab.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(lab.wait().unwrap().code(), Some(1), "an interrupted run is a failed one");
    nothing_left();
}
