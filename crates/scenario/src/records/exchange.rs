//! Putting a result into the place of an earlier one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::RESULT;
use super::marker::{self, MARKER};
use super::output::remove_empty;
use super::workplace::Workplace;

/// In the hidden directory: what is about to be replaced.
const REPLACED: &str = "replaced";

/// An earlier result goes, the new one comes; or all stays as it was.
pub(super) struct Exchange<'a> {
    workplace: &'a Workplace,
    replaced: PathBuf,
    removed: Vec<PathBuf>,
    placed: Vec<PathBuf>,
    made: Vec<PathBuf>,
}

/// Which file was in the way, and why.
pub(super) type InTheWay = (PathBuf, io::Error);

impl<'a> Exchange<'a> {
    pub(super) fn new(workplace: &'a Workplace) -> Self {
        let replaced = workplace.path(REPLACED);
        Self { workplace, replaced, removed: Vec::new(), placed: Vec::new(), made: Vec::new() }
    }

    pub(super) fn run(mut self, names: &[PathBuf]) -> Result<(), InTheWay> {
        let done = self.exchange(names);
        match &done {
            // Where those of the earlier result are empty now.
            Ok(()) => self.removed.iter().for_each(|name| self.remove_parents(name)),
            Err(_) => self.back(),
        }
        done
    }

    fn exchange(&mut self, names: &[PathBuf]) -> Result<(), InTheWay> {
        if self.workplace.output.force {
            self.remove_earlier()?;
        }
        names.iter().try_for_each(|name| self.place(name))
    }

    /// Takes away what the earlier result has, as long as it is as it was written.
    fn remove_earlier(&mut self) -> Result<(), InTheWay> {
        let Workplace { output, earlier, .. } = self.workplace;
        let others = earlier.0.keys().filter(|name| *name != Path::new(RESULT));
        // Without its result and its list it is no result any more.
        let names = [Path::new(RESULT), Path::new(MARKER)].into_iter();
        for name in names.chain(others.map(PathBuf::as_path)) {
            if !earlier.is_ours(&output.directory, name) {
                continue; // in the way, if a file of that name is to come
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
        let Workplace { output, partial, .. } = self.workplace;
        let (from, to) = (partial.join(name), output.directory.join(name));
        let placed = self.make_parents(name).and_then(|()| move_to_free(&from, &to));
        placed.map_err(|error| (to, error))?;
        self.placed.push(name.to_owned());
        Ok(())
    }

    fn make_parents(&mut self, name: &Path) -> io::Result<()> {
        let parents: Vec<&Path> = name.ancestors().skip(1).collect();
        for parent in parents.into_iter().rev().filter(|parent| !parent.as_os_str().is_empty()) {
            let path = self.workplace.output.directory.join(parent);
            match fs::create_dir(&path) {
                Ok(()) => self.made.push(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        if marker::is_inside(&self.workplace.output.directory, name) {
            return Ok(());
        }
        Err(io::ErrorKind::NotADirectory.into())
    }

    /// Undoes what was done so far.
    fn back(&self) {
        let Workplace { output, partial, .. } = self.workplace;
        // What cannot be moved back stays where it is: nothing is lost.
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
        let directory = &self.workplace.output.directory;
        for parent in name.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            let _ = fs::remove_dir(directory.join(parent)); // where others are in it, it stays
        }
    }
}

/// Moves a file to where nothing is. A link tells at once that something is there, which a rename
/// would replace.
fn move_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without links.
        Err(_) if fs::symlink_metadata(to).is_err() => fs::rename(from, to),
        Err(error) => Err(error),
    }
}
