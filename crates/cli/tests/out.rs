//! The files that `--out` replaces, and those that an interrupted run leaves. The tests run `wakeai sim` as a user
//! does.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use wakeai_tests::{stderr, stdout, wait_for};

/// A scenario with a comment, so that it differs from every file that a run writes.
const SCENARIO: &str = "# My thesis.\nname = \"small\"\nduration = \"5s\"\n\
    [access_point]\nstandard = \"802.11g\"\n[[stations]]\nname = \"tablet\"\n\
    [[flows]]\nfrom = \"tablet\"\nto = \"server\"\nsize = \"500kB\"\n";

/// A scenario that does not end within the time of a test.
fn endless() -> String {
    SCENARIO.replace("5s", "1000000s").replace("size = \"500kB\"\n", "")
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakeai"));
    command.current_dir(directory).arg("sim").args(arguments).stdin(Stdio::null());
    command
}

fn sim(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments).output().unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_scenario_that_is_run_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scenario.toml");
    fs::write(&path, SCENARIO).unwrap();
    for arguments in [
        &["scenario.toml", "--out", "."] as &[&str],
        &["scenario.toml", "--out", ".", "--force"],
        &["./scenario.toml", "--out", directory.path().to_str().unwrap(), "--force"],
    ] {
        let found = sim(directory.path(), arguments);
        assert_eq!(found.status.code(), Some(2), "{arguments:?}: {}", stderr(&found));
        assert!(stderr(&found).contains("scenario.toml is the scenario that is run"));
        assert_eq!(stdout(&found), "");
        assert_eq!(fs::read_to_string(&path).unwrap(), SCENARIO);
        assert_eq!(names(directory.path()), ["scenario.toml"]);
    }
}

#[test]
fn files_of_the_same_name_are_not_replaced_and_an_earlier_result_only_with_force() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("my.toml"), SCENARIO).unwrap();
    fs::create_dir(path("thesis")).unwrap();
    fs::write(path("thesis/result.json"), "mine").unwrap();
    for force in [&[] as &[&str], &["--force"]] {
        let found = sim(directory.path(), &[&["my.toml", "--out", "thesis"], force].concat());
        assert_eq!(found.status.code(), Some(2), "{}", stderr(&found));
        assert!(stderr(&found).contains("thesis/result.json"), "{}", stderr(&found));
        assert_eq!(fs::read(path("thesis/result.json")).unwrap(), b"mine");
        assert_eq!(names(&path("thesis")), ["result.json"]);
    }

    assert!(sim(directory.path(), &["my.toml", "--out", "out", "--pcap"]).status.success());
    fs::write(path("out/notes.txt"), "mine").unwrap();
    let again = sim(directory.path(), &["my.toml", "--out", "out", "--seed", "2"]);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    assert!(stderr(&again).contains("replace it with --force"), "{}", stderr(&again));
    let seed = || {
        let text = fs::read_to_string(path("out/result.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["seed"].clone()
    };
    assert_eq!(seed(), 1);
    let forced = sim(directory.path(), &["my.toml", "--out", "out", "--seed", "2", "--force"]);
    assert!(forced.status.success(), "{}", stderr(&forced));
    assert_eq!(seed(), 2);
    assert!(path("out/notes.txt").exists() && !path("out/pcap").exists());

    // A result that the user has changed is not replaced.
    fs::write(path("out/scenario.toml"), SCENARIO).unwrap();
    let edited = sim(directory.path(), &["my.toml", "--out", "out", "--force"]);
    assert_eq!(edited.status.code(), Some(2), "{}", stderr(&edited));
    assert_eq!(fs::read_to_string(path("out/scenario.toml")).unwrap(), SCENARIO);
}

#[test]
fn an_out_that_is_no_directory_is_bad_usage_and_one_that_cannot_be_written_fails() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("my.toml"), SCENARIO).unwrap();
    std::os::unix::fs::symlink("nowhere", directory.path().join("link")).unwrap();
    for (out, status, said) in [
        ("my.toml", 2, "found a file at my.toml"),
        ("my.toml/below", 2, "found a file at my.toml"),
        ("link", 2, "found a symbolic link that leads nowhere at link"),
        ("/proc/nowhere", 1, "cannot write the records to /proc/nowhere"),
        ("/dev/full", 2, "found a file at /dev/full"),
    ] {
        let found = sim(directory.path(), &["my.toml", "--out", out]);
        assert_eq!(found.status.code(), Some(status), "{out}: {}", stderr(&found));
        assert!(stderr(&found).contains(said), "{out}: {}", stderr(&found));
        assert_eq!(stdout(&found), "");
    }
    assert_eq!(names(directory.path()), ["link", "my.toml"]);
    let alone = sim(directory.path(), &["my.toml", "--force"]);
    assert_eq!(alone.status.code(), Some(2), "--force is for --out");
    let nested = sim(directory.path(), &["my.toml", "--out", "a/b/../c", "--json"]);
    assert!(nested.status.success(), "{}", stderr(&nested));
    assert!(directory.path().join("a/c/result.json").exists());
}

