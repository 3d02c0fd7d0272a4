//! Commands on a full disk or with a read-only `/run`, which each test mounts in a mount namespace of its own. The
//! error names the path, and the host is unchanged.

use std::fs;
use std::process::{Command, Output};

use wakeai_tests::agent::{BSSID, Fleet};
use wakeai_tests::bss::Bss;
use wakeai_tests::{
    ANY_LATENESS, Machine, host_state, nothing_left, program, stderr, stdout, wakeai,
};

/// Mounts a file system of two pages over Wakeai's state directory.
const FULL: &str =
    "mount -t tmpfs -o size=8k,mode=755 none /run/wakeai && mkdir -m 700 /run/wakeai/leases";
const READ_ONLY: &str = "mount --rbind /run /run && mount -o remount,bind,ro /run";

/// Writes a scenario of one second to this directory, and returns its path.
fn scenario(directory: &std::path::Path) -> String {
    let path = directory.join("small.toml");
    let text = "name = \"small\"\nduration = \"1s\"\naccess_point = { standard = \"802.11g\" }\n\
                stations = [{ name = \"a\", max = \"20Mbit/s\" }]\nflows = [{ from = \"a\", to = \"server\" }]\n";
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Runs a command in a mount namespace of its own, after the shell commands `prepared`.
fn run(prepared: &str, command: &[&str]) -> Output {
    let script = format!("{prepared} && exec \"$@\"");
    let mut apart = Command::new("timeout"); // ends a command that is not refused
    apart.args(["60", "unshare", "--mount", "sh", "-c", &script, "sh"]);
    apart.args(command).output().unwrap()
}

/// The commands that change something on the host.
fn commands(bss: &Bss, fleet: &Fleet) -> Vec<Vec<String>> {
    let net = format!("--net=/run/netns/{}", bss.name("a"));
    let config = fleet.configure(1, BSSID, "").display().to_string();
    let scenario = scenario(&fleet.path(""));
    let commands = [
        vec!["nsenter", &net, program(), "agent", "--config", &config],
        vec!["nsenter", &net, program(), "use", "wakeai_rtt"],
        vec![
            "nsenter",
            &net,
            program(),
            "proxy",
            "--algorithm",
            "wakeai_cubic",
            "--listen",
            "127.0.0.1:0",
        ],
        vec![program(), "lab", &scenario],
    ];
    commands.map(|words| words.into_iter().map(str::to_owned).collect()).to_vec()
}

/// Each command fails with exit status 1, and the last line of its error contains all of these texts.
fn each_is_refused(prepared: &str, expected: &[&str]) {
    let (bss, fleet) = (Bss::new(&["a"]), Fleet::new());
    let before = (host_state(), bss.default("a"));
    for command in commands(&bss, &fleet) {
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let found = run(prepared, &words);
        let said = stderr(&found);
        println!("{}: {said}", words.join(" "));
        assert_eq!(found.status.code(), Some(1), "{words:?}: {said}");
        let last = said.lines().last().unwrap();
        assert!(expected.iter().all(|text| last.contains(text)), "{words:?}: {said}");
        assert_eq!((host_state(), bss.default("a")), before, "{words:?}");
        nothing_left();
    }
    wakeai(&["sweep"]);
}

#[test]
fn without_room_for_a_lease_nothing_is_changed() {
    let Some(_machine) = Machine::take() else { return };
    wakeai(&["sweep"]); // creates the directory
    let full = format!("{FULL} && dd if=/dev/zero of=/run/wakeai/full bs=4k count=2 2>/dev/null");
    each_is_refused(&full, &["/run/wakeai/leases", "No space left on device"]);
}

/// There is room for the first record, but not for the second: the lease is written to a temporary file, while the old
/// file still exists.
#[test]
fn without_room_for_a_second_record_every_change_is_undone() {
    let Some(_machine) = Machine::take() else { return };
    wakeai(&["sweep"]);
    let nearly = format!("{FULL} && dd if=/dev/zero of=/run/wakeai/full bs=4k count=1 2>/dev/null");
    each_is_refused(&nearly, &["/run/wakeai", "No space left on device"]);
}

#[test]
fn where_run_is_read_only_nothing_is_changed() {
    let Some(_machine) = Machine::take() else { return };
    wakeai(&["sweep"]);
    each_is_refused(READ_ONLY, &["/run/wakeai", "Read-only file system"]);
}

#[test]
fn a_full_output_directory_is_named_and_the_host_unchanged() {
    let Some(_machine) = Machine::take() else { return };
    wakeai(&["sweep"]);
    let before = host_state();
    let directory = tempfile::tempdir().unwrap();
    let scenario = scenario(directory.path());
    let out = directory.path().join("out").display().to_string();
    let full = format!("mkdir -p {out} && mount -t tmpfs -o size=8k none {out}");
    for (world, more) in [("sim", &[] as &[&str]), ("lab", &ANY_LATENESS)] {
        let command = [&[program(), world, &scenario, "--json", "--out", &out] as &[&str], more];
        let found = run(&full, &command.concat());
        let said = stderr(&found);
        println!("{said}");
        assert_eq!(found.status.code(), Some(1), "{world}: {said}");
        assert_eq!(stdout(&found), "", "{world}");
        let last = said.lines().last().unwrap();
        assert!(last.contains(&out) && last.contains("No space left on device"), "{world}: {said}");
        assert_eq!(host_state(), before, "{world}");
        nothing_left();
    }
}
