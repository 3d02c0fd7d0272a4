//! The lab as a command, with real agents in its stations.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use wakeai_host::Namespace;
use wakeai_tests::{
    ANY_LATENESS, Machine, host_state, leftovers, must, nothing_left, stderr, stdout, wait_for,
    wakeai,
};

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

/// A scenario with a sender behind a proxy, which gives the sender's connection a target rate on
/// the air, and a sender without a proxy.
const PROXIED: &str = r#"
name = "two"
duration = "11s"
warmup = "2s"
[access_point]
standard = "802.11g"
[wired]
delay = "10ms"
[[stations]]
name = "player"
proxy = true
max = "20Mbit/s"
[[stations]]
name = "tablet"
max = "20Mbit/s"
[[flows]]
from = "player"
to = "server"
algorithm = "wakeai_av"
rate = "4Mbit/s"
[[flows]]
from = "tablet"
to = "server"
algorithm = "wakeai_reno"
"#;

fn file(directory: &Path, scenario: &str) -> String {
    let path = directory.join("two.toml");
    fs::write(&path, scenario).unwrap();
    path.display().to_string()
}

/// Starts a lab that runs while the test goes on.
fn lab_process(path: &str, more: &[&str]) -> Child {
    Command::new(wakeai_tests::program())
        .args(["lab", path, "--json"])
        .args(ANY_LATENESS)
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Starts a lab, and waits until this number of its agents and proxies run.
fn start(path: &str, helpers: usize, more: &[&str]) -> Child {
    let lab = lab_process(path, more);
    // The lab itself is one of the counted processes.
    wait_for("agents and proxies run", || (own_processes() == 1 + helpers).then_some(()));
    lab
}

/// As [`start`], but also waits until the agents listen.
fn start_with_agents(path: &str, more: &[&str]) -> Child {
    let lab = start(path, 2, more);
    wait_for("the agents run", || {
        let sockets = leftovers().iter().filter(|left| left.contains(".sock")).count();
        (sockets == 2).then_some(())
    });
    lab
}

/// The number of processes that run the program under test, without zombies.
fn own_processes() -> usize {
    let program = fs::canonicalize(wakeai_tests::program()).unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let running = |path: &Path| fs::read_link(path.join("exe")).is_ok_and(|exe| exe == program);
    entries.filter(|entry| running(&entry.path())).count()
}

/// The number of iperf3 clients.
fn clients() -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let arguments = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    arguments.filter(|arguments| arguments.starts_with(b"iperf3\0--client\0")).count()
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
    // A window of 8 segments over at least 20 ms carries at most 4.7 Mbit/s per flow. Without a ceiling the flows
    // reach 20 Mbit/s and more.
    let goodput = run["total_goodput_mbps"].as_f64().unwrap();
    assert!(goodput > 0.5 && goodput < 9.5, "{goodput} Mbit/s");
    // Every wait takes some time, so 0 would mean that no wait was measured.
    assert!(run["lateness"]["waits_p99_ms"].as_f64().unwrap() > 0.0);
    nothing_left();
    assert_eq!(host_state(), before);
    assert_eq!(own_processes(), 0);
}

#[test]
fn a_run_whose_agents_starved_is_not_faithful() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    // No process wakes within a nanosecond, so every run with agents exceeds this bound.
    let starving = ["--lateness-p99", "10s", "--lateness-max", "60s", "--waits-p99", "1ns"];
    let plain = "[[conditions]]\nname = \"plain\"\n";
    let short = format!("{}{plain}", SCENARIO.replace("8s", "3s").replace("warmup = \"2s\"", ""));
    let path = file(directory.path(), &short);
    let run = |conditions: &str| {
        let arguments = ["lab", &path, "--json", "--conditions", conditions];
        let found = wakeai(&[&arguments as &[&str], &starving].concat());
        let report: Value = serde_json::from_str(&stdout(&found)).unwrap();
        (found.status.code(), report["runs"][0]["lateness"]["faithful"].clone(), stderr(&found))
    };
    let (status, faithful, said) = run("capped");
    assert_eq!((status, faithful), (Some(1), false.into()), "{said}");
    assert!(said.contains("the run capped 1 was not faithful"), "{said}");
    assert!(said.contains("waited") && said.contains("--waits-p99"), "{said}");
    let (status, faithful, said) = run("plain");
    assert_eq!((status, faithful), (Some(0), true.into()), "no agent that could starve: {said}");
    nothing_left();
}

