//! The wall clock is read only where a person or another machine reads the time. Durations (patience,
//! ages, leases, deadlines) are those of `CLOCK_MONOTONIC` or `CLOCK_BOOTTIME`, which nobody can set.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The files below `crates` that read the wall clock or a file's times, and why.
const READS: &[(&str, &str)] = &[
    (
        "device/agent/src/controller.rs",
        "presence messages carry the time, which other machines compare with theirs",
    ),
    (
        "device/host/src/change.rs",
        "the time of a file's creation, which is compared with itself alone",
    ),
    (
        "device/probe/src/io/clock.rs",
        "the kernel stamps datagrams with it; stamps are compared with each other",
    ),
    ("experiment/air/src/hwsim/capture.rs", "a capture says when each frame was on the air"),
    (
        "experiment/field/src/check.rs",
        "compares this machine's wall clock with that of another machine",
    ),
    ("experiment/field/src/station/inspect.rs", "tells the wall clock for that comparison"),
    ("device/top/src/source/mod.rs", "a recording says when it was made"),
];

/// What reads the wall clock, or a time that another clock has written.
const CLOCKS: [&str; 6] =
    ["SystemTime", "CLOCK_REALTIME", "UNIX_EPOCH", ".modified()", ".created()", ".accessed()"];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap();
        if path.is_dir() && !["tests", "benches", "target"].contains(&name.as_str()) {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_wall_clock_is_read_only_where_somebody_else_reads_it() {
    let crates = &wakeai_tests::root().join("crates");
    let mut files = Vec::new();
    sources(crates, &mut files);
    let reads = files.iter().filter(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let mut lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.any(|line| CLOCKS.iter().any(|clock| line.contains(clock)))
    });
    let reads: BTreeSet<String> = reads
        .map(|path| path.strip_prefix(crates).unwrap().display().to_string())
        // Its own tests step the clock while it runs.
        .filter(|path| !["device/put/", "device/serve/"].iter().any(|own| path.starts_with(own)))
        .collect();
    let listed: BTreeSet<String> = READS.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(
        reads, listed,
        "measure durations with CLOCK_BOOTTIME, or list the file with a reason"
    );
}
