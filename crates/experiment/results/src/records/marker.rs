//! The list of a result's files with their digests. It distinguishes these files from the user's.
//!
//! A file belongs to the result as long as its length and its digest are those in the list. A file
//! that was edited later belongs to the user, and so does each file that the list does not name.
//! The list ends with a digest of itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

/// The name of the list, in the directory of the result.
pub(super) const MARKER: &str = "wakeai.files";
/// The length, in bytes, of the longest list that is read. It is enough for the captures of a
/// thousand runs with more than a thousand stations.
const LONGEST: u64 = 1 << 28;

/// A file's length and digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    length: u64,
    digest: String,
}

impl Seen {
    /// The length and the digest of the file as it is now.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path)?)?;
        let (length, digest) = (hasher.count(), hasher.finalize().to_hex().to_string());
        Ok(Self { length, digest })
    }
}

/// The files of a result, by path in its directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed(pub(super) BTreeMap<PathBuf, Seen>);

impl Listed {
    /// Reads the list in `directory`. The result is empty if there is no list, or if Wakeai did not
    /// write it.
    pub(super) fn read(directory: &Path) -> Self {
        let path = directory.join(MARKER);
        let is_list = |path: &Path| {
            fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LONGEST)
        };
        let text = if is_list(&path) { fs::read_to_string(path).ok() } else { None };
        text.and_then(|text| Self::parse(&text)).unwrap_or_default()
    }

    pub(super) fn to_text(&self, version: &str) -> String {
        let mut text = format!(
            "# wakeai {version} wrote these files; --force replaces them while they are as listed\n"
        );
        for (path, Seen { length, digest }) in &self.0 {
            // Writing to a String never fails.
            let _ = writeln!(text, "{digest} {length} {}", path.display());
        }
        let seal = seal(&text);
        text + &seal
    }

    fn parse(text: &str) -> Option<Self> {
        let end = text.strip_suffix('\n')?.rfind('\n')? + 1;
        let (listed, last) = text.split_at(end);
        if !listed.starts_with("# wakeai ") || last != seal(listed) {
            return None;
        }
        listed.lines().skip(1).map(entry).collect::<Option<_>>().map(Self)
    }

    /// Whether the file is still as Wakeai wrote it, and no symbolic link leads to it.
    pub(super) fn is_ours(&self, directory: &Path, path: &Path) -> bool {
        if path == Path::new(MARKER) {
            return !self.0.is_empty() && Self::read(directory) == *self;
        }
        let Some(written) = self.0.get(path) else { return false };
        let whole = directory.join(path);
        is_inside(directory, path)
            && fs::symlink_metadata(&whole)
                .is_ok_and(|file| file.is_file() && file.len() == written.length)
            && Seen::of(&whole).is_ok_and(|now| now == *written)
    }
}

fn seal(listed: &str) -> String {
    format!("# {}\n", blake3::hash(listed.as_bytes()).to_hex())
}

fn entry(line: &str) -> Option<(PathBuf, Seen)> {
    let mut parts = line.splitn(3, ' ');
    let (digest, length) = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
    let path = PathBuf::from(parts.next()?);
    let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    is_below.then_some((path, Seen { length, digest }))
}

/// Whether each directory of `path` below `directory` is a real directory and not a symbolic link.
pub(super) fn is_inside(directory: &Path, path: &Path) -> bool {
    let parents = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
    let is_directory = |parent: &Path| {
        fs::symlink_metadata(directory.join(parent)).is_ok_and(|file| file.is_dir())
    };
    parents.into_iter().all(is_directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(directory: &Path, paths: &[&str]) -> Listed {
        let seen = |path: &&str| (PathBuf::from(path), Seen::of(&directory.join(path)).unwrap());
        Listed(paths.iter().map(seen).collect())
    }

    #[test]
    fn a_list_reads_back_and_one_that_was_changed_is_none() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a", "b c"] {
            fs::write(directory.path().join(name), name).unwrap();
        }
        let written = listed(directory.path(), &["a", "b c"]);
        let text = written.to_text("0.1.0");
        fs::write(directory.path().join(MARKER), &text).unwrap();
        assert_eq!(Listed::read(directory.path()), written);
        for changed in
            [text.replace("b c", "b d"), text[..text.len() - 2].to_owned(), String::new()]
        {
            fs::write(directory.path().join(MARKER), changed).unwrap();
            assert_eq!(Listed::read(directory.path()), Listed::default());
        }
    }

    #[test]
    fn a_list_names_nothing_outside_of_its_directory() {
        for path in ["/etc/passwd", "../notes", "pcap/../../notes"] {
            let seen = Seen { length: 0, digest: String::new() };
            let list = Listed([(PathBuf::from(path), seen)].into());
            assert_eq!(Listed::parse(&list.to_text("0.1.0")), None, "{path}");
        }
    }

    #[test]
    fn an_edited_or_linked_file_is_not_of_the_result() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        fs::create_dir(directory.join("pcap")).unwrap();
        for name in ["a", "b", "pcap/c"] {
            fs::write(directory.join(name), "x").unwrap();
        }
        let list = listed(directory, &["a", "b", "pcap/c"]);
        let ours = |path: &str| list.is_ours(directory, Path::new(path));
        assert!(ours("a") && ours("b") && ours("pcap/c") && !ours("d"));
        fs::write(directory.join("a"), "y").unwrap();
        fs::rename(directory.join("b"), directory.join("d")).unwrap();
        std::os::unix::fs::symlink("d", directory.join("b")).unwrap();
        fs::rename(directory.join("pcap"), directory.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", directory.join("pcap")).unwrap();
        assert!(!ours("a") && !ours("b") && !ours("pcap/c"));
    }
}
