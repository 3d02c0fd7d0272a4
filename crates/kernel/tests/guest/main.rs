//! Monitor and algorithms on Linux 6.1, which has no links for `struct_ops` and the short
//! `cong_control`: a Debian kernel under qemu's software emulation, with this very test program as
//! its only one. On x86-64, and, cross-built, on arm64.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics or prints")]

mod amd64;
mod arm64;
mod boot;
mod inside;

/// Not a test of this machine: the guest's init runs it.
#[test]
#[ignore = "runs inside the guest"]
fn inside_the_guest() {
    inside::run();
}

#[test]
fn monitor_and_algorithms_work_on_linux_6_1() {
    match amd64::machine() {
        Ok(machine) => check(&machine.boot(), "x86_64"),
        Err(reason) => {
            assert!(std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none(), "{reason}");
            println!("skipped: {reason}");
        }
    }
}

#[test]
#[ignore = "scripts/arm64-guest cross-builds the program and then runs this"]
fn monitor_and_algorithms_work_on_linux_6_1_on_arm64() {
    let console = arm64::machine().boot();
    print!("{console}");
    check(&console, "aarch64");
}

fn check(console: &str, architecture: &str) {
    assert!(console.contains("guest: status 0"), "{console}");
    // The whole way was gone, and nothing was skipped.
    let began = console.lines().find(|line| line.contains("guest: Linux 6.1.")).expect(console);
    assert!(began.contains(architecture), "{console}");
    assert!(console.contains("guest: all checks made"), "{console}");
}
