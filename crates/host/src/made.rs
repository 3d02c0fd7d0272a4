//! What a process makes in the file system, and what may be removed of it.
//!
//! A path says where something is, not whose it is. So the lease first names the path that is about
//! to be used, and once the thing is made, the thing itself: [`FileId`]. Only that very one is
//! removed with whatever is in it. Where a process died before it could say what it made, at most a
//! dead socket or an empty directory goes. Everything else stays, and the user is told.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use crate::change::Undone;
use crate::lease::LeaseError;

/// What a file is known by, whatever its path: another file at the same path has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    device: u64,
    inode: u64,
    /// Nanoseconds since 1970, where the file system knows: inodes are used again.
    born_ns: Option<u64>,
}

impl FileId {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let born = metadata.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let born_ns = born.and_then(|age| u64::try_from(age.as_nanos()).ok());
        Self { device: metadata.dev(), inode: metadata.ino(), born_ns }
    }
}

/// Something could not be made in the file system; then nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// Something is there, which is not ours to remove.
    #[error(
        "{} exists already: found {found}, expected nothing; name another path, or remove it \
         yourself", path.display()
    )]
    Occupied {
        /// Where.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// Another process has its socket there.
    #[error("a process listens at {} already; end it, or name another path", path.display())]
    Listened {
        /// Where.
        path: PathBuf,
    },
    /// It could not be looked at or made.
    #[error("cannot make {}: {source}", path.display())]
    Io {
        /// What was to be made.
        path: PathBuf,
        /// What the kernel said.
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

/// Whether a socket can be made at `path`: nothing is there, or a dead socket of the calling user,
/// and its directory exists. Changes nothing.
///
/// # Errors
///
/// [`MakeError`], which says what is there.
pub fn check_socket_path(path: &Path) -> Result<(), MakeError> {
    vacancy(path)?;
    let parent = path.parent().unwrap_or(Path::new("/"));
    if fs::metadata(parent).map_err(MakeError::io(path))?.is_dir() {
        return Ok(());
    }
    Err(MakeError::io(path)(io::ErrorKind::NotADirectory.into()))
}

/// What may be where a socket is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vacancy {
    Nothing,
    DeadSocket,
}

pub(crate) fn vacancy(path: &Path) -> Result<Vacancy, MakeError> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vacancy::Nothing),
        other => other.map_err(MakeError::io(path))?,
    };
    if !metadata.file_type().is_socket() {
        return Err(MakeError::Occupied { path: path.to_owned(), found: kind(&metadata) });
    }
    match is_dead(path) {
        Ok(true) if metadata.uid() == geteuid().as_raw() => Ok(Vacancy::DeadSocket),
        Ok(true) => {
            let found = "a socket of another user";
            Err(MakeError::Occupied { path: path.to_owned(), found })
        }
        Ok(false) => Err(MakeError::Listened { path: path.to_owned() }),
        Err(error) => Err(MakeError::io(path)(error)),
    }
}

fn kind(metadata: &Metadata) -> &'static str {
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

/// Whether nobody listens at this socket.
fn is_dead(path: &Path) -> io::Result<bool> {
    // Not blocking: a listener may be too busy to accept.
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let client = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    match connect(client.as_raw_fd(), &UnixAddr::new(path)?) {
        Err(Errno::ECONNREFUSED) => Ok(true),
        Err(errno @ (Errno::EACCES | Errno::EPERM)) => Err(errno.into()),
        _ => Ok(false),
    }
}

/// Listens at `path`, where `found` is, with these permissions.
pub(crate) fn bind(path: &Path, mode: u32, found: Vacancy) -> io::Result<(UnixListener, FileId)> {
    if found == Vacancy::DeadSocket {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    match set_mode(path, mode) {
        Ok(made) => Ok((listener, made)),
        Err(error) => {
            drop(listener);
            let _ = fs::remove_file(path); // the error is told
            Err(error)
        }
    }
}

/// Through a handle: what is given permissions is what is written down.
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
pub(crate) fn create_directory(path: &Path) -> io::Result<((), FileId)> {
    fs::DirBuilder::new().mode(0o700).create(path)?;
    match open_directory(path).and_then(|directory| directory.metadata()) {
        Ok(metadata) => Ok(((), FileId::of(&metadata))),
        Err(error) => {
            let _ = fs::remove_dir(path); // the error is told
            Err(error)
        }
    }
}

fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    fs::OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)
}

fn through(handle: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd()))
}

/// What a change says that it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Socket,
    Directory,
    File,
}

/// Removes what is at `path`, where it is what was `made`, or where an intent alone is known
/// (`None`) and it can be nothing of the user's.
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
        Kind::File => file_type.is_file(),
    };
    if !is_kind || FileId::of(&metadata) != *made {
        return Ok(Undone::Kept(format!("{} has taken its place since", kind(&metadata))));
    }
    match what {
        Kind::Directory => remove_directory(path, made),
        Kind::Socket | Kind::File => fs::remove_file(path).map(|()| Undone::Done),
    }
}

/// At most a dead socket, or an empty directory where a directory was meant.
fn remove_intended(path: &Path, what: Kind, found: &Metadata) -> io::Result<Undone> {
    let kept = |why: &str| Ok(Undone::Kept(format!("found {}{why}", kind(found))));
    if what != Kind::Directory && found.file_type().is_socket() {
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
                kept(" that is not empty, and nothing says who made it")
            }
            Err(error) => Err(error),
        };
    }
    kept(", and nothing says who made it")
}

/// With all that is in it. By a handle, so that a directory which takes its place meanwhile keeps
/// what it has.
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
