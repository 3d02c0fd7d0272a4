//! `wakeai grid`, which the Python package provides.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use anyhow::anyhow;

use crate::args::GridArguments;
use crate::failure::Failure;

/// The variable that names the program `wakeai` to the Python package.
const PROGRAM: &str = "WAKEAI_PROGRAM";

pub(crate) fn run(arguments: &GridArguments) -> Result<(), Failure> {
    let python = std::env::var_os("WAKEAI_PYTHON").filter(|name| !name.is_empty());
    let python = python.unwrap_or_else(|| OsString::from("python3"));
    let name = python.to_string_lossy();
    let remedy = "`pip install` the package of the directory python/, or set WAKEAI_PYTHON to the \
                  interpreter of an environment that has it (docs/guides/python.md)";
    // The probe prints a text of its own. Another module with the same name is therefore not taken for the package.
    let probe = Command::new(&python)
        .args(["-c", "import wakeai; print('wakeai', wakeai.__version__)"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let probe = probe.map_err(|error| {
        let found =
            anyhow!("wakeai grid needs Python, and {name} cannot be started: {error}; {remedy}");
        Failure::failed(found).missing()
    })?;
    if !probe.status.success() || !probe.stdout.starts_with(b"wakeai ") {
        let found =
            anyhow!("wakeai grid needs the Python package wakeai, and {name} lacks it; {remedy}");
        return Err(Failure::failed(found).missing());
    }
    let mut grid = Command::new(&python);
    grid.args(["-m", "wakeai", "grid"]).args(&arguments.arguments);
    // Grids of the lab start this program, unless the user names another one.
    if let Ok(own) = std::env::current_exe()
        && std::env::var_os(PROGRAM).is_none()
    {
        grid.env(PROGRAM, own);
    }
    let error = grid.exec();
    Err(Failure::failed(anyhow!("{name} cannot be started: {error}")))
}
