//! The directory of the records, and the files in it that must not be replaced.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::marker::{self, Listed, MARKER};
use super::{FILES, RecordsError, cannot};

/// The directory of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The path. The directory is made if it does not exist.
    pub directory: PathBuf,
    /// Whether an earlier result in the directory is replaced.
    pub force: bool,
    /// The file that the scenario was read from. It is never replaced.
    pub scenario: Option<PathBuf>,
}

impl From<&Path> for Output {
    /// The output in `directory`. It replaces nothing.
    fn from(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), force: false, scenario: None }
    }
}

impl Output {
    /// Makes the directory if it does not exist. Returns the directories that were made, the
    /// outermost first.
    pub(super) fn make(&self) -> Result<Vec<PathBuf>, RecordsError> {
        let mut missing = Vec::new();
        for path in self.directory.ancestors().filter(|path| !path.as_os_str().is_empty()) {
            match fs::metadata(path) {
                Ok(found) if found.is_dir() => break,
                Ok(_) => return Err(not_a_directory(path, "a file")),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if fs::symlink_metadata(path).is_ok() {
                        return Err(not_a_directory(path, "a symbolic link that leads nowhere"));
                    }
                    missing.push(path.to_owned());
                }
                // A file is where a directory further up has to be. The next iteration reports it.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                Err(error) => return Err(cannot(path, &error)),
            }
        }
        let mut made: Vec<PathBuf> = Vec::new();
        for path in missing.into_iter().rev() {
            match fs::create_dir(&path) {
                Ok(()) => made.push(path),
                // The path exists now: it is like `a/..`, and `a` was just made.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
                Err(error) => {
                    remove_empty(&made);
                    return Err(cannot(&path, &error));
                }
            }
        }
        Ok(made)
    }

    /// Checks the files that every result has. Each may replace only a file of an earlier result,
    /// and only with [`Self::force`].
    pub(super) fn check(&self, earlier: &Listed) -> Result<(), RecordsError> {
        let names = FILES.iter().copied().chain([MARKER]);
        let names = names.map(PathBuf::from).filter(|path| self.is_there(path));
        self.check_all(&names.collect::<Vec<_>>(), earlier)
    }

    /// Checks the directory of one run. The files in it must belong to an earlier result, too.
    pub(super) fn check_directory(
        &self,
        directory: &Path,
        earlier: &Listed,
    ) -> Result<(), RecordsError> {
        let whole = self.directory.join(directory);
        if !self.is_there(directory) {
            return Ok(());
        }
        if !marker::is_inside(&self.directory, &directory.join("any")) {
            return Err(RecordsError::Foreign(whole));
        }
        let entries = fs::read_dir(&whole)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
        let names: Vec<std::ffi::OsString> = entries.map_err(|error| cannot(&whole, &error))?;
        let names = names.iter().map(|name| directory.join(name));
        self.check_all(&names.collect::<Vec<_>>(), earlier)
    }

    /// Checks files that exist.
    fn check_all(&self, there: &[PathBuf], earlier: &Listed) -> Result<(), RecordsError> {
        for path in there {
            if self.is_scenario(path) {
                return Err(RecordsError::Input(self.directory.join(path)));
            }
        }
        let is_foreign = |path: &&PathBuf| {
            if self.force {
                !earlier.is_ours(&self.directory, path)
            } else {
                // Without `force` nothing is replaced, so it is enough to compare the name.
                !earlier.0.contains_key(*path) && **path != Path::new(MARKER)
                    || earlier.0.is_empty()
            }
        };
        match there.iter().find(is_foreign) {
            Some(path) => Err(RecordsError::Foreign(self.directory.join(path))),
            None if there.is_empty() || self.force => Ok(()),
            None => Err(RecordsError::Earlier(self.directory.clone())),
        }
    }

    fn is_there(&self, path: &Path) -> bool {
        fs::symlink_metadata(self.directory.join(path)).is_ok()
    }

    /// Whether the path leads to the scenario's file, even under another name.
    fn is_scenario(&self, path: &Path) -> bool {
        let identity = |found: Metadata| (found.dev(), found.ino());
        let of = |path: &Path| fs::metadata(path).map(identity).ok();
        let scenario = self.scenario.as_deref().and_then(of);
        scenario.is_some() && of(&self.directory.join(path)) == scenario
    }
}

fn not_a_directory(path: &Path, found: &'static str) -> RecordsError {
    RecordsError::NotADirectory { path: path.to_owned(), found }
}

/// Removes those of the directories that are empty, the last first.
pub(super) fn remove_empty(directories: &[PathBuf]) {
    for directory in directories.iter().rev() {
        let _ = fs::remove_dir(directory); // fails where another process has put a file into it
    }
}
