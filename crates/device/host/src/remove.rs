//! Removal of the files that a process made.
//!
//! A path does not identify a file, because another file may take its place. So the lease (the
//! record of the process's changes) has the path before the file is made, and the file's identity
//! ([`FileId`]) afterwards. Only the file with that identity is removed; a directory is removed
//! with its contents. A process may have died before it could record the identity. Then only a dead
//! socket (one at which no process listens) or an empty directory is removed. Everything else
//! stays, and a message names it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::unistd::geteuid;

use crate::change::{Change, FileId};

/// The result of undoing a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// The change is undone.
    Done,
    /// There was nothing to undo.
    Nothing,
    /// What was found may be somebody else's, and stays. The text is the reason.
    Kept(String),
}

/// The kind of file that a lease records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Socket,
    Directory,
}

impl Kind {
    pub(crate) fn change(self, path: &Path, made: Option<FileId>) -> Change {
        let path = path.to_owned();
        match self {
            Self::Socket => Change::Socket { path, made, spare: None },
            Self::Directory => Change::Directory { path, made },
        }
    }
}

/// Removes the file at `path` if its identity is `made`. Where no identity was recorded (`None`),
/// it removes only what cannot be the user's.
pub(crate) fn remove(path: &Path, what: Kind, made: Option<&FileId>) -> io::Result<Undone> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Undone::Nothing),
        other => other?,
    };
    let Some(made) = made else { return remove_intended(path, what, &metadata) };
    let file_type = metadata.file_type();
    let is_kind = match what {
        Kind::Socket => file_type.is_socket(),
        Kind::Directory => file_type.is_dir(),
    };
    if !is_kind || FileId::of(&metadata) != *made {
        return Ok(Undone::Kept(format!("{} has taken its place since", kind(&metadata))));
    }
    match what {
        Kind::Directory => remove_directory(path, made),
        Kind::Socket => fs::remove_file(path).map(|()| Undone::Done),
    }
}

/// Removes what the process may have made, although the record has no identity: a dead socket if the record is that of
/// a socket, or an empty directory if it is that of a directory.
fn remove_intended(path: &Path, what: Kind, found: &Metadata) -> io::Result<Undone> {
    let kept = |why: &str| Ok(Undone::Kept(format!("found {}{why}", kind(found))));
    if what == Kind::Socket && found.file_type().is_socket() {
        return match is_dead(path)? {
            true if found.uid() == geteuid().as_raw() => {
                fs::remove_file(path).map(|()| Undone::Done)
            }
            true => kept(" of another user"),
            false => kept(" at which a process listens"),
        };
    }
    if what == Kind::Directory && found.is_dir() {
        return match fs::remove_dir(path) {
            Ok(()) => Ok(Undone::Done),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                kept(" that is not empty, and no record identifies it")
            }
            Err(error) => Err(error),
        };
    }
    kept(", which no record identifies")
}

/// Removes a directory with its contents. It does so through a handle, so that another directory
/// which takes its place meanwhile keeps its contents.
fn remove_directory(path: &Path, made: &FileId) -> io::Result<Undone> {
    let directory = open_directory(path)?;
    if FileId::of(&directory.metadata()?) != *made {
        return Ok(Undone::Kept("another directory has taken its place since".to_owned()));
    }
    for entry in fs::read_dir(through(&directory))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(path).map(|()| Undone::Done)
}

pub(crate) fn kind(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_file() => "a regular file",
        () if kind.is_socket() => "a socket",
        () if kind.is_fifo() => "a named pipe",
        () => "a device",
    }
}

/// Whether no process listens at this socket.
pub(crate) fn is_dead(path: &Path) -> io::Result<bool> {
    // The socket does not block, because a listener may be too busy to accept.
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let client = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    match connect(client.as_raw_fd(), &UnixAddr::new(path)?) {
        Err(Errno::ECONNREFUSED) => Ok(true),
        Err(errno @ (Errno::EACCES | Errno::EPERM)) => Err(errno.into()),
        _ => Ok(false),
    }
}

pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    fs::OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)
}

pub(crate) fn through(handle: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd()))
}
