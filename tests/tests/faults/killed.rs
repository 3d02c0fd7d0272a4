//! Programs are ended by `kill -9` after a step of their start or stop, and the next command undoes their changes.
//! `make test` does this for some steps, evenly spread, and `make test-faults` for each step.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use crate::steps::{DISCIPLINE, End, Fatal, ITERATE, Until, run};
use wakeai_tests::agent::{BSSID, Fleet};
use wakeai_tests::bss::Bss;
use wakeai_tests::traffic::{Download, Upload};
use wakeai_tests::{
    ANY_LATENESS, Machine, host_state, leftovers, nothing_left, program, stderr, wait_for, wakeai,
};

/// The step in which an agent or an assignment changes a sysctl.
const DEFAULT: &str = "write /proc/sys/net/ipv4/tcp_congestion_control";
/// A scenario with one station, which has an agent and a proxy.
const SCENARIO: &str = r#"
name = "small"
duration = "1s"
[access_point]
standard = "802.11g"
[[stations]]
name = "player"
proxy = true
max = "20Mbit/s"
[[flows]]
from = "player"
to = "server"
algorithm = "wakeai_cubic"
[[conditions]]
name = "capped"
law = "fixed"
bounds = [{ stations = "player", floor = 1, ceiling = 8 }]
"#;

/// The number of evenly spread steps after which a run is killed. More runs are killed after the last step of each kind
/// that the test names.
const SOME: usize = 2;

/// The state of the host, the station's default algorithm, and the files in the directories that Wakeai uses.
fn state(bss: Option<&Bss>) -> Vec<String> {
    let mut state = host_state();
    state.extend(bss.map(|bss| bss.default("a")));
    state.extend(leftovers());
    let mut files = Vec::new();
    for directory in ["/run/wakeai", "/run/wakeai/leases", "/run/netns", "/sys/fs/bpf"] {
        files.extend(fs::read_dir(directory).into_iter().flatten().flatten().map(|it| it.path()));
    }
    // Lock files are never removed. If one were removed while a process waits for it, two processes could hold the
    // lock.
    let stay = |path: &Path| path.ends_with(".lock") || path.ends_with("kernel.lock");
    files.retain(|path| !stay(path) && path != Path::new("/run/wakeai/leases"));
    files.sort();
    state.extend(files.iter().map(|path| path.display().to_string()));
    state
}

/// A command that is killed again and again.
struct Victim<'a> {
    command: &'a [&'a str],
    /// When it gets SIGTERM; `None` where it ends by itself.
    until: Option<Until<'a>>,
    /// Where it runs, if in a namespace.
    bss: Option<&'a Bss>,
    /// Steps that it makes, in parts of their words. It is killed after the last one of each.
    kinds: &'a [&'a str],
    /// Whether all its processes are killed after every second step. Otherwise the first one dies alone.
    kills_all: bool,
}

/// Runs the command to its end, and then several times with `kill -9`: after `most` of its steps, evenly spread, and
/// after the last step of each kind. Each time `undone` asserts what else the next command has to undo.
fn kill_after_each(victim: &Victim<'_>, most: usize, undone: impl Fn(&str)) {
    let Victim { command, until, bss, kinds, kills_all } = *victim;
    wakeai(&["sweep"]);
    let before = state(bss);
    let whole = run(command, until, None);
    assert_eq!(whole.end, End::Exited(0), "{:#?}", whole.steps);
    for kind in kinds {
        assert!(whole.steps.iter().any(|step| step.contains(kind)), "{kind}: {:#?}", whole.steps);
    }
    let count = whole.steps.len();
    wakeai(&["sweep"]); // unmounts the bpffs, for which the agent has no privilege any more
    wait_for("the whole run has left nothing", || (state(bss) == before).then_some(()));
    let most = most.min(count);
    let mut fatal: BTreeSet<_> = (0..most).map(|number| number * count / most).collect();
    let last = |kind: &&str| whole.steps.iter().rposition(|step| step.contains(*kind));
    fatal.extend(kinds.iter().filter_map(last));
    for fatal in fatal {
        let kills_all = kills_all && fatal % 2 == 1;
        let died = run(command, until, Some(Fatal { step: fatal, kills_all }));
        let step = died.steps.last().map_or("none", String::as_str);
        let which = if kills_all { "all" } else { "the first process" };
        println!("{which} killed after step {fatal} of {count}: {step}");
        // A run can have up to four steps fewer than the first run. If step `fatal` is one of these, the run ends by
        // itself.
        assert!(died.end == End::Killed || fatal + 5 > count, "{:?}", died.end);
        let swept = wakeai(&["sweep"]);
        let said = stderr(&swept);
        assert!(swept.status.success() && !said.contains("warning"), "after {step}: {said}");
        nothing_left();
        assert_eq!(state(bss), before, "after {step}: {said}");
        undone(step);
        wait_for("the command's processes are gone", || (processes() == 0).then_some(()));
        assert_eq!(
            stderr(&wakeai(&["sweep"])),
            "",
            "after {step} the second command finds something"
        );
    }
}

