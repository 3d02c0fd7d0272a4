//! `docs/reference/files.md` has every source file, as `scripts/files` writes it.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

#[test]
fn the_page_of_all_files_is_as_the_script_writes_it() {
    let root = wakeai_tests::root();
    let printed = Command::new(root.join("scripts/files")).arg("--print").output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let fresh = String::from_utf8(printed.stdout).unwrap();
    let kept = fs::read_to_string(root.join("docs/reference/files.md")).unwrap();
    let gone = kept.lines().find(|line| !fresh.lines().any(|other| other == *line));
    let new = fresh.lines().find(|line| !kept.lines().any(|other| other == *line));
    assert!(kept == fresh, "run scripts/files; it has {new:?} instead of {gone:?}");
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let page = fs::read_to_string(wakeai_tests::root().join("docs/reference/files.md")).unwrap();
    let mut listed = BTreeSet::new();
    for part in page.split("\n## ").skip(1) {
        let (folder, lines) = part.split_once('\n').unwrap();
        let names = lines.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next());
        listed.extend(names.map(|name| wakeai_tests::root().join(folder).join(name)));
    }
    let mut missing = Vec::new();
    let mut folders = vec![wakeai_tests::root().join("crates"), wakeai_tests::root().join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && !listed.contains(&path) {
                missing.push(path);
            }
        }
    }
    assert!(missing.is_empty(), "these begin without `//!`: {missing:?}");
}