#[test]
fn on_a_full_disk_the_earlier_result_stays_and_nothing_else_is_left() {
    if !nix::unistd::geteuid().is_root() {
        let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|value| value == "1");
        assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but not root, who may mount");
        let _ = writeln!(io::stdout(), "SKIPPED: not root, who may mount");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("my.toml"), SCENARIO).unwrap();
    fs::write(directory.path().join("long.toml"), SCENARIO.replace("500kB", "500MB")).unwrap();
    fs::create_dir(directory.path().join("disk")).unwrap();
    let wakeai = env!("CARGO_BIN_EXE_wakeai");
    let script = format!(
        "set -e; mount -t tmpfs -o size=200k none disk; {wakeai} sim my.toml --out disk/one >&2
         sum=$(cat disk/one/* | cksum); before=$(ls -A disk/one)
         for out in one two; do
             status=0; {wakeai} sim long.toml --out disk/$out --pcap --force || status=$?
             echo $status; test \"$(ls -A disk)\" = one
         done
         test \"$(cat disk/one/* | cksum)\" = \"$sum\"; test \"$(ls -A disk/one)\" = \"$before\""
    );
    let mut command = Command::new("unshare");
    command.current_dir(directory.path()).args(["--mount", "sh", "-c", &script]);
    let found = command.output().unwrap();
    assert!(found.status.success(), "{}{}", stdout(&found), stderr(&found));
    assert_eq!(stdout(&found), "1\n1\n");
    assert_eq!(stderr(&found).matches("No space left on device").count(), 2, "{}", stderr(&found));
}

/// Starts a long simulation, and waits until its records are begun.
fn start(directory: &Path, errors: Stdio) -> Child {
    fs::write(directory.join("my.toml"), endless()).unwrap();
    let mut command = command(directory, &["my.toml", "--out", "results/one", "--pcap"]);
    let child = command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
    let begun =
        || fs::read_dir(directory.join("results/one")).is_ok_and(|mut all| all.next().is_some());
    wait_for("the simulation has begun its records", || begun().then_some(()));
    child
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

#[test]
fn an_interrupted_run_says_so_and_leaves_nothing() {
    for (sent, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let directory = tempfile::tempdir().unwrap();
        let child = start(directory.path(), Stdio::piped());
        signal(&child, sent);
        let found = child.wait_with_output().unwrap();
        assert_eq!(found.status.code(), Some(status), "{}", stderr(&found));
        assert_eq!(stdout(&found), "");
        let said = stderr(&found);
        assert!(said.lines().count() == 1 && said.contains("interrupted"), "{said}");
        assert_eq!(names(directory.path()), ["my.toml"]);
    }
}

/// Both ends of a pipe whose buffer is full.
fn full_pipe() -> (io::PipeReader, io::PipeWriter) {
    let (reader, mut writer) = io::pipe().unwrap();
    fcntl(writer.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    fcntl(writer.as_fd(), FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (reader, writer)
}

#[test]
fn a_second_signal_ends_an_interrupted_run_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let (_reader, writer) = full_pipe();
    let mut child = start(directory.path(), writer.into());
    signal(&child, Signal::SIGINT);
    // The command waits to report the interruption, because nobody reads the pipe.
    let is_gone = || (names(directory.path()) == ["my.toml"]).then_some(());
    wait_for("the records of the simulation are removed", is_gone);
    assert_eq!(child.try_wait().unwrap(), None);
    signal(&child, Signal::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn records_of_a_killed_run_are_removed_by_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(directory.path(), Stdio::null());
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(directory.path().join("my.toml"), SCENARIO).unwrap();
    let next = sim(directory.path(), &["my.toml", "--out", "results/one"]);
    assert!(next.status.success(), "{}", stderr(&next));
    let left = names(&directory.path().join("results/one"));
    assert!(left.iter().all(|name| !name.contains("partial")), "{left:?}");
    File::open(directory.path().join("results/one/result.json")).unwrap();
}
