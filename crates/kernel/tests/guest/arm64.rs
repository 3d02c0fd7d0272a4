//! An arm64 machine, of what `scripts/arm64-guest` has prepared.

use std::path::PathBuf;

use crate::boot::{Machine, image};

/// Reads from the environment what the script has written there.
pub(crate) fn machine() -> Machine {
    let told = |name| {
        let value = std::env::var_os(name);
        PathBuf::from(value.unwrap_or_else(|| panic!("scripts/arm64-guest sets {name}")))
    };
    let root = told("WAKEAI_ARM64_ROOT");
    Machine {
        qemu: &["qemu-system-aarch64", "-M", "virt", "-accel", "tcg", "-cpu", "max"],
        console: "ttyAMA0",
        patience_s: 1800,
        kernel: image(&root).expect("a Linux 6.1 in WAKEAI_ARM64_ROOT/boot"),
        program: told("WAKEAI_ARM64_PROGRAM"),
        busybox: root.join("bin/busybox"),
        libraries: vec![
            "/usr/aarch64-linux-gnu/lib".into(), // of the cross compiler
            root.join("usr/lib/aarch64-linux-gnu"),
            root.join("lib/aarch64-linux-gnu"),
        ],
        work: root.join("guest"),
    }
}
