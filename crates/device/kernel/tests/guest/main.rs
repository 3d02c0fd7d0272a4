//! Tests the monitor and the algorithms on other kernels than this machine's. They differ in
//! whether BPF links can hold registrations (`struct_ops`), and in the signature of the hook
//! `cong_control`. The kernels are Debian's, under qemu's software emulation. The only program in a
//! guest is this test program. It runs on x86-64 and, cross-built, on arm64.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics or prints")]

mod inside;
mod wifi;

use std::path::{Path, PathBuf};

use wakeai_guest::Program;
use wakeai_guest::testing::{
    KERNELS, Kernel, Rig, Task, Verdict, arm64, at_once, skip, take, told,
};

/// The checks that the guest's init runs. On this machine the function is not run.
#[test]
#[ignore = "runs inside the guest"]
fn inside_the_guest() {
    inside::run();
}

/// `make test-guests` runs this test.
#[test]
#[ignore = "boots kernels of the list: a minute"]
fn monitor_and_algorithms_work_on_every_kernel_that_runs_wakeai() {
    let runs = KERNELS.iter().filter(|kernel| kernel.verdict == Verdict::Runs);
    let failed = at_once(runs, |kernel| {
        let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let Some(machine) = take(kernel, work) else { return Ok(()) };
        let own = std::env::current_exe().unwrap();
        check(kernel, &machine, own, Vec::new(), "inside_the_guest", "x86_64")
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
#[ignore = "runs inside the guest"]
fn inside_the_guest_with_radios() {
    wifi::run();
}

/// `make test-guests` runs this test.
#[test]
#[ignore = "boots kernels of the list: a minute"]
fn a_budget_keeps_an_aggregate_in_the_queue_of_a_wifi_interface() {
    let tools: Result<Vec<_>, _> = wifi::TOOLS.into_iter().map(Program::tool).collect();
    let tools = match tools {
        Ok(tools) => tools,
        Err(reason) => return skip(&reason.to_string()),
    };
    let runs = KERNELS.iter().filter(|kernel| kernel.verdict == Verdict::Runs);
    let failed = at_once(runs, |kernel| {
        let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let Some(machine) = take(kernel, work) else { return Ok(()) };
        let own = std::env::current_exe().unwrap();
        check(kernel, &machine, own, tools.clone(), "inside_the_guest_with_radios", "")
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
#[ignore = "scripts/arm64-guest cross-builds the program and then runs this"]
fn monitor_and_algorithms_work_on_arm64() {
    let kernel = KERNELS.iter().find(|kernel| kernel.arm64).unwrap();
    let program = PathBuf::from(told("WAKEAI_ARM64_PROGRAM"));
    let checked = check(kernel, &arm64(kernel), program, Vec::new(), "inside_the_guest", "aarch64");
    assert!(checked.is_ok(), "{}", checked.unwrap_err());
}

/// Runs a test of this program in the guest, and returns the guest's output. Panics if a check
/// failed or was not made.
fn check(
    kernel: &Kernel,
    machine: &Rig,
    program: PathBuf,
    tools: Vec<Program>,
    test: &str,
    architecture: &str,
) -> Result<(), String> {
    let mut programs = vec![Program { from: program, to: "/guest".into() }];
    programs.extend(tools);
    let command = format!("/guest --ignored --exact {test} --nocapture");
    let console = machine.boot(&Task { command: &command, programs, files: Vec::new() });
    println!("{console}");
    let began = console.split("guest: Linux ").nth(1).and_then(|rest| rest.lines().next());
    let well = console.contains("guest: status 0") && console.contains("guest: all checks made");
    match began {
        Some(began) if well && kernel.is(began) && began.ends_with(architecture) => Ok(()),
        _ => Err(format!("Linux {} on {architecture}:\n{console}", kernel.version)),
    }
}
