//! A system clock is set, or a machine is suspended, while agents run. The agents check with `presence.clock_tolerance`
//! how much their clocks differ.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use wakeai_api::Request;

use wakeai_tests::agent::{Agent, Fleet, in_namespace};
use wakeai_tests::bss::Bss;
use wakeai_tests::{Machine, must, wait_for};

const TOLERANCE: &str = "[presence]\nclock_tolerance = \"1s\"\n";

/// The system clock of one process, which libfaketime sets. All other clocks of the process are the machine's.
struct SystemClock {
    /// The file with the offset. libfaketime reads it each time that the process asks for the time.
    offset: PathBuf,
}

impl SystemClock {
    fn new(fleet: &Fleet) -> Self {
        let clock = Self { offset: fleet.path("clock") };
        clock.set("+0s");
        clock
    }

    /// Sets the offset from the machine's clock, such as `-60s`.
    fn set(&self, offset: &str) {
        let new = self.offset.with_extension("new");
        fs::write(&new, offset).unwrap();
        fs::rename(new, &self.offset).unwrap();
    }

    /// The program under test with this clock, in the namespace of a station.
    fn command(&self, bss: &Bss, name: &str) -> Command {
        let of =
            |machine: &str| format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketimeMT.so.1");
        let library = of(std::env::consts::ARCH);
        assert!(fs::exists(&library).unwrap(), "install the package libfaketime: {library}");
        let mut command = in_namespace(bss, name);
        command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &self.offset);
        command.envs([("FAKETIME_NO_CACHE", "1"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]);
        command
    }
}

#[test]
fn a_clock_that_is_set_is_reported_and_needs_no_restart() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let fleet = Fleet::new();
    let clock = SystemClock::new(&fleet);
    let first = fleet.start(&bss, "a", 1, TOLERANCE);
    let second = fleet.start_by(clock.command(&bss, "b"), &bss, "b", 2, TOLERANCE);
    let hear_each_other = || (first.peers() == [2] && second.peers() == [1]).then_some(());
    wait_for("the agents hear each other", hear_each_other);
    assert_eq!(first.metric("faults_clock") + second.metric("faults_clock"), 0);

    clock.set("-60s");
    for agent in [&first, &second] {
        let reports = |agent: &Agent| {
            agent.metric("faults_clock") > 0 && agent.log().contains("check the time service")
        };
        wait_for("the difference is reported", || reports(agent).then_some(()));
    }
    wait_for("the first agent has removed the second from its peers", || {
        first.peers().is_empty().then_some(())
    });

    clock.set("+0s");
    wait_for("the agents hear each other again", hear_each_other);
}

/// The source of a library for `LD_PRELOAD`. To its process the machine seems to have been
/// suspended for as many seconds as a file says: the library adds them to the system clock and to
/// the time since boot, and leaves the monotonic clock as it is.
const SLEPT: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int slept = -1;

/* The file is opened before the program restricts itself. */
__attribute__((constructor)) static void begin(void)
{
	slept = open(getenv("SLEPT_FILE"), O_RDONLY | O_CLOEXEC);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int status = syscall(SYS_clock_gettime, clock, time);
	long long seconds = 0;

	if (clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME)
		if (pread(slept, &seconds, sizeof(seconds), 0) == sizeof(seconds))
			time->tv_sec += seconds;
	return status;
}
"#;

/// A suspend of the machine that only some processes see.
struct Suspend {
    library: PathBuf,
    path: PathBuf,
    file: File,
}

impl Suspend {
    fn new(fleet: &Fleet) -> Self {
        let (source, library) = (fleet.path("slept.c"), fleet.path("slept.so"));
        fs::write(&source, SLEPT).unwrap();
        must("cc", &format!("-shared -fPIC -o {} {}", library.display(), source.display()));
        let path = fleet.path("slept");
        let suspend = Self { library, file: File::create(&path).unwrap(), path };
        suspend.has_lasted(0);
        suspend
    }

    /// Sets the total duration of the suspend.
    fn has_lasted(&self, seconds: i64) {
        self.file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }

    fn command(&self, bss: &Bss, name: &str) -> Command {
        let mut command = in_namespace(bss, name);
        command.env("LD_PRELOAD", &self.library).env("SLEPT_FILE", &self.path);
        command
    }
}

#[test]
fn after_a_suspend_peers_are_old_and_are_heard_again_without_a_restart() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let fleet = Fleet::new();
    let suspend = Suspend::new(&fleet);
    let start =
        |name, station| fleet.start_by(suspend.command(&bss, name), &bss, name, station, TOLERANCE);
    let (first, second) = (start("a", 1), start("b", 2));
    let hear_each_other = || (first.peers() == [2] && second.peers() == [1]).then_some(());
    wait_for("the agents hear each other", hear_each_other);

    first.signal(Signal::SIGSTOP);
    second.signal(Signal::SIGSTOP);
    suspend.has_lasted(600);
    second.signal(Signal::SIGCONT);
    let uptime = || second.ask(Request::Status)["uptime_s"].as_f64().unwrap();
    wait_for("the second agent's uptime includes the suspend", || {
        (uptime() >= 600.0).then_some(())
    });
    assert!(second.peers().is_empty(), "peers heard ten minutes ago are removed");
    first.signal(Signal::SIGCONT);
    wait_for("the agents hear each other again", hear_each_other);
    assert_eq!(first.metric("faults_clock") + second.metric("faults_clock"), 0);
}

#[test]
fn after_a_suspend_the_time_agrees_with_that_of_a_machine_that_was_awake() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let fleet = Fleet::new();
    let suspend = Suspend::new(&fleet);
    let slept = fleet.start_by(suspend.command(&bss, "a"), &bss, "a", 1, TOLERANCE);
    slept.signal(Signal::SIGSTOP);
    suspend.has_lasted(600);
    slept.signal(Signal::SIGCONT);
    let uptime = || slept.ask(Request::Status)["uptime_s"].as_f64().unwrap();
    wait_for("it has noticed that it slept", || (uptime() >= 600.0).then_some(()));

    // Both system clocks show the same time. On the machine that was awake, the time since boot
    // equals the monotonic clock; on the other one it is 600 s more.
    let clock = SystemClock::new(&fleet);
    clock.set("+600s");
    let awake = fleet.start_by(clock.command(&bss, "b"), &bss, "b", 2, TOLERANCE);
    wait_for("they hear each other", || {
        (slept.peers() == [2] && awake.peers() == [1]).then_some(())
    });
    assert_eq!(slept.metric("faults_clock") + awake.metric("faults_clock"), 0);
}
