//! Runs each target with the inputs in its corpus, so that corrected errors stay corrected.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use wakeai_fuzz_targets::TARGETS;

/// The limits of a corpus. They keep the test short and the repository small.
const MOST_FILES: usize = 200;
const MOST_BYTES: u64 = 300_000;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("it is there");
    let name = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    entries.map(|entry| name(entry.expect("readable").path())).collect()
}

#[test]
fn every_target_has_its_program_and_its_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz().join("targets")), targets);
    assert_eq!(names(&fuzz().join("corpus")), targets);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("readable");
    for name in &targets {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        let program = fuzz().join(format!("targets/{name}.rs"));
        let program = fs::read_to_string(program).expect("readable");
        assert!(program.contains(&format!("run(\"{name}\"")), "{program}");
    }
}

#[test]
fn every_kept_input_passes_its_target() {
    for (name, target) in TARGETS {
        let (mut files, mut bytes) = (0, 0);
        for entry in fs::read_dir(fuzz().join("corpus").join(name)).expect("it is there") {
            let path = entry.expect("readable").path();
            let input = fs::read(&path).expect("readable");
            let passed = std::panic::catch_unwind(|| target(&input));
            assert!(passed.is_ok(), "{}", path.display());
            files += 1;
            bytes += input.len() as u64;
        }
        assert!((1..=MOST_FILES).contains(&files), "{name}: {files} files");
        assert!(bytes <= MOST_BYTES, "{name}: {bytes} bytes");
    }
}
