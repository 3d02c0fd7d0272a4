//! What goes wrong on machines: a run ends with a table and the right exit status, and nothing is left after the deadline.

use std::process::Output;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use wakeai_tests::{Machine, stderr, stdout, wait_for};

use crate::TWO;
use crate::rig::Rig;

/// The arguments of runs at whose end the command itself has everything undone: no solo runs, and the usual grace period, which a
/// busy machine may need until a connection is made again.
const BOTH: [&str; 3] = ["--solo", "0s", "--json"];
/// The same with one condition without agents.
const PLAIN: [&str; 5] = ["--solo", "0s", "--json", "--conditions", "default"];

fn report(ended: &Output) -> Value {
    serde_json::from_str(&stdout(ended))
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", stdout(ended), stderr(ended)))
}

/// The reason why a station's part of a run does not count; empty where it counts.
fn reason(report: &Value, run: usize, station: &str) -> String {
    let stations = report["runs"][run]["field"]["stations"].as_array().unwrap();
    let found = stations.iter().find(|one| one["station"] == station).unwrap();
    assert_eq!(found["counts"], found["reason"].is_null(), "{found}");
    found["reason"].as_str().unwrap_or_default().to_owned()
}

/// Runs the plain condition, does something to the machines while it goes on, and returns its report.
fn disturbed(rig: &Rig, status: i32, disturb: impl FnOnce()) -> Value {
    let running = rig.start(&PLAIN);
    rig.wait_for_traffic("tablet1");
    disturb();
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(status), "{}\n{}", stderr(&ended), stdout(&ended));
    report(&ended)
}

#[test]
#[ignore = "make test-field"]
fn a_station_that_loses_its_radio_delivers_less_and_the_run_does_not_count() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let found = disturbed(&rig, 1, || {
        rig.ip("tablet1", "link set wlan0 down");
        std::thread::sleep(Duration::from_secs(1));
        rig.ip("tablet1", "link set wlan0 up");
    });
    let why = reason(&found, 0, "tablet1");
    assert!(why.contains("its interface had no carrier for"), "{why}");
    assert_eq!(reason(&found, 0, "tablet2"), "", "the other one counts");
    let stations = found["runs"][0]["field"]["stations"].as_array().unwrap();
    let delivered = |index: usize| stations[index]["delivered_bytes"].as_u64().unwrap();
    assert!(delivered(1) > 0 && delivered(1) < delivered(2), "{stations:?}");
    rig.wait_until_nothing_is_left();
}

#[test]
#[ignore = "make test-field"]
fn a_station_that_loses_its_radio_and_its_connection_comes_back_with_its_samples() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let found = disturbed(&rig, 1, || {
        rig.ip("tablet1", "link set wlan0 down");
        rig.cable("tablet1", "down");
        rig.cut_connections("tablet1");
        std::thread::sleep(Duration::from_secs(1));
        rig.ip("tablet1", "link set wlan0 up");
        rig.cable("tablet1", "up");
    });
    let why = reason(&found, 0, "tablet1");
    assert!(why.contains("its interface had no carrier for"), "{why}");
    assert_eq!(reason(&found, 0, "tablet2"), "", "the other one counts");
    assert!(found["runs"][0]["field"]["stations"][1]["delivered_bytes"].as_u64().unwrap() > 0);
    rig.wait_until_nothing_is_left();
}

#[test]
#[ignore = "make test-field"]
fn a_connection_that_is_lost_for_a_while_does_not_matter() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let found = disturbed(&rig, 0, || {
        rig.cable("tablet1", "down");
        rig.cut_connections("tablet1");
        std::thread::sleep(Duration::from_secs(2));
        rig.cable("tablet1", "up");
    });
    assert_eq!(reason(&found, 0, "tablet1"), "");
    assert_eq!(found["runs"][0]["field"]["counts"], true);
    rig.wait_until_nothing_is_left();
}

#[test]
#[ignore = "make test-field"]
fn a_machine_that_never_comes_back_undoes_everything_at_its_deadline() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let running =
        rig.start(&["--solo", "0s", "--grace", "10s", "--json", "--conditions", "airtime"]);
    rig.wait_for_traffic("tablet1");
    rig.cable("tablet1", "down");
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    let found = report(&ended);
    let why = reason(&found, 0, "tablet1");
    assert!(why.contains("its connection was lost, and did not come back within"), "{why}");
    assert_eq!(reason(&found, 0, "tablet2"), "");
    rig.wait_until_nothing_is_left();
}