#[test]
fn a_run_whose_network_another_program_changes_fails_and_says_what_changed() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let before = host_state();
    let lab = start_with_agents(&file(directory.path(), &SCENARIO.replace("8s", "60s")), &[]);
    wait_for("the flows run", || (clients() == 2).then_some(()));
    must("ip", &format!("-n wakeai-{}-server route add 198.51.100.0/24 dev lo", lab.id()));
    let ended = lab.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let said = stderr(&ended);
    assert!(said.contains("new route 198.51.100.0/24 dev lo"), "{said}");
    nothing_left();
    assert_eq!(host_state(), before);
}

#[test]
fn kill_9_of_the_lab_leaves_nothing_after_one_more_command() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let before = host_state();
    let mut lab = start_with_agents(&file(directory.path(), &SCENARIO.replace("8s", "60s")), &[]);
    wait_for("the flows run", || (clients() == 2).then_some(()));
    assert_eq!(lab.try_wait().unwrap(), None, "the lab still runs");
    lab.kill().unwrap();
    lab.wait().unwrap();

    let any = wakeai(&["doctor"]);
    assert!(stderr(&any).contains("removed network namespace"), "{}", stderr(&any));
    nothing_left();
    assert_eq!(host_state(), before);
    wait_for("the lab's processes are gone", || (own_processes() == 0).then_some(()));
    assert_eq!(stderr(&wakeai(&["sweep"])), "", "the second command finds nothing");
}

#[test]
fn a_sender_behind_a_proxy_is_carried_with_its_target_and_nothing_is_left() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let before = host_state();
    let path = file(directory.path(), PROXIED);
    let out = directory.path().join("out").display().to_string();
    let arguments = [&["lab", &path, "--json", "--out", &out] as &[&str], &ANY_LATENESS].concat();
    let found = wakeai(&arguments);
    assert!(found.status.success(), "{}", stderr(&found));
    let report: Value = serde_json::from_str(&stdout(&found)).unwrap();
    let flows = report["runs"][0]["flows"].as_array().unwrap();
    assert_eq!(flows[0]["algorithm"], "wakeai_av");
    assert!(flows[0]["avr"].is_number() && flows[1]["avr"].is_null(), "{flows:?}");
    let received = flows[0]["bytes"].as_u64().unwrap();
    assert!(received > 1_000_000, "{received} bytes");
    // All bytes went through the proxy, which reports its counters at its end.
    let counts = fs::read_dir(format!("{out}/agents/default-0")).unwrap().flatten();
    let counts = counts.map(|entry| entry.path()).find(|path| path.ends_with("player.proxy.json"));
    let counts = fs::read_to_string(counts.unwrap()).unwrap();
    let last: Value = serde_json::from_str(counts.lines().last().unwrap()).unwrap();
    assert_eq!(last["connected"], 1);
    assert!(last["bytes_up"].as_u64().unwrap() >= received, "{last}");
    nothing_left();
    assert_eq!(host_state(), before);
    assert_eq!(own_processes(), 0);
}

#[test]
fn the_result_has_the_status_of_a_reservation() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let reserving = PROXIED.replace("rate = \"4Mbit/s\"", "rate = \"4Mbit/s\"\nreserve = true");
    let conditions = "[[conditions]]\nname = \"plain\"\n\
                      [[conditions]]\nname = \"reserved\"\nlaw = \"airtime\"\n";
    let path = file(directory.path(), &format!("{reserving}{conditions}"));
    let found = wakeai(&[&["lab", &path, "--json"] as &[&str], &ANY_LATENESS].concat());
    assert!(found.status.success(), "{}", stderr(&found));
    let report: Value = serde_json::from_str(&stdout(&found)).unwrap();
    let [plain, reserved] = [0, 1].map(|run| &report["runs"][run]["flows"]);
    assert_eq!(plain[0]["reservation"]["standing"], "no-agent");
    let became = &reserved[0]["reservation"];
    assert_eq!(became["standing"], "admitted", "{became}");
    assert_eq!(became["share"], 0.2);
    assert!(became["admitted_s"].as_f64().unwrap() > 3.0, "{became}");
    assert!(reserved[1].get("reservation").is_none(), "{}", reserved[1]);
    nothing_left();
}

#[test]
fn kill_9_of_a_lab_with_a_proxy_leaves_nothing_after_one_more_command() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let before = host_state();
    let long = PROXIED.replace("11s", "60s");
    let mut lab = start(&file(directory.path(), &long), 1, &[]);
    let counts = format!("/run/wakeai/lab-{}/0/player.proxy.json", lab.id());
    wait_for("the proxy listens", || {
        fs::read_to_string(&counts).is_ok_and(|text| text.contains("listening")).then_some(())
    });
    assert_eq!(lab.try_wait().unwrap(), None, "the lab still runs");
    lab.kill().unwrap();
    lab.wait().unwrap();
    wait_for("the lab's processes are gone", || (own_processes() == 0).then_some(()));
    let any = wakeai(&["completion", "bash"]);
    assert!(stderr(&any).contains("removed network namespace"), "{}", stderr(&any));
    nothing_left();
    assert_eq!(host_state(), before);
    assert_eq!(stderr(&wakeai(&["sweep"])), "", "the second command finds nothing");
}

