//! Monitor and algorithm on Linux 6.1, which has no links for `struct_ops` and the short
//! `cong_control`: a Debian kernel under qemu's software emulation, with this very test binary as
//! its only program.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics or prints")]

mod boot;
mod inside;

/// Not a test of this machine: the guest's init runs it.
#[test]
#[ignore = "runs inside the guest"]
fn inside_the_guest() {
    inside::run();
}

#[test]
fn monitor_and_wakeai_cubic_work_on_linux_6_1() {
    let console = match boot::run() {
        Ok(console) => console,
        Err(reason) => {
            assert!(std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none(), "{reason}");
            println!("skipped: {reason}");
            return;
        }
    };
    assert!(console.contains("guest: status 0"), "{console}");
    // The whole way was gone, and nothing was skipped.
    assert!(console.contains("guest: Linux 6.1."), "{console}");
    assert!(console.contains("guest: all checks made"), "{console}");
}
