//! Monitor and algorithms on other kernels than this machine's, with and without links for
//! `struct_ops`, with the short `cong_control` and the long: Debian's kernels under qemu's software
//! emulation, with this very test program as their only one. On x86-64, and, cross-built, on arm64.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics or prints")]

mod arm64;
mod inside;

use std::path::{Path, PathBuf};

use wakeai_guest::{KERNELS, Kernel, Machine, Program, Task, Verdict, at_once};

/// Not a test of this machine: the guest's init runs it.
#[test]
#[ignore = "runs inside the guest"]
fn inside_the_guest() {
    inside::run();
}

#[test]
fn monitor_and_algorithms_work_on_every_kernel_that_runs_wakeai() {
    let runs = KERNELS.iter().filter(|kernel| kernel.verdict == Verdict::Runs);
    let failed = at_once(runs, |kernel| {
        let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let Some(machine) = wakeai_guest::take(kernel, work) else { return Ok(()) };
        check(kernel, &machine, std::env::current_exe().unwrap(), "x86_64")
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
#[ignore = "scripts/arm64-guest cross-builds the program and then runs this"]
fn monitor_and_algorithms_work_on_arm64() {
    let kernel = KERNELS.iter().find(|kernel| kernel.arm64).unwrap();
    let (machine, program) = arm64::machine(kernel);
    let checked = check(kernel, &machine, program, "aarch64");
    assert!(checked.is_ok(), "{}", checked.unwrap_err());
}

/// What the guest wrote, where a check failed, or not all were made.
fn check(
    kernel: &Kernel,
    machine: &Machine,
    program: PathBuf,
    architecture: &str,
) -> Result<(), String> {
    let task = Task {
        command: "/guest --ignored --exact inside_the_guest --nocapture",
        programs: vec![Program { from: program, to: "/guest".into() }],
        files: Vec::new(),
    };
    let console = machine.boot(&task);
    println!("{console}");
    let began = console.split("guest: Linux ").nth(1).and_then(|rest| rest.lines().next());
    let well = console.contains("guest: status 0") && console.contains("guest: all checks made");
    match began {
        Some(began) if well && kernel.is(began) && began.ends_with(architecture) => Ok(()),
        _ => Err(format!("Linux {} on {architecture}:\n{console}", kernel.version)),
    }
}
