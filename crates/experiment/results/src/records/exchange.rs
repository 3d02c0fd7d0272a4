//! Replaces an earlier result by a new one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::RESULT;
use super::marker::{self, Listed, MARKER};
use super::output::{Output, remove_empty};

/// The name of the directory that keeps the earlier result's files until the new files are in
/// place. It is in the hidden directory in which the new files were written.
const REPLACED: &str = "replaced";

/// Moves the earlier result away, and the new result to its place. If a step fails, all steps are
/// undone.
pub(super) struct Exchange<'a> {
    output: &'a Output,
    /// The hidden directory, which has the new files.
    partial: &'a Path,
    earlier: &'a Listed,
    replaced: PathBuf,
    removed: Vec<PathBuf>,
    placed: Vec<PathBuf>,
    made: Vec<PathBuf>,
}

/// The file that could not be moved, and the reason.
pub(super) type InTheWay = (PathBuf, io::Error);

impl<'a> Exchange<'a> {
    pub(super) fn new(output: &'a Output, partial: &'a Path, earlier: &'a Listed) -> Self {
        let replaced = partial.join(REPLACED);
        let (removed, placed, made) = (Vec::new(), Vec::new(), Vec::new());
        Self { output, partial, earlier, replaced, removed, placed, made }
    }

    /// Moves the files `names` to their places, in this order.
    pub(super) fn run(mut self, names: &[PathBuf]) -> Result<(), InTheWay> {
        let done = self.exchange(names);
        match &done {
            // The directories of the earlier result are removed if they are now empty.
            Ok(()) => self.removed.iter().for_each(|name| self.remove_parents(name)),
            Err(_) => self.undo(),
        }
        done
    }

    fn exchange(&mut self, names: &[PathBuf]) -> Result<(), InTheWay> {
        if self.output.force {
            self.remove_earlier()?;
        }
        names.iter().try_for_each(|name| self.place(name))
    }

    /// Moves the files of the earlier result away, except those that were changed since it was
    /// written.
    fn remove_earlier(&mut self) -> Result<(), InTheWay> {
        let Self { output, earlier, .. } = *self;
        let others = earlier.0.keys().filter(|name| *name != Path::new(RESULT));
        // These two files are moved first. Without them nobody takes the other files for a result.
        let names = [Path::new(RESULT), Path::new(MARKER)].into_iter();
        for name in names.chain(others.map(PathBuf::as_path)) {
            if !earlier.is_ours(&output.directory, name) {
                continue; // the file stays, and `place` refuses a new file of that name
            }
            let (from, to) = (output.directory.join(name), self.replaced.join(name));
            let parent = to.parent().expect("it is in a directory");
            fs::create_dir_all(parent)
                .and_then(|()| fs::rename(&from, &to))
                .map_err(|error| (from, error))?;
            self.removed.push(name.to_owned());
        }
        Ok(())
    }

    fn place(&mut self, name: &Path) -> Result<(), InTheWay> {
        let Self { output, partial, .. } = *self;
        let (from, to) = (partial.join(name), output.directory.join(name));
        let placed = self.make_parents(name).and_then(|()| move_to_free(&from, &to));
        placed.map_err(|error| (to, error))?;
        self.placed.push(name.to_owned());
        Ok(())
    }

    fn make_parents(&mut self, name: &Path) -> io::Result<()> {
        let parents: Vec<&Path> = name.ancestors().skip(1).collect();
        for parent in parents.into_iter().rev().filter(|parent| !parent.as_os_str().is_empty()) {
            let path = self.output.directory.join(parent);
            match fs::create_dir(&path) {
                Ok(()) => self.made.push(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        if marker::is_inside(&self.output.directory, name) {
            return Ok(());
        }
        Err(io::ErrorKind::NotADirectory.into())
    }

    fn undo(&self) {
        let Self { output, partial, .. } = *self;
        // A file that cannot be moved back stays where it is, so no file is lost.
        for name in self.placed.iter().rev() {
            let _ = fs::rename(output.directory.join(name), partial.join(name));
        }
        remove_empty(&self.made);
        for name in self.removed.iter().rev() {
            let _ = move_to_free(&self.replaced.join(name), &output.directory.join(name));
        }
        let _ = fs::remove_dir(&self.replaced);
    }

    fn remove_parents(&self, name: &Path) {
        let directory = &self.output.directory;
        for parent in name.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            let _ = fs::remove_dir(directory.join(parent)); // a directory with other files in it stays
        }
    }
}

/// Moves a file to a free path. It makes a hard link, which fails if the path exists. A rename
/// would replace the file there.
fn move_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // The file system does not support hard links.
        Err(_) if fs::symlink_metadata(to).is_err() => fs::rename(from, to),
        Err(error) => Err(error),
    }
}
