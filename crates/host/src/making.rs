//! Making things in the file system: their path is written down first, and they themselves after.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::change::Change;
use crate::lease::{Lease, LeaseError};
use crate::made::{self, FileId, MakeError, Vacancy};
use crate::namespace::{Namespace, NamespaceError};

impl Lease {
    /// Listens at `path`, which has these permissions then. A dead socket of the same user that is
    /// there is replaced.
    ///
    /// # Errors
    ///
    /// [`MakeError`], where anything else is there, or where the socket or the lease cannot be
    /// written; then nothing was changed.
    pub fn bind_socket(&self, path: &Path, mode: u32) -> Result<UnixListener, MakeError> {
        let change = |made| Change::Socket { path: path.to_owned(), made };
        let vacant = || made::vacancy(path);
        self.make(path, change, vacant, |found| made::bind(path, mode, found))
    }

    /// Makes an empty directory for its owner alone, which is removed with all that is in it.
    ///
    /// # Errors
    ///
    /// [`MakeError`], where anything is there, or where the directory or the lease cannot be written;
    /// then nothing was changed.
    pub fn create_directory(&self, path: &Path) -> Result<(), MakeError> {
        let change = |made| Change::Directory { path: path.to_owned(), made };
        let vacant = || match made::vacancy(path)? {
            Vacancy::Nothing => Ok(Vacancy::Nothing),
            Vacancy::DeadSocket => {
                Err(MakeError::Occupied { path: path.to_owned(), found: "a socket" })
            }
        };
        self.make(path, change, vacant, |_| made::create_directory(path))
    }

    /// Makes a network namespace, see [`Namespace::create`].
    ///
    /// # Errors
    ///
    /// Where the name is taken, the lease cannot be written or `CAP_SYS_ADMIN` is missing.
    pub fn create_namespace(&self, name: &str) -> Result<Namespace, NamespaceError> {
        let unrecorded = |error: LeaseError| NamespaceError::unrecorded(name, &error);
        let change = |made| Change::Namespace { name: name.to_owned(), made };
        Namespace::check_free(name)?;
        self.record(change(None)).map_err(unrecorded)?;
        let made = match Namespace::create(name) {
            Ok(made) => made,
            Err(error) => {
                // It has removed what it had made.
                self.forget(&change(None)).map_err(unrecorded)?;
                return Err(error);
            }
        };
        let written = self.replace(&change(None), change(Some(made.id())));
        if let Err(error) = written {
            Namespace::remove(name)?;
            return Err(unrecorded(error));
        }
        Ok(made)
    }

    /// Where `vacant` finds nothing against it: writes down the path, makes the thing and writes
    /// down which one it is.
    ///
    /// The leases' lock is held all the while: nobody takes a socket for dead before it is listened
    /// at.
    fn make<T>(
        &self,
        path: &Path,
        change: impl Fn(Option<FileId>) -> Change,
        vacant: impl FnOnce() -> Result<Vacancy, MakeError>,
        make: impl FnOnce(Vacancy) -> io::Result<(T, FileId)>,
    ) -> Result<T, MakeError> {
        let mut editing = self.editing()?;
        let found = vacant()?;
        editing.write(|changes| changes.push(change(None)))?;
        let strike = |changes: &mut Vec<Change>| {
            changes.pop();
        };
        let (made, id) = match make(found) {
            Ok(made) => made,
            Err(source) => {
                let _ = editing.write(strike); // the intent alone removes nothing of the user's
                return Err(MakeError::Io { path: path.to_owned(), source });
            }
        };
        let written = editing.write(|changes| {
            changes.pop();
            changes.push(change(Some(id)));
        });
        if let Err(error) = written {
            if let Err(error) = change(Some(id)).undo() {
                tracing::warn!(path = %path.display(), %error, "made, and not removed");
            }
            let _ = editing.write(strike); // as above
            return Err(error.into());
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests;
