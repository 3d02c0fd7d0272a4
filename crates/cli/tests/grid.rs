//! `wakeai grid` passes its arguments to the Python package. The tests of grids are in
//! python/tests.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs `wakeai grid` with a shell script in place of the Python interpreter.
fn grid(directory: &Path, script: &str, arguments: &[&str]) -> Output {
    let python = directory.join("python");
    wakeai_tests::write_program(&python, format!("#!/bin/sh\n{script}\n"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakeai"));
    command.arg("grid").args(arguments).env("WAKEAI_PYTHON", python).output().unwrap()
}

#[test]
fn without_the_package_it_exits_with_77_and_says_where_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let output = grid(directory.path(), "exit 1", &["x.toml"]);
    assert_eq!(output.status.code(), Some(77));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("docs/guides/python.md"), "{said}");
}

#[test]
fn without_python_it_exits_with_77() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakeai"));
    let output = command.args(["grid", "x"]).env("WAKEAI_PYTHON", "/nowhere/python").output();
    assert_eq!(output.unwrap().status.code(), Some(77));
}

#[test]
fn every_argument_reaches_the_package_and_its_exit_status_is_the_command_s() {
    let directory = tempfile::tempdir().unwrap();
    let script = "[ \"$1\" = -c ] && { echo wakeai 0; exit; }\necho \"$@\"; exit 5";
    let arguments = ["f.toml", "--set", "a.b=1,2", "--help", "--", "-x"];
    let output = grid(directory.path(), script, &arguments);
    assert_eq!(output.status.code(), Some(5));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "-m wakeai grid f.toml --set a.b=1,2 --help -- -x\n");
}