#[test]
fn an_algorithm_that_the_kernel_does_not_have_is_named_with_77() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let nonesuch = PROXIED.replace("wakeai_reno", "nonesuch");
    let found = wakeai(&["lab", &file(directory.path(), &nonesuch), "--json"]);
    assert_eq!(found.status.code(), Some(77), "{}", stderr(&found));
    let said = stderr(&found);
    assert!(said.contains("the congestion control nonesuch is missing: "), "{said}");
    nothing_left();
}

#[test]
fn agents_hear_each_other_over_the_emulated_air() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let law = SCENARIO.find("law = ").unwrap();
    let airtime = format!("{}law = \"airtime\"\n", &SCENARIO[..law]);
    let mut lab = start_with_agents(&file(directory.path(), &airtime), &[]);
    let senders = || {
        let found = wakeai(&["status", "--json"]);
        let text = stdout(&found);
        let agents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let mut senders: Vec<_> =
            agents.flatten().filter_map(|agent| agent["status"]["senders"].as_u64()).collect();
        senders.sort_unstable();
        senders
    };
    wait_for("both agents count two senders", || (senders() == [2, 2]).then_some(()));
    kill(Pid::from_raw(lab.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(lab.wait().unwrap().code(), Some(143), "an interrupted run is a failed one");
    nothing_left();
}

#[test]
fn ctrl_c_ends_a_run_with_130_and_leaves_neither_records_nor_anything_on_the_host() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let before = host_state();
    let path = file(directory.path(), &SCENARIO.replace("8s", "600s"));
    let out = directory.path().join("results/one").display().to_string();
    let lab = start_with_agents(&path, &["--out", &out]);
    assert!(Path::new(&out).exists());
    kill(Pid::from_raw(lab.id().cast_signed()), Signal::SIGINT).unwrap();
    let found = lab.wait_with_output().unwrap();
    let said = stderr(&found);
    assert_eq!(found.status.code(), Some(130), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("interrupted")).count(), 1, "{said}");
    assert!(
        !directory.path().join("results").exists(),
        "the lab has removed the directory that it made"
    );
    nothing_left();
    assert_eq!(host_state(), before);
    assert_eq!(own_processes(), 0);
}

/// An agent that is stopped (SIGSTOP) delays the orderly end by twenty seconds. The second Ctrl-C comes during this
/// time.
#[test]
fn a_second_ctrl_c_ends_the_lab_at_once_and_the_next_command_removes_the_rest() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let before = host_state();
    let mut lab = start_with_agents(&file(directory.path(), &SCENARIO.replace("8s", "600s")), &[]);
    let pid = Pid::from_raw(lab.id().cast_signed());
    // An agent makes its socket before its second process begins.
    wait_for("the lab and two agents of two processes run", || {
        (own_processes() == 5).then_some(())
    });
    let agent = wakeai_host::holders().unwrap().into_iter().find_map(|holder| {
        matches!(holder.role, wakeai_host::Role::Agent { .. }).then_some(holder.process.pid)
    });
    kill(Pid::from_raw(agent.unwrap()), Signal::SIGSTOP).unwrap();
    kill(pid, Signal::SIGINT).unwrap();
    // The lab, and the two processes of the stopped agent.
    wait_for("the other agent has ended", || (own_processes() == 3).then_some(()));
    assert_eq!(lab.try_wait().unwrap(), None, "the lab waits for the stopped agent");
    kill(pid, Signal::SIGINT).unwrap();
    assert_eq!(lab.wait().unwrap().code(), Some(130));
    let namespaces = must("ip", "netns list");
    assert!(namespaces.contains(&format!("wakeai-{pid}-server")), "an orderly end: {namespaces}");

    assert!(wakeai(&["sweep"]).status.success());
    nothing_left();
    assert_eq!(host_state(), before);
    assert_eq!(own_processes(), 0, "no process outlives the lab");
    assert_eq!(stderr(&wakeai(&["sweep"])), "", "the second command finds nothing");
}