#[test]
#[ignore = "make test-field"]
fn a_machine_that_boots_in_a_run_loses_it_and_takes_part_in_the_next() {
    let Some(_machine) = Machine::take() else { return };
    let mut rig = Rig::new(TWO);
    let running = rig.start(&[
        "--solo",
        "0s",
        "--grace",
        "20s",
        "--json",
        "--conditions",
        "default",
        "--repeat",
        "2",
    ]);
    rig.wait_for_traffic("tablet1");
    for (pid, _) in rig.processes("tablet1") {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    let identity = rig.directory.path().join("boot_id");
    std::fs::write(&identity, "00000000-0000-4000-8000-000000000000\n").unwrap();
    let mounts = format!("mount --bind {} /proc/sys/kernel/random/boot_id", identity.display());
    rig.start_sshd(rig.index("tablet1"), &mounts);
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}\n{}", stderr(&ended), stdout(&ended));
    let found = report(&ended);
    let why = reason(&found, 0, "tablet1");
    assert!(why.contains("it has been started again"), "{why}");
    assert_eq!(found["runs"][1]["field"]["counts"], true, "{}", found["runs"][1]["field"]);
    rig.wait_until_nothing_is_left();
}

#[test]
#[ignore = "make test-field"]
fn a_full_disk_is_named_and_the_run_does_not_count() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let running = rig.start(&BOTH);
    rig.wait_for_traffic("tablet1");
    // The disk of the helper's files is full from now on, in the machine's own mount namespace.
    let helpers = rig.own_processes("tablet1");
    let (helper, _) = helpers.iter().find(|(_, command)| command.contains("--serve")).unwrap();
    let files = std::fs::read_dir("/run/wakeai").unwrap().flatten().map(|entry| entry.path());
    let netns = std::fs::metadata(format!("/proc/{helper}/ns/net")).unwrap();
    let inode = std::os::unix::fs::MetadataExt::ino(&netns);
    let mut files = files.filter(|path| path.extension().is_some_and(|end| end == "run"));
    let directory =
        files.find(|path| path.display().to_string().contains(&inode.to_string())).unwrap();
    let fill = format!(
        "mount -t tmpfs -o size=4k none {0} && dd if=/dev/zero of={0}/full bs=4k count=1 2>/dev/null",
        directory.display()
    );
    let pid = format!("--target={helper}");
    let filled =
        std::process::Command::new("nsenter").args([&pid, "--mount", "sh", "-c", &fill]).status();
    assert!(filled.unwrap().success());
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    let found = report(&ended);
    assert_eq!(found["runs"][0]["field"]["counts"], true, "no file is needed without an agent");
    let why = reason(&found, 1, "tablet1");
    assert!(why.contains("No space left on device"), "{why}");
    // The helper could not remove a directory on which something else is mounted, and so leaves it alone.
    let sshd = format!("--target={}", rig.daemon("tablet1"));
    let unmount = ["--mount", "umount", directory.to_str().unwrap()];
    let emptied = std::process::Command::new("nsenter").arg(&sshd).args(unmount).status();
    assert!(emptied.unwrap().success());
    std::fs::remove_dir(&directory).unwrap();
    rig.wait_until_nothing_is_left();
}

#[test]
#[ignore = "make test-field"]
fn a_clock_that_is_an_hour_off_changes_nothing_but_a_note() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let library = glob_faketime();
    let program = wakeai_tests::program();
    rig.script(
        "wakeai-an-hour-ahead",
        &format!(
            "LD_PRELOAD={library} FAKETIME=+1h DONT_FAKE_MONOTONIC=1 FAKETIME_NO_CACHE=1 exec {program} \"$@\""
        ),
    );
    let ahead = rig.directory.path().join("bin/wakeai-an-hour-ahead");
    rig.write_files(&format!("program = \"{}\"", ahead.display()));
    let checked = rig.field(&["--check", "--json"]);
    assert_eq!(checked.status.code(), Some(0), "{}\n{}", stderr(&checked), stdout(&checked));
    let checked: Value = serde_json::from_str(&stdout(&checked)).unwrap();
    let clock = checked["machines"][1]["clock_ahead_s"].as_f64().unwrap();
    assert!((3_590.0..3_610.0).contains(&clock), "{clock}");
    let said = checked["machines"][1]["problems"].to_string();
    assert!(said.contains("its wall clock is +36") || said.contains("+3599 s"), "{said}");
    let ended = rig.field(&PLAIN);
    assert_eq!(ended.status.code(), Some(0), "{}\n{}", stderr(&ended), stdout(&ended));
    rig.wait_until_nothing_is_left();
}

/// The library of Debian's libfaketime.
fn glob_faketime() -> String {
    let triple = format!("/usr/lib/{}-linux-gnu/faketime/libfaketime.so.1", std::env::consts::ARCH);
    assert!(std::path::Path::new(&triple).exists(), "install libfaketime: {triple}");
    triple
}

