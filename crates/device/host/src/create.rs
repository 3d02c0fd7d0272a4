//! Creates sockets, directories and namespaces under a lease (the record of a process's changes on
//! the host). The lease records the path before the object is made, and the object's identity
//! afterwards.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

use crate::change::{Change, FileId};
use crate::lease::{Lease, LeaseError};
use crate::namespace::{Namespace, NamespaceError};
use crate::remove::{Kind, is_dead, kind, open_directory, remove, through};

/// A socket or a directory could not be made; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The path exists, and nothing in a lease allows its removal.
    #[error(
        "{} exists already: found {found}, expected nothing; name another path, or remove it \
         yourself", path.display()
    )]
    Occupied {
        /// The path.
        path: PathBuf,
        /// What was found there.
        found: &'static str,
    },
    /// Another process listens at the path.
    #[error("a process listens at {} already; end it, or name another path", .0.display())]
    Listened(PathBuf),
    /// The path could not be examined or created.
    #[error("cannot make {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The lease could not be written.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

impl MakeError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// Whether a privilege is missing.
    pub fn is_permission(&self) -> bool {
        match self {
            Self::Io { source, .. } | Self::Lease(LeaseError::Io(source)) => {
                source.kind() == io::ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }
}

/// Checks that a socket can be made at `path`, and changes nothing. The directory of the path has
/// to exist. At the path itself there may be nothing but a dead socket (one at which no process
/// listens) of the calling user.
///
/// # Errors
///
/// [`MakeError`], which says what was found at the path.
pub fn check_socket_path(path: &Path) -> Result<(), MakeError> {
    has_dead_socket(path, Kind::Socket)?;
    let parent = path.parent().unwrap_or(Path::new("/"));
    if fs::metadata(parent).map_err(MakeError::io(path))?.is_dir() {
        return Ok(());
    }
    Err(MakeError::io(path)(io::ErrorKind::NotADirectory.into()))
}

impl Lease {
    /// Listens at `path` with a socket that does not block, and gives it the permissions `mode`. A dead
    /// socket of the same user is replaced.
    ///
    /// # Errors
    ///
    /// [`MakeError`], where anything else is at the path, or where the socket or the lease cannot
    /// be written; then nothing was changed.
    pub fn bind_socket(&self, path: &Path, mode: u32) -> Result<UnixListener, MakeError> {
        let (listener, made) =
            self.make(path, Kind::Socket, |replaces| bind(path, mode, replaces))?;
        self.keep_spare(path, made)?;
        Ok(listener)
    }

    /// Gives the new socket at `path` its second name. Another file system, for example, allows none;
    /// then the socket has one name.
    fn keep_spare(&self, path: &Path, made: FileId) -> Result<(), LeaseError> {
        let with = |spare| Change::Socket { path: path.to_owned(), made: Some(made), spare };
        let spare = self.spare_path(self.changes().len());
        self.replace(&with(None), with(Some(spare.clone())))?;
        if let Err(error) = fs::hard_link(path, &spare) {
            tracing::debug!(path = %path.display(), %error, "the socket has no second name");
            self.replace(&with(Some(spare)), with(None))?;
        }
        Ok(())
    }

    /// Makes an empty directory that its owner alone may enter. Undoing removes it with its contents.
    ///
    /// # Errors
    ///
    /// [`MakeError`], where anything is at the path, or where the directory or the lease cannot be
    /// written; then nothing was changed.
    pub fn create_directory(&self, path: &Path) -> Result<(), MakeError> {
        self.make(path, Kind::Directory, |_| create_directory(path)).map(drop)
    }

    /// Takes over a directory that was made for this process, so that it is removed with its contents like one that the process has
    /// made itself.
    ///
    /// # Errors
    ///
    /// [`MakeError`], where there is no directory at the path, or the lease cannot be written.
    pub fn adopt_directory(&self, path: &Path) -> Result<(), MakeError> {
        let metadata = fs::symlink_metadata(path).map_err(MakeError::io(path))?;
        if !metadata.is_dir() {
            return Err(MakeError::io(path)(io::ErrorKind::NotADirectory.into()));
        }
        self.record(Kind::Directory.change(path, Some(FileId::of(&metadata))))?;
        Ok(())
    }

    /// Makes a network namespace, see [`Namespace::create`].
    ///
    /// # Errors
    ///
    /// Where the name is taken, the lease cannot be written or `CAP_SYS_ADMIN` is missing.
    pub fn create_namespace(&self, name: &str) -> Result<Namespace, NamespaceError> {
        let unrecorded = |error: LeaseError| NamespaceError::unrecorded(name, error);
        let change = |made| Change::Namespace { name: name.to_owned(), made };
        Namespace::check_free(name)?;
        self.record(change(None)).map_err(unrecorded)?;
        let made = match Namespace::create(name) {
            Ok(made) => made,
            Err(error) => {
                // After an error `create` has removed the name again.
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

    /// If the path is free, records it, makes the file, and records its identity. `make` is told whether
    /// the new socket replaces a dead one.
    ///
    /// The lock on the leases is held meanwhile. Otherwise a sweep (which undoes the changes of
    /// dead processes) could take the new socket for a dead one between bind(2) and listen(2).
    fn make<T>(
        &self,
        path: &Path,
        kind: Kind,
        make: impl FnOnce(bool) -> io::Result<(T, FileId)>,
    ) -> Result<(T, FileId), MakeError> {
        let change = |made| kind.change(path, made);
        let mut editing = self.editing()?;
        let replaces = has_dead_socket(path, kind)?;
        editing.write(|changes| changes.push(change(None)))?;
        let drop_record = |changes: &mut Vec<Change>| drop(changes.pop());
        let (made, id) = match make(replaces) {
            Ok(made) => made,
            Err(source) => {
                // If this fails, the record stays. It has no identity, so it removes no file of the user.
                let _ = editing.write(drop_record);
                return Err(MakeError::Io { path: path.to_owned(), source });
            }
        };
        let written = editing.write(|changes| {
            changes.pop();
            changes.push(change(Some(id)));
        });
        if let Err(error) = written {
            if let Err(error) = remove(path, kind, Some(&id)) {
                tracing::warn!(path = %path.display(), %error, "the file could neither be recorded nor removed");
            }
            let _ = editing.write(drop_record); // as above, a record that stays removes no file
            return Err(error.into());
        }
        Ok((made, id))
    }
}

/// Whether a dead socket is at the path of a new file, which may replace it where it is a socket itself.
/// Anything else there is an error.
fn has_dead_socket(path: &Path, wanted: Kind) -> Result<bool, MakeError> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other.map_err(MakeError::io(path))?,
    };
    let occupied = |found| Err(MakeError::Occupied { path: path.to_owned(), found });
    if wanted != Kind::Socket || !metadata.file_type().is_socket() {
        return occupied(kind(&metadata));
    }
    match is_dead(path) {
        Ok(true) if metadata.uid() == geteuid().as_raw() => Ok(true),
        Ok(true) => occupied("a socket of another user"),
        Ok(false) => Err(MakeError::Listened(path.to_owned())),
        Err(error) => Err(MakeError::io(path)(error)),
    }
}

/// Listens at `path` with these permissions, instead of the dead socket there if it `replaces` one.
fn bind(path: &Path, mode: u32, replaces: bool) -> io::Result<(UnixListener, FileId)> {
    if replaces {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    match listener.set_nonblocking(true).and_then(|()| set_mode(path, mode)) {
        Ok(made) => Ok((listener, made)),
        Err(error) => {
            drop(listener);
            let _ = fs::remove_file(path); // the first error is returned
            Err(error)
        }
    }
}

/// Sets the permissions of the socket and returns its identity. Both go through one handle, so they
/// belong to the same file.
fn set_mode(path: &Path, mode: u32) -> io::Result<FileId> {
    let handle = fs::OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_PATH | OFlag::O_NOFOLLOW).bits())
        .open(path)?;
    let metadata = handle.metadata()?;
    if !metadata.file_type().is_socket() {
        return Err(io::Error::other(format!("{} has taken its place", kind(&metadata))));
    }
    fs::set_permissions(through(&handle), fs::Permissions::from_mode(mode))?;
    Ok(FileId::of(&metadata))
}

/// Makes an empty directory at `path`, for its owner alone.
fn create_directory(path: &Path) -> io::Result<((), FileId)> {
    fs::DirBuilder::new().mode(0o700).create(path)?;
    match open_directory(path).and_then(|directory| directory.metadata()) {
        Ok(metadata) => Ok(((), FileId::of(&metadata))),
        Err(error) => {
            let _ = fs::remove_dir(path); // the first error is returned
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
