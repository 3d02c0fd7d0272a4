//! System clocks that are set while agents run. `presence.clock_tolerance` compares them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::agent::{Agent, Fleet, in_namespace};
use crate::support::bss::Bss;
use crate::support::{Machine, wait_for};

const TOLERANCE: &str = "[presence]\nclock_tolerance = \"1s\"\n";

/// The system clock of one process, by libfaketime. The other clocks stay the machine's.
struct SystemClock {
    /// libfaketime reads the offset from it each time that the process asks for the time.
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
    wait_for("they hear each other", hear_each_other);
    assert_eq!(first.metric("faults_clock") + second.metric("faults_clock"), 0);

    clock.set("-60s");
    for agent in [&first, &second] {
        let reports = |agent: &Agent| {
            agent.metric("faults_clock") > 0 && agent.log().contains("check the time service")
        };
        wait_for("the difference is reported", || reports(agent).then_some(()));
    }
    wait_for("the first has lost the second", || first.peers().is_empty().then_some(()));

    clock.set("+0s");
    wait_for("they hear each other again", hear_each_other);
}
