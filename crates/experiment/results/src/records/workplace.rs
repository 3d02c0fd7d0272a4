//! The hidden directory in which records are written until all are complete.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::exchange::Exchange;
use super::marker::{self, Listed, MARKER, Seen};
use super::output::{Output, remove_empty};
use super::{RESULT, RecordsError, cannot};

/// The name of the hidden directory, in the directory of the records.
const PARTIAL: &str = ".wakeai.partial";
/// The name, in the hidden directory, of the file that the writing process locks.
const LOCK: &str = "lock";

/// The hidden directory of one command. Dropping this value removes the directory and its content.
#[derive(Debug)]
pub(super) struct Workplace {
    output: Output,
    partial: PathBuf,
    /// The directories that were made to contain the hidden directory, the outermost first.
    made: Vec<PathBuf>,
    /// The files that an earlier command wrote to the output directory.
    earlier: Listed,
    /// The lock file, which stays locked until this value is dropped.
    _lock: File,
}

impl Workplace {
    /// Makes the hidden directory, if `output` may be written.
    pub(super) fn begin(output: Output) -> Result<Self, RecordsError> {
        let made = output.make()?;
        let earlier = Listed::read(&output.directory);
        let partial = output.directory.join(PARTIAL);
        match output.check(&earlier).and_then(|()| take(&output, &partial)) {
            Ok(lock) => Ok(Self { output, partial, made, earlier, _lock: lock }),
            Err(error) => {
                remove_empty(&made);
                Err(error)
            }
        }
    }

    /// The path at which the file or directory `name` is written.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.partial.join(name)
    }

    /// Makes the directory `name` for the files of these runs. It returns an error if the directory
    /// of a run already exists with files that do not belong to an earlier result.
    pub(super) fn directory(
        &self,
        name: &str,
        runs: impl IntoIterator<Item = String>,
    ) -> Result<PathBuf, RecordsError> {
        for run in runs {
            self.output.check_directory(&Path::new(name).join(run), &self.earlier)?;
        }
        let path = self.path(name);
        fs::create_dir(&path).map_err(|error| cannot(&path, &error))?;
        Ok(path)
    }

    /// Moves everything to its place, `result.json` last. If another file has appeared at a target,
    /// the records are kept together under another name.
    pub(super) fn finish(mut self, version: &str) -> Result<(), RecordsError> {
        let list = self.mark(version)?;
        let mut names: Vec<PathBuf> = list.0.into_keys().collect();
        names.retain(|name| name != Path::new(RESULT));
        names.extend([PathBuf::from(MARKER), PathBuf::from(RESULT)]);
        let placed = Exchange::new(&self.output, &self.partial, &self.earlier).run(&names);
        let result = placed.map_err(|(path, error)| match self.move_aside() {
            // The error states the name.
            Some(kept) => RecordsError::Aside { path, reason: error.to_string(), kept },
            None => cannot(&path, &error),
        });
        if result.is_ok() {
            self.made.clear(); // the directories are in use now
        }
        result
    }

    /// Moves everything to its place as [`Workplace::finish`] does. If there is an earlier result, it stays, and
    /// everything is moved to a free name beside it. Returns the directory of the files.
    pub(super) fn finish_beside(mut self, version: &str) -> Result<PathBuf, RecordsError> {
        if self.earlier.0.is_empty() {
            let directory = self.output.directory.clone();
            return self.finish(version).map(|()| directory);
        }
        self.mark(version)?;
        self.move_aside().ok_or_else(|| {
            cannot(
                &self.output.directory,
                &io::Error::other("no name of result-1 to result-999 is free"),
            )
        })
    }

    /// Writes the list of the files that have been written.
    fn mark(&self, version: &str) -> Result<Listed, RecordsError> {
        let list = self.list()?;
        let path = self.path(MARKER);
        fs::write(&path, list.to_text(version)).map_err(|error| cannot(&path, &error))?;
        Ok(list)
    }

    /// Lists the files that have been written.
    fn list(&self) -> Result<Listed, RecordsError> {
        let mut list = Listed::default();
        let mut directories = vec![PathBuf::new()];
        while let Some(directory) = directories.pop() {
            let whole = self.partial.join(&directory);
            for entry in fs::read_dir(&whole).map_err(|error| cannot(&whole, &error))? {
                let entry = entry.map_err(|error| cannot(&whole, &error))?;
                let (name, path) = (directory.join(entry.file_name()), entry.path());
                let kind = entry.file_type().map_err(|error| cannot(&path, &error))?;
                if kind.is_dir() {
                    directories.push(name);
                } else if kind.is_file() && name != Path::new(LOCK) {
                    let seen = Seen::of(&path).map_err(|error| cannot(&path, &error))?;
                    list.0.insert(name, seen);
                }
            }
        }
        Ok(list)
    }

    /// Moves the records to a free name.
    fn move_aside(&mut self) -> Option<PathBuf> {
        let names = (1..1_000).map(|number| self.output.directory.join(format!("result-{number}")));
        let mut free = names.filter(|name| fs::symlink_metadata(name).is_err());
        // A rename needs no space on the disk, and replaces nothing but an empty directory.
        let kept = free.find(|name| fs::rename(&self.partial, name).is_ok())?;
        let _ = fs::remove_file(kept.join(LOCK)); // if the file stays, it does no harm
        self.made.clear();
        Some(kept)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // If this fails, the next command that writes here removes the directory.
        let _ = fs::remove_dir_all(&self.partial);
        remove_empty(&self.made);
    }
}

/// Makes the hidden directory. If a process has left one, because it could not remove it at its
/// end, the directory is emptied and used. Returns the locked file.
fn take(output: &Output, partial: &Path) -> Result<File, RecordsError> {
    let failed = |error: io::Error| cannot(partial, &error);
    let lock = partial.join(LOCK);
    let is_new = match fs::create_dir(partial) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(failed(error)),
    };
    let busy = || RecordsError::Busy(output.directory.clone());
    let foreign = || RecordsError::Foreign(partial.to_owned());
    let is_empty = || {
        fs::symlink_metadata(partial).is_ok_and(|file| file.is_dir())
            && fs::read_dir(partial).is_ok_and(|mut entries| entries.next().is_none())
    };
    let file = if is_new || is_empty() {
        match File::create_new(&lock) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(busy()),
            made => made.map_err(failed)?,
        }
    } else {
        let is_lock = marker::is_inside(&output.directory, &Path::new(PARTIAL).join(LOCK))
            && fs::symlink_metadata(&lock).is_ok_and(|file| file.is_file());
        if !is_lock {
            return Err(foreign());
        }
        File::open(&lock).map_err(failed)?
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(busy()),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let inode = file.metadata().map_err(failed)?.ino();
    if !fs::symlink_metadata(&lock).is_ok_and(|now| now.ino() == inode) {
        return Err(busy()); // the process that held the lock has just removed it
    }
    for entry in fs::read_dir(partial).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(&path).map_err(failed)?;
        } else if path != lock {
            fs::remove_file(&path).map_err(failed)?;
        }
    }
    Ok(file)
}
