//! Tests processes that have only few capabilities, or none.

use std::process::Command;

use wakeai_kernel::{Control, Error, Monitor, MonitorConfig, features, snapshot};

use crate::path::PathConfig;
use crate::rig::{Registration, Rig, kernel, struct_ops};

/// The process that a test below runs without capabilities. It is no test by itself.
#[test]
#[ignore = "runs without capabilities"]
fn everything_is_refused() {
    let found = features::detect();
    assert!(found.to_monitor().is_err() && found.to_bound().is_err());
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

/// Does what the last agent does at its end. A test below runs it with the capabilities that an
/// agent has kept. It is no test by itself.
#[test]
#[ignore = "runs with three capabilities"]
fn the_last_agent_unloads() {
    if std::env::var_os("WAKEAI_LAST_AGENT").is_some() {
        assert!(Control::unload().unwrap());
    }
}

/// Runs one of the functions above as a process, in this thread's network namespace, with only
/// these capabilities.
fn run_with(capabilities: &str, inner: &str) {
    let output = Command::new("setpriv")
        .arg(format!("--bounding-set=-all{capabilities}"))
        .arg("--inh-caps=-all")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", inner])
        .env("WAKEAI_LAST_AGENT", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn the_error_names_the_missing_capabilities() {
    let Some(_kernel) = kernel() else { return };
    run_with("", "privileges::everything_is_refused");
    assert!(!Control::unload().unwrap());
}

#[test]
fn an_agent_that_kept_three_capabilities_moves_its_connections_and_unloads() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    rig.default("wakeai_cubic");
    let _flow = rig.flow(77, "wakeai_cubic");
    let unload = || run_with(",+bpf,+perfmon,+net_admin", "privileges::the_last_agent_unloads");
    rig.sender.run(unload).unwrap();
    let connections = rig.sender.run(|| snapshot(None)).unwrap().unwrap();
    assert!(connections.iter().all(|connection| &*connection.algorithm == "cubic"));
    assert!(!struct_ops().contains("wakeai_cubic"));
    drop(registration);
}
