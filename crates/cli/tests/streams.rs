//! What each command does where its standard output or standard error cannot be written: on a full disk
//! (`/dev/full`), in a pipe whose reader has gone, and where the stream is closed. It never panics, and its exit status
//! tells how it ended.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use wakeai_tests::stdout;

/// A stream that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Broken {
    Full,
    ReaderGone,
    Closed,
}

const BROKEN: [Broken; 3] = [Broken::Full, Broken::ReaderGone, Broken::Closed];

/// `sh` closes the streams that are named.
const CLOSING: &str =
    "case $1 in *o*) exec >&- ;; esac; case $1 in *e*) exec 2>&- ;; esac; shift; exec \"$@\"";

/// Runs `wakeai` with a stream of each kind; `None` is one that can be written. Returns the exit status.
fn run(directory: &Path, arguments: &[&str], out: Option<Broken>, error: Option<Broken>) -> i32 {
    let stream = |broken: Option<Broken>| match broken {
        Some(Broken::Full) => Stdio::from(File::options().write(true).open("/dev/full").unwrap()),
        Some(Broken::ReaderGone) => Stdio::from(std::io::pipe().unwrap().1),
        Some(Broken::Closed) | None => Stdio::null(),
    };
    let closed = [(out, "o"), (error, "e")];
    let closed = closed.iter().filter(|(stream, _)| *stream == Some(Broken::Closed));
    let closed: String = closed.map(|(_, letter)| *letter).collect();
    let mut command = Command::new("sh");
    command.args(["-c", CLOSING, "sh", &format!("-{closed}"), env!("CARGO_BIN_EXE_wakeai")]);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    // Log lines are written, too.
    command.env("WAKEAI_LOG", "trace").env("WAKEAI_RUN", directory.join("run"));
    let status = command.stdout(stream(out)).stderr(stream(error)).status().unwrap();
    status.code().unwrap_or_else(|| panic!("{arguments:?} with {out:?} and {error:?}: {status}"))
}

/// Every command with its subcommands, as the arguments that name it.
fn commands() -> Vec<Vec<String>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakeai"));
    let list = stdout(&command.args(["man", "--list"]).output().unwrap());
    let pages = list.lines().filter_map(|line| line.strip_suffix("(1)"));
    let name = |page: &str| -> Vec<String> { page.split('-').skip(1).map(str::to_owned).collect() };
    let commands: Vec<_> = pages.map(name).collect();
    assert!(commands.len() > 20, "{commands:?}");
    commands
}

#[test]
fn help_and_bad_usage_of_every_command_end_with_their_status_whatever_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    for command in commands() {
        let asked =
            |last| -> Vec<&str> { command.iter().map(String::as_str).chain([last]).collect() };
        let (help, wrong) = (asked("--help"), asked("--no-such-option"));
        if command.first().is_some_and(|name| name == "grid") {
            continue; // its help is that of the Python package
        }
        for broken in BROKEN {
            let status = |arguments, out, error| run(directory.path(), arguments, out, error);
            assert_eq!(status(&wrong, Some(broken), Some(broken)), 2, "{wrong:?} {broken:?}");
            assert_eq!(status(&help, None, Some(broken)), 0, "{help:?} {broken:?}");
            // A reader that has gone wants no more, and a closed stream is like /dev/null.
            let unwritten = i32::from(broken == Broken::Full);
            assert_eq!(status(&help, Some(broken), Some(broken)), unwritten, "{help:?} {broken:?}");
        }
    }
}

#[test]
fn a_command_ends_as_it_would_where_its_messages_cannot_be_written() {
    let directory = tempfile::tempdir().unwrap();
    // It has keys without effect, of which a note tells.
    let scenario = "name = \"small\"\nduration = \"1s\"\n[access_point]\nstandard = \"802.11g\"\n\
                    [[stations]]\nname = \"tablet\"\nproxy = true\n\
                    [[flows]]\nfrom = \"tablet\"\nto = \"server\"\nsize = \"50kB\"\n";
    let path = |name: &str| directory.path().join(name);
    fs::write(path("small.toml"), scenario).unwrap();
    fs::write(path("wrong.toml"), "name = 3").unwrap();
    assert_eq!(run(directory.path(), &["sim", "small.toml", "--out", "result"], None, None), 0);
    fs::copy(path("result/result.json"), path("other.json")).unwrap();
    let commands: &[(&[&str], i32, bool)] = &[
        (&["sim", "small.toml"], 0, true),
        (&["sim", "small.toml", "--json"], 0, true),
        (&["sim", "nowhere.toml"], 2, false),
        (&["sim", "wrong.toml"], 2, false),
        (&["lab", "wrong.toml"], 2, false),
        (&["compare", "result", "other.json"], 0, true),
        (&["compare", "result"], 2, false),
        (&["report", "nowhere"], 2, false),
        (&["man"], 0, true),
        (&["man", "lab"], 0, true),
        (&["man", "--list"], 0, true),
        (&["completion", "bash"], 0, true),
        (&["--version"], 0, true),
        (&["agent", "--config", "nowhere.toml"], 2, false),
        (&["status", "--socket", "nowhere.sock"], 1, false),
        (&["top", "--replay", "nowhere"], 2, false),
        (&["put", "nowhere.bin", "http://127.0.0.1:1/"], 1, false),
    ];
    for (arguments, status, has_output) in commands {
        let run = |out, error| run(directory.path(), arguments, out, error);
        let usual = run(None, None);
        assert_eq!(usual, *status, "{arguments:?}");
        for broken in BROKEN {
            assert_eq!(run(None, Some(broken)), usual, "{arguments:?} with {broken:?}");
            let unwritten = *has_output && broken == Broken::Full;
            let expected = if unwritten { 1 } else { usual };
            for error in [None, Some(broken)] {
                assert_eq!(run(Some(broken), error), expected, "{arguments:?} with {broken:?}");
            }
        }
    }
}
