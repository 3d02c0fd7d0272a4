//! What a process without privileges is told.

use std::process::Command;

use wakeai_kernel::{Control, Error, Monitor, MonitorConfig, features, snapshot};

use crate::rig::kernel;

/// Not a test by itself: the next one runs it without capabilities.
#[test]
#[ignore = "runs without capabilities"]
fn everything_is_refused() {
    let found = features::detect();
    assert!(!found.can_monitor() && !found.can_bound() && !found.can_clamp());
    let errors: [Option<Error>; 3] = [
        Control::open().err(),
        Monitor::open(&MonitorConfig::default()).err(),
        snapshot(None).err(),
    ];
    for error in errors {
        let error = error.expect("it needs capabilities");
        assert!(error.is_missing(), "{error}");
        assert!(error.to_string().contains("CAP_BPF"), "{error}");
    }
}

#[test]
fn a_process_without_capabilities_is_told_which_ones_it_needs() {
    let Some(_kernel) = kernel() else { return };
    let inner = "privileges::everything_is_refused";
    let output = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", inner])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(!Control::unload().unwrap());
}