#[test]
fn two_labs_at_a_time_know_of_each_other_and_each_has_its_own_result() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let before = host_state();
    let path = file(directory.path(), SCENARIO);
    let first = start_with_agents(&path, &[]);
    let (id, second) = (first.id(), [&["lab", &path, "--json"] as &[&str], &ANY_LATENESS].concat());
    let second = wakeai(&second);
    let said = stderr(&second);
    assert!(second.status.success(), "{said}");
    assert!(said.contains(&format!("another lab runs (pid {id})")), "{said}");
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success(), "{}", stderr(&first));
    for report in [stdout(&first), stdout(&second)] {
        let report: Value = serde_json::from_str(&report).unwrap();
        let run = &report["runs"][0];
        let goodput = run["total_goodput_mbps"].as_f64().unwrap();
        assert!(goodput > 0.5 && goodput < 9.5, "{goodput} Mbit/s of the capped two");
        assert_eq!(run["flows"].as_array().unwrap().len(), 2);
    }
    nothing_left();
    assert_eq!(host_state(), before);
    assert_eq!(own_processes(), 0);
}

/// Labs share the loaded algorithms, which stay until the last lab has ended.
#[test]
fn a_lab_that_is_killed_leaves_another_one_as_it_was() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let before = host_state();
    let mut dying = start_with_agents(&file(directory.path(), &SCENARIO.replace("8s", "60s")), &[]);
    let other = tempfile::tempdir().unwrap();
    let path = file(other.path(), SCENARIO);
    let living = lab_process(&path, &[]);
    wait_for("all agents run", || (own_processes() == 6).then_some(()));
    dying.kill().unwrap();
    dying.wait().unwrap();
    assert!(wakeai(&["sweep"]).status.success());
    let living = living.wait_with_output().unwrap();
    assert!(living.status.success(), "{}", stderr(&living));
    nothing_left();
    assert_eq!(host_state(), before);
    assert_eq!(own_processes(), 0);
    assert_eq!(stderr(&wakeai(&["sweep"])), "", "nothing of the killed lab is left");
}

#[test]
fn the_lab_replaces_neither_its_scenario_nor_an_agents_file_that_is_not_its_own() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), SCENARIO);
    let out = directory.path().join("out");
    let logs = out.join("agents/capped-0");
    fs::create_dir_all(&logs).unwrap();
    fs::write(logs.join("tablet1.log"), "mine").unwrap();
    for (path, out, said) in [
        (path.as_str(), out.to_str().unwrap(), "agents/capped-0/tablet1.log"),
        (&path.replace("two.toml", "scenario.toml"), ".", "is the scenario that is run"),
    ] {
        let (directory, text) = (directory.path(), fs::read(directory.path().join("two.toml")));
        fs::write(path, text.unwrap()).unwrap();
        let before = fs::read_to_string(path).unwrap();
        let found = Command::new(wakeai_tests::program())
            .current_dir(directory)
            .args(["lab", path, "--out", out, "--force"])
            .output()
            .unwrap();
        assert_eq!(found.status.code(), Some(2), "{}", stderr(&found));
        assert!(stderr(&found).contains(said), "{}", stderr(&found));
        assert_eq!(fs::read_to_string(path).unwrap(), before);
    }
    assert_eq!(fs::read(logs.join("tablet1.log")).unwrap(), b"mine");
    nothing_left();
}

#[test]
fn a_network_is_held_for_any_program_until_ctrl_c() {
    let Some(_machine) = Machine::take() else { return };
    let (directory, before) = (tempfile::tempdir().unwrap(), host_state());
    let path = file(directory.path(), SCENARIO);
    let mut lab = Command::new(wakeai_tests::program())
        .args(["lab", &path, "--hold", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(lab.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let held: Value = serde_json::from_str(&line).unwrap();
    let hosts = held["hosts"].as_array().unwrap();
    let names: Vec<_> = hosts.iter().map(|host| host["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["server", "tablet1", "tablet2"]);
    let [server, tablet] = [0, 2].map(|index| {
        let namespace = hosts[index]["namespace"].as_str().unwrap();
        (Namespace::open(namespace).unwrap(), hosts[index]["address"].as_str().unwrap())
    });
    // Any program uses the air: a connection of this test, whose round trip takes the delays of the wire.
    let listener = server.0.run(|| TcpListener::bind((server.1, 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let began = Instant::now();
    let stream = tablet.0.run(|| TcpStream::connect(address).unwrap()).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(20), "10 ms each way on the wire");
    let accepted = listener.accept().unwrap();
    drop((stream, accepted, listener, server, tablet));
    kill(Pid::from_raw(lab.id().cast_signed()), Signal::SIGINT).unwrap();
    let ended = lab.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("packets were released at most"), "{}", stderr(&ended));
    nothing_left();
    assert_eq!(before, host_state());
}

#[test]
fn a_network_is_held_for_one_condition_and_no_runs() {
    let Some(_machine) = Machine::share() else { return };
    for (more, said) in [
        (&["--repeat", "2"][..], "cannot be used with"),
        (&["--conditions", "nothing"], "the conditions of the scenario are capped"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = file(directory.path(), SCENARIO);
        let refused = wakeai(&[&["lab", &path, "--hold"], more].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
    }
}