/// The number of processes that run the program under test, or that a lab starts.
fn processes() -> usize {
    let program = fs::canonicalize(program()).unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let children: [&[u8]; 3] = [b"setpriv\0--pdeathsig\0", b"sh\0-c\0read ", b"iperf3\0"];
    let running = |path: &Path| {
        let command = fs::read(path.join("cmdline")).unwrap_or_default();
        children.iter().any(|start| command.starts_with(start))
            || fs::read_link(path.join("exe")).is_ok_and(|exe| exe == program)
    };
    entries.filter(|entry| running(&entry.path())).count()
}

/// An agent that bounds the receive window of a download, which has its window again after each death.
fn agent(most: usize) {
    let Some(_machine) = Machine::take() else { return };
    let (bss, fleet) = (Bss::new(&["a", "server"]), Fleet::new());
    bss.set_default("a", "cubic");
    let law = "[law]\nname = \"fixed\"\nreceive = 4\n";
    let config = fleet.configure(1, BSSID, law).display().to_string();
    let net = format!("--net=/run/netns/{}", bss.name("a"));
    let command = ["nsenter", &net, program(), "agent", "--config", &config];
    let kinds =
        ["bpf: pin", "bpf: create a link", "bind /run/wakeai/", ITERATE, DEFAULT, DISCIPLINE];
    let download = Download::start(&bss, "a", [10, 77, 0, 2]);
    let until = Until { text: "started", iterations: 12 };
    let (until, bss) = (Some(until), Some(&bss));
    let victim = Victim { command: &command, until, bss, kinds: &kinds, kills_all: true };
    kill_after_each(&victim, most, |step| assert!(!download.is_bounded(), "after {step}"));
    assert!(download.was_bounded());
}

/// Assigns an algorithm to a namespace's new connections, then to its existing ones. The open connection has CUBIC
/// again at the end.
fn assigned(most: usize) {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    bss.set_default("a", "cubic");
    let (from, to) = (bss.namespace("a"), bss.namespace("server"));
    let pause = Duration::from_millis(100);
    let upload = Upload::with_pauses(from, &to, Ipv4Addr::new(10, 77, 0, 2), "cubic", pause);
    for scope in [&[] as &[&str], &["--connections"]] {
        let name = bss.name("a");
        let command = [&[program(), "use", "wakeai_rtt", "--json", "--namespace", &name], scope];
        let way = if scope.is_empty() { DEFAULT } else { ITERATE };
        let kinds = ["bpf: pin", "bind /run/wakeai/", way];
        let until = Some(Until { text: "running_s", iterations: 0 });
        let (command, bss) = (&command.concat(), Some(&bss));
        let victim = Victim { command, until, bss, kinds: &kinds, kills_all: false };
        kill_after_each(&victim, most, |step| {
            assert_eq!(upload.algorithm(), "cubic", "after {step}");
        });
    }
}

/// Runs a lab whose station has an agent and a proxy, each in a process of its own.
fn lab(most: usize) {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let scenario = directory.path().join("small.toml").display().to_string();
    fs::write(&scenario, SCENARIO).unwrap();
    let command = [&[program(), "lab", &scenario, "--json"] as &[&str], &ANY_LATENESS].concat();
    let kinds =
        ["/run/wakeai/leases/", "mkdir /run/wakeai/lab-", "mount /run/netns/", "start a process"];
    let victim =
        Victim { command: &command, until: None, bss: None, kinds: &kinds, kills_all: false };
    kill_after_each(&victim, most, |_| {});
}

#[test]
fn an_agent_killed_after_some_steps_is_undone() {
    agent(SOME);
}

#[test]
fn an_assignment_killed_after_some_steps_is_undone() {
    assigned(1);
}

#[test]
fn a_lab_killed_after_some_steps_is_undone() {
    lab(SOME);
}

#[test]
#[ignore = "takes minutes; `make test-faults` runs it"]
fn an_agent_killed_after_any_step_is_undone() {
    agent(usize::MAX);
}

#[test]
#[ignore = "takes minutes; `make test-faults` runs it"]
fn an_assignment_killed_after_any_step_is_undone() {
    assigned(usize::MAX);
}

#[test]
#[ignore = "takes minutes; `make test-faults` runs it"]
fn a_lab_killed_after_any_step_is_undone() {
    lab(usize::MAX);
}
