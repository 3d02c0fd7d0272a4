//! The program under test. Cargo tells a test where the programs of its own package are; this package has none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;
use std::{env, fs};

use serde_json::Value;

/// The path of `wakeai`: beside the directory `deps` in which cargo puts this test program, or in the same directory
/// where both were copied, as into a guest.
///
/// Cargo builds it for the tests of the whole workspace, but not for those of this package alone. So where cargo runs
/// this test program, and `wakeai` is missing or older than one of its sources, this function builds it, once.
///
/// # Panics
///
/// If it is missing and no cargo runs this test program, or if it cannot be built.
pub fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let this = env::current_exe().unwrap();
        let here = this.parent().unwrap();
        let is_built = here.file_name().is_some_and(|name| name == "deps");
        let program = if is_built { here.with_file_name("wakeai") } else { here.join("wakeai") };
        match env::var("CARGO") {
            Ok(cargo) if !is_current(&program, &cargo) => build(&program, &cargo),
            _ => {}
        }
        assert!(
            program.exists(),
            "{} is missing: `cargo build --locked --bin wakeai` with the profile of this test makes it",
            program.display()
        );
        program.into_os_string().into_string().unwrap()
    })
}

/// Whether no source of the program is newer than it.
fn is_current(program: &Path, cargo: &str) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified());
    let Ok(built) = changed(program) else { return false };
    let newest = packages(cargo).iter().map(|directory| newest(directory)).max();
    newest.is_some_and(|newest| newest <= built)
}

/// The directories of the program's package and of the packages of this workspace that it depends on.
fn packages(cargo: &str) -> Vec<PathBuf> {
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"]);
    let output = metadata.current_dir(crate::root()).output().unwrap();
    assert!(output.status.success(), "{}", crate::stderr(&output));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = metadata["packages"].as_array().unwrap();
    let (mut names, mut waiting) = (BTreeSet::new(), vec!["wakeai-cli"]);
    let mut directories = Vec::new();
    while let Some(name) = waiting.pop() {
        let package = all.iter().find(|package| package["name"] == name);
        let Some(package) = package.filter(|_| names.insert(name)) else { continue };
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        directories.push(manifest.parent().unwrap().to_owned());
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let used = dependencies.filter(|dependency| dependency["kind"] != "dev");
        waiting.extend(used.map(|dependency| dependency["name"].as_str().unwrap()));
    }
    directories
}

/// When a file below the directory last changed, without those of tests and benches.
fn newest(directory: &Path) -> SystemTime {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let changes = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true if ["tests", "benches"].iter().any(|name| entry.file_name() == *name) => {
            SystemTime::UNIX_EPOCH
        }
        true => newest(&entry.path()),
        false => entry.metadata().unwrap().modified().unwrap(),
    });
    changes.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Builds the program with the profile of this test program.
fn build(program: &Path, cargo: &str) {
    let mut build = Command::new(cargo);
    build.args(["build", "--locked", "--quiet", "--bin", "wakeai"]);
    if program.parent().is_some_and(|directory| directory.ends_with("release")) {
        build.arg("--release");
    }
    let status = build.current_dir(crate::root()).status().unwrap();
    assert!(status.success(), "{} cannot be built: {status}", program.display());
}
