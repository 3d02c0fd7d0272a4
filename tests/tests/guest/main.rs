//! Runs the real program on every kernel of `wakeai_guest::testing::KERNELS`, which are Debian's kernels
//! under qemu's software emulation. On the host the tests boot the kernels. In the guest this test
//! program runs as `/checks`, and uses `wakeai`.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the test on the host reads this output")]

mod agent;
mod android;
mod departures;
mod lab;
mod proxy;
mod queues;
mod refused;
#[allow(dead_code, reason = "the tests of `wakeai use` need more of it")]
#[path = "../use_algorithm/rig.rs"]
mod rig;
#[allow(dead_code, reason = "the tests of `wakeai proxy` need more of it")]
#[path = "../proxy/road.rs"]
mod road;
mod rule;
mod static_program;
#[path = "../faults/steps.rs"]
mod steps;
mod wifi;

use std::path::{Path, PathBuf};
use std::time::Instant;

use wakeai_guest::Program;
use wakeai_guest::testing::{KERNELS, Kernel, Task, Verdict, at_once, skip, take};

/// What the scripts `static.sh` and `android.sh` have in common.
const SCRIPT_LIB: &str = include_str!("lib.sh");
/// The programs that the checks and `wakeai` run in the guest, in addition to busybox's.
const TOOLS: [&str; 6] = ["bpftool", "curl", "ip", "iperf3", "nft", "setpriv"];
/// The programs that the checks with radios run in the guest, in addition to busybox's.
const WIFI_TOOLS: [&str; 5] = ["bpftool", "hostapd", "ip", "iw", "tc"];
/// The programs that the checks with queues run in the guest, in addition to busybox's.
const QUEUE_TOOLS: [&str; 3] = ["bpftool", "ip", "tc"];
/// The programs that the checks with departure times run in the guest, in addition to busybox's.
const DEPARTURE_TOOLS: [&str; 4] = ["bpftool", "ip", "iperf3", "tc"];

/// The guest's init runs this test or one of the next four. They are not for the host.
#[test]
#[ignore = "runs inside the guest"]
fn inside_a_guest_that_runs_wakeai() {
    greet();
    lab::ends_with_its_table();
    agent::sets_bounds_reports_and_leaves_nothing();
    rule::moves_connections_and_covers_a_cgroup();
    proxy::carries_forwarded_and_explicit_connections();
    println!("guest: all checks made");
}

#[test]
#[ignore = "runs inside the guest"]
fn inside_a_guest_that_is_too_old() {
    greet();
    refused::every_command_says_what_is_missing();
    println!("guest: all checks made");
}

#[test]
#[ignore = "runs inside the guest"]
fn inside_a_guest_with_radios() {
    greet();
    wifi::agents_follow_their_access_point();
    println!("guest: all checks made");
}

#[test]
#[ignore = "runs inside the guest"]
fn inside_a_guest_with_queues() {
    greet();
    queues::are_told_apart();
    println!("guest: all checks made");
}

#[test]
#[ignore = "runs inside the guest"]
fn inside_a_guest_with_departure_times() {
    greet();
    departures::take_the_place_of_a_default_alone();
    departures::leave_tcp_as_it_is();
    departures::stand_while_an_agent_governs_datagrams();
    departures::go_with_an_agent_that_dies_or_hangs();
    departures::are_undone_after_kill_9_at_each_of_their_steps();
    departures::follow_the_interface_and_other_programs();
    println!("guest: all checks made");
}

fn greet() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    println!("guest: Linux {release}");
}

/// Prints the name and the duration of a step inside the guest.
fn passed(what: &str, since: Instant) {
    println!("guest: {what} ({:.0} s)", since.elapsed().as_secs_f64());
}