#[test]
#[ignore = "make test-field"]
fn an_agent_that_runs_already_is_named_and_stays() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let key = rig.directory.path().join("key");
    wakeai_tests::wakeai(&["agent", "--generate-key", key.to_str().unwrap()]);
    let config = rig.directory.path().join("own.toml");
    let text = format!(
        "interface = \"wlan0\"\nstation = 9\nbssid = \"02:00:00:00:00:01\"\nkey_file = \"{}\"\n\
         presence = {{ broadcast = \"10.73.255.255\" }}\n",
        key.display()
    );
    std::fs::write(&config, text).unwrap();
    let namespace = format!("--net=/run/netns/{}", rig.namespace("tablet1"));
    let mut own = std::process::Command::new("nsenter")
        .arg(&namespace)
        .arg(wakeai_tests::program())
        .args(["agent", "--config", config.to_str().unwrap()])
        .spawn()
        .unwrap();
    wait_for("the user's own agent runs", || {
        (rig.own_processes("tablet1").len() >= 2).then_some(())
    });
    let checked = rig.field(&["--check"]);
    assert_eq!(checked.status.code(), Some(77), "{}", stdout(&checked));
    assert!(
        stdout(&checked).contains("PROBLEM: tablet1: an agent runs already"),
        "{}",
        stdout(&checked)
    );
    let ended = rig.field(&BOTH);
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    let found = report(&ended);
    let why = reason(&found, 1, "tablet1");
    assert!(why.contains("an agent runs already"), "{why}");
    assert_eq!(
        found["runs"][0]["field"]["counts"], true,
        "it has no part in the condition without agents"
    );
    assert!(own.try_wait().unwrap().is_none(), "the user's own agent goes on");
    kill(Pid::from_raw(own.id().cast_signed()), Signal::SIGTERM).unwrap();
    own.wait().unwrap();
    // An agent that ends last leaves the mount of the bpffs to the next command: it has given up the privilege to unmount it.
    assert_eq!(wakeai_tests::wakeai(&["sweep"]).status.code(), Some(0));
    rig.wait_until_nothing_is_left();
}

#[test]
#[ignore = "make test-field"]
fn ctrl_c_leaves_nothing_and_the_same_command_goes_on() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let out = rig.directory.path().join("out");
    let arguments = ["--solo", "0s", "--json", "--repeat", "2", "--out", out.to_str().unwrap()];
    let running = rig.start(&arguments);
    let journal = out.with_file_name("out.runs");
    let runs = || {
        let entries = std::fs::read_dir(&journal).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("run-")).count()
    };
    wait_for("a run is made", || (runs() > 0).then_some(()));
    kill(Pid::from_raw(running.id().cast_signed()), Signal::SIGINT).unwrap();
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("the same command goes on"), "{}", stderr(&ended));
    rig.wait_until_nothing_is_left(); // long before the deadline
    let (before, again) = (runs(), rig.field(&arguments));
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let said = stderr(&again);
    assert!(
        said.contains(&format!("run 1 of {}:", 4 - before)),
        "only the others are made: {said}"
    );
    let found = report(&again);
    assert_eq!(found["runs"].as_array().unwrap().len(), 4);
    rig.wait_until_nothing_is_left();
}

#[test]
#[ignore = "make test-field"]
fn when_the_controlling_machine_dies_each_machine_undoes_everything_by_itself() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let mut running = rig.start(&["--solo", "0s", "--grace", "10s", "--conditions", "airtime"]);
    rig.wait_for_traffic("tablet1");
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(!rig.left().is_empty(), "the helpers go on");
    rig.wait_until_nothing_is_left();
}

#[test]
#[ignore = "make test-field"]
fn a_command_that_was_killed_goes_on_at_once_with_the_helpers_that_still_run() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let out = rig.directory.path().join("out");
    // The helpers of the killed command would keep the machines for ten minutes.
    let arguments = ["--solo", "0s", "--grace", "600s", "--json", "--out", out.to_str().unwrap()];
    let mut running = rig.start(&arguments);
    let journal = out.with_file_name("out.runs");
    let runs = || {
        let entries = std::fs::read_dir(&journal).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("run-")).count()
    };
    wait_for("a run is made", || (runs() == 1).then_some(()));
    rig.wait_for_traffic("tablet1");
    running.kill().unwrap();
    running.wait().unwrap();
    let again = rig.field(&arguments);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(stderr(&again).contains("run 1 of 1:"), "only the other is made: {}", stderr(&again));
    let found = report(&again);
    let counts = |run: &Value| run["field"]["counts"] == true;
    assert!(found["runs"].as_array().unwrap().iter().all(counts), "{}", found["runs"]);
    rig.wait_until_nothing_is_left(); // minutes before the deadline
}

#[test]
#[ignore = "make test-field"]
fn no_argument_of_any_process_has_the_key_of_a_run() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let running = rig.start(&["--solo", "0s", "--json", "--conditions", "airtime"]);
    rig.wait_for_traffic("tablet1");
    let directories = std::fs::read_dir("/run/wakeai").unwrap().flatten();
    let files = directories.map(|entry| entry.path().join("group.key"));
    let keys: Vec<String> = files.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    assert_eq!(keys.len(), 2, "one at each station");
    assert_eq!(keys[0], keys[1], "they are one group");
    let commands = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = commands.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let all: Vec<String> =
        commands.map(|text| String::from_utf8_lossy(&text).into_owned()).collect();
    assert!(all.iter().any(|text| text.contains("field-station")), "{all:?}");
    assert!(all.iter().all(|text| !text.contains(keys[0].trim())), "{all:?}");
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    rig.wait_until_nothing_is_left();
}
