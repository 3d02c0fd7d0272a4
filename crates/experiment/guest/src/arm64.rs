//! An arm64 guest, from the files that `scripts/arm64-guest` has prepared.

use std::path::PathBuf;

use crate::{Kernel, Machine, modules};

/// The machine with this kernel. The script passes the directory of the unpacked packages in `WAKEAI_ARM64_ROOT`.
pub fn arm64(kernel: &Kernel) -> Machine {
    let root = PathBuf::from(told("WAKEAI_ARM64_ROOT"));
    let loaded = root.join("guest-modules");
    if !loaded.join("order").exists() {
        modules::copy(&root.join("lib/modules"), &loaded);
    }
    Machine {
        qemu: &["qemu-system-aarch64", "-M", "virt", "-accel", "tcg", "-cpu", "max"],
        console: "ttyAMA0",
        patience_s: 1800,
        kernel: kernel.image(&root).expect("the kernel in WAKEAI_ARM64_ROOT/boot"),
        modules: Some(loaded),
        busybox: root.join("bin/busybox"),
        libraries: vec![
            "/usr/aarch64-linux-gnu/lib".into(), // the cross compiler's libraries
            root.join("usr/lib/aarch64-linux-gnu"),
            root.join("lib/aarch64-linux-gnu"),
        ],
        strips: false, // the script has stripped the programs
        work: root.join("guest"),
        lock: None,
    }
}

/// The value of an environment variable that a script sets.
pub fn told(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("a script of scripts/ sets {name}"))
}