/// `make test-guests` runs this test.
#[test]
#[ignore = "boots every kernel of the list: minutes"]
fn wakeai_works_or_says_what_is_missing_on_every_kernel_of_the_list() {
    let failed = at_once(KERNELS.iter(), try_on);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// `make test-guests` runs this test.
#[test]
#[ignore = "boots every kernel of the list: minutes"]
fn agents_follow_their_access_point_on_a_real_802_11_stack() {
    let runs = KERNELS.iter().filter(|kernel| kernel.verdict == Verdict::Runs);
    let failed = at_once(runs, |kernel| {
        let command = "/checks --ignored --exact inside_a_guest_with_radios --nocapture";
        boot(kernel, 900, &WIFI_TOOLS, command, Vec::new(), "guest: all checks made").map(drop)
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// `make test-guests` runs this test.
#[test]
#[ignore = "boots every kernel of the list: minutes"]
fn the_buffer_probe_tells_a_kernel_s_queues_apart() {
    let runs = KERNELS.iter().filter(|kernel| kernel.verdict == Verdict::Runs);
    let failed = at_once(runs, |kernel| {
        let command = "/checks --ignored --exact inside_a_guest_with_queues --nocapture";
        boot(kernel, 900, &QUEUE_TOOLS, command, Vec::new(), "guest: all checks made").map(drop)
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// `make test-guests` runs this test.
#[test]
#[ignore = "boots every kernel of the list: minutes"]
fn datagrams_leave_at_departure_times_and_tcp_as_before() {
    let runs = KERNELS.iter().filter(|kernel| kernel.verdict == Verdict::Runs);
    let failed = at_once(runs, |kernel| {
        let command = "/checks --ignored --exact inside_a_guest_with_departure_times --nocapture";
        boot(kernel, 900, &DEPARTURE_TOOLS, command, Vec::new(), "guest: all checks made").map(drop)
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// `make test-guests-quickstart` runs this test, which takes minutes for each kernel.
#[test]
#[ignore = "boots every kernel of the list: minutes for each"]
fn quickstart_ends_with_its_table_on_every_kernel_that_runs_wakeai() {
    let runs = KERNELS.iter().filter(|kernel| kernel.verdict == Verdict::Runs);
    let failed = at_once(runs, quickstart_on);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn try_on(kernel: &Kernel) -> Result<(), String> {
    let test = match kernel.verdict {
        Verdict::Runs => "inside_a_guest_that_runs_wakeai",
        Verdict::Refused => "inside_a_guest_that_is_too_old",
    };
    let command = format!("/checks --ignored --exact {test} --nocapture");
    boot(kernel, 900, &TOOLS, &command, Vec::new(), "guest: all checks made").map(drop)
}

fn quickstart_on(kernel: &Kernel) -> Result<(), String> {
    let path = wakeai_tests::root().join("scenarios/quickstart.toml");
    let files = vec![("/quickstart.toml".to_owned(), std::fs::read_to_string(path).unwrap())];
    let lab = format!("/wakeai lab /quickstart.toml {}", wakeai_tests::ANY_LATENESS.join(" "));
    // The output goes through a pipe, because on a terminal the command draws bars.
    let command = format!("({lab} 2>&1; echo $? >/status) | cat; sh -c \"exit $(cat /status)\"");
    let Some(console) = boot(kernel, 3600, &TOOLS, &command, files, "\n airtime ")? else {
        return Ok(());
    };
    let share = goodput(&console, "airtime") / goodput(&console, "default");
    // If connections of the first run still hold memory, too little is left in the guest, and this
    // share falls to 0.36.
    if share > 0.7 {
        Ok(())
    } else {
        Err(format!("{share} of the goodput without a law:\n{console}"))
    }
}

/// The first figure in the table's row of a condition; 0 where there is none.
fn goodput(console: &str, condition: &str) -> f64 {
    let mut rows = console.lines().map(str::split_whitespace);
    let row = rows.find_map(|mut row| (row.next() == Some(condition)).then(|| row.next()));
    row.flatten().and_then(|figure| figure.parse().ok()).unwrap_or(0.0)
}

/// Runs the command on that kernel and returns its output, or `None` if the kernel or a tool is
/// missing here. It is an error if the command fails or does not print `end`.
fn boot(
    kernel: &Kernel,
    patience_s: u64,
    tools: &[&str],
    command: &str,
    files: Vec<(String, String)>,
    end: &str,
) -> Result<Option<String>, String> {
    let tools: Result<Vec<_>, _> = tools.iter().copied().map(Program::tool).collect();
    let tools = match tools {
        Ok(tools) => tools,
        Err(reason) => {
            skip(&reason.to_string());
            return Ok(None);
        }
    };
    let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(mut machine) = take(kernel, work) else { return Ok(None) };
    machine.patience_s = patience_s;
    let program = |from: &str, to: &str| Program { from: from.into(), to: to.into() };
    let this = std::env::current_exe().unwrap();
    let mut programs = vec![
        program(this.to_str().unwrap(), "/checks"),
        program(wakeai_tests::program(), "/wakeai"),
    ];
    programs.extend(tools);
    let began = Instant::now();
    let console = machine.boot(&Task { command, programs, files });
    println!("{console}\nLinux {} took {:.0} s", kernel.version, began.elapsed().as_secs_f64());
    if console.contains("guest: status 0") && console.contains(end) {
        return Ok(Some(console));
    }
    Err(format!("Linux {} of {}:\n{console}", kernel.version, kernel.suite))
}

/// Writes a file into `/tmp`, which ends with the guest.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new("/tmp").join(name);
    std::fs::write(&path, text).unwrap();
    path
}
