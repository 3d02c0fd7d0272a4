//! An arm64 machine, from the files that `scripts/arm64-guest` has prepared.

use std::path::PathBuf;

use wakeai_guest::{Kernel, Machine};

/// The machine, and the path of the program that it has to run. The script passes both in
/// environment variables.
pub(crate) fn machine(kernel: &Kernel) -> (Machine, PathBuf) {
    let told = |name| {
        let value = std::env::var_os(name);
        PathBuf::from(value.unwrap_or_else(|| panic!("scripts/arm64-guest sets {name}")))
    };
    let root = told("WAKEAI_ARM64_ROOT");
    let machine = Machine {
        qemu: &["qemu-system-aarch64", "-M", "virt", "-accel", "tcg", "-cpu", "max"],
        console: "ttyAMA0",
        patience_s: 1800,
        kernel: kernel.image(&root).expect("the kernel in WAKEAI_ARM64_ROOT/boot"),
        modules: None,
        busybox: root.join("bin/busybox"),
        libraries: vec![
            "/usr/aarch64-linux-gnu/lib".into(), // the cross compiler's libraries
            root.join("usr/lib/aarch64-linux-gnu"),
            root.join("lib/aarch64-linux-gnu"),
        ],
        strips: false, // the script has stripped the program
        work: root.join("guest"),
        lock: None,
    };
    (machine, told("WAKEAI_ARM64_PROGRAM"))
}
