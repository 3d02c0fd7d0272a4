//! The directory and the locks of Wakeai, below `/run/wakeai`. They belong to the calling user
//! alone. So no other user can hold a lock, or write a lease: a list of changes that root would
//! undo.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::sys::stat::{major, minor};
use nix::unistd::geteuid;
use wakeai_units::text::visible;

use crate::remove::{kind, open_directory};

/// The environment variable that names another directory than `/run/wakeai`, for systems without
/// `/run`, such as Android. All commands of a machine have to use the same one.
pub const STATE_VARIABLE: &str = "WAKEAI_RUN";

/// The directory of Wakeai's state while the machine runs. Every user may enter it, because the
/// agents' sockets are there, and the configuration's `api.group` names the users who may connect
/// to them. It has to be empty after the machine's start, as a directory of a tmpfs is.
pub fn state() -> &'static Path {
    static STATE: OnceLock<PathBuf> = OnceLock::new();
    STATE.get_or_init(|| state_from(std::env::var_os(STATE_VARIABLE)))
}

/// A relative path would be another directory for each command, so it does not count.
fn state_from(named: Option<OsString>) -> PathBuf {
    let named = named.map(PathBuf::from).filter(|path| path.is_absolute());
    named.unwrap_or_else(|| PathBuf::from("/run/wakeai"))
}

/// The longest wait for a lock. The process that holds it may be undoing the changes of a large
/// lab, which takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time between two attempts to lock.
const AGAIN: Duration = Duration::from_millis(10);

/// The directory or a lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// The file belongs to another user, other users may write it, or it is not of the expected
    /// kind.
    #[error(
        "{}: found {found}, expected {expected}; find out who made it, remove it, and repeat the command",
        path.display()
    )]
    Strange {
        /// The path.
        path: PathBuf,
        /// What was found there.
        found: String,
        /// What is expected there.
        expected: String,
    },
    /// Another process holds the lock.
    #[error(
        "{} has been locked by {holder} for at least {} s; wait until that has ended, or end it, and repeat the \
         command", path.display(), patience.as_secs()
    )]
    Locked {
        /// The lock.
        path: PathBuf,
        /// The process, or `a process that is not seen here`.
        holder: String,
        /// The time that was waited.
        patience: Duration,
    },
    /// The kernel refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

impl From<PrivateError> for io::Error {
    fn from(error: PrivateError) -> Self {
        let kind = match &error {
            PrivateError::Strange { .. } => io::ErrorKind::Other,
            PrivateError::Locked { .. } => io::ErrorKind::TimedOut,
            PrivateError::Io { source, .. } => source.kind(),
        };
        Self::new(kind, error)
    }
}

/// Takes the lock at `path`, and makes the lock's file where there is none. Dropping the returned
/// value releases the lock. The directory must exist.
///
/// # Errors
///
/// [`PrivateError`], also where another process holds the lock for 30 s.
pub fn lock(path: &Path) -> Result<Flock<File>, PrivateError> {
    lock_within(path, PATIENCE)
}

pub(crate) fn lock_within(path: &Path, patience: Duration) -> Result<Flock<File>, PrivateError> {
    let mut file = open_lock(path)?;
    let give_up = Instant::now() + patience;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(locked) => return Ok(locked),
            Err((unlocked, Errno::EWOULDBLOCK)) if Instant::now() < give_up => {
                file = unlocked;
                sleep(AGAIN);
            }
            Err((unlocked, Errno::EWOULDBLOCK)) => {
                let holder = unlocked.metadata().ok().and_then(|metadata| holder(&metadata));
                let holder = holder.unwrap_or_else(|| "a process that is not seen here".to_owned());
                return Err(PrivateError::Locked { path: path.to_owned(), holder, patience });
            }
            Err((_, Errno::EINTR)) => file = open_lock(path)?,
            Err((_, errno)) => return Err(failed(path)(errno.into())),
        }
    }
}

/// Opens a lock and takes other users' permissions on it away.
fn open_lock(path: &Path) -> Result<File, PrivateError> {
    let open = |create: bool| {
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).bits();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags).mode(0o600);
        if create {
            options.write(true).create(true);
        }
        options.open(path)
    };
    // Reading is enough for a lock, and is possible where /run is mounted read-only.
    let file = match open(false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => open(true),
        other => other,
    };
    let file = file.map_err(failed(path))?;
    let metadata = file.metadata().map_err(failed(path))?;
    let expected = format!("a regular file of user {}", geteuid());
    if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
        return Err(strange(path, &metadata, expected));
    }
    if metadata.mode() & 0o777 != 0o600 {
        file.set_permissions(Permissions::from_mode(0o600)).map_err(failed(path))?;
    }
    Ok(file)
}

/// Makes the directory where there is none. An existing directory that other users may read but not
/// write gets `mode`, which is 0700 or 0755. A directory that other users may write is an error,
/// because they may have made its contents.
///
/// # Errors
///
/// [`PrivateError`].
pub fn private_directory(path: &Path, mode: u32) -> Result<(), PrivateError> {
    match DirBuilder::new().mode(mode).create(path) {
        Ok(()) => {}
        Err(_) if path.is_dir() => {} // also where /run is mounted read-only
        Err(error) => return Err(failed(path)(error)),
    }
    let directory = open_directory(path).map_err(failed(path))?;
    let metadata = directory.metadata().map_err(failed(path))?;
    if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        let expected = format!(
            "a directory of user {} that nobody else may write (mode {mode:03o})",
            geteuid()
        );
        return Err(strange(path, &metadata, expected));
    }
    if metadata.mode() & 0o777 != mode {
        directory.set_permissions(Permissions::from_mode(mode)).map_err(failed(path))?;
    }
    Ok(())
}

/// Makes the directory of the state, where it does not exist.
///
/// # Errors
///
/// [`PrivateError`], where the directory belongs to another user, or other users may write it.
pub fn state_directory() -> Result<(), PrivateError> {
    private_directory(state(), 0o755)
}

/// Reads a file that is this user's, and that nobody else may write.
///
/// # Errors
///
/// [`PrivateError`].
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, PrivateError> {
    use std::io::Read as _;
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let mut file = file.map_err(failed(path))?;
    let metadata = file.metadata().map_err(failed(path))?;
    let mine = metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o022 == 0;
    if !metadata.is_file() || !mine {
        let expected = format!("a regular file of user {} that nobody else may write", geteuid());
        return Err(strange(path, &metadata, expected));
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(failed(path))?;
    Ok(content)
}

/// Writes a new file, which only this user may read.
pub(crate) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {} // left by a process that died while it wrote
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(content)
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> PrivateError {
    let path = path.to_owned();
    move |source| PrivateError::Io { path, source }
}

fn strange(path: &Path, metadata: &Metadata, expected: String) -> PrivateError {
    if metadata.uid() == 0 && !geteuid().is_root() {
        return failed(path)(Errno::EACCES.into()); // the file is in order, but only root may use it
    }
    let found = format!(
        "{} of user {}, mode {:03o}",
        kind(metadata),
        metadata.uid(),
        metadata.mode() & 0o777
    );
    PrivateError::Strange { path: path.to_owned(), found, expected }
}

/// The process that holds a lock on this file, by `proc_locks(5)`.
fn holder(locked: &Metadata) -> Option<String> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = holder_pid(&locks, locked.dev(), locked.ino())?;
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    let name = visible(&String::from_utf8_lossy(&name)); // a process chooses its name itself
    let user = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    Some(format!("process {pid} ({name}) of user {user}"))
}

/// The pid in `/proc/locks` of the process that holds the lock. A line of that file is `1: FLOCK
/// ADVISORY  WRITE 708 00:1a:4242 0 EOF`, with the pid as its fifth word. The line of a process
/// that waits for a lock has `->` after the number.
fn holder_pid(locks: &str, device: u64, inode: u64) -> Option<i32> {
    let file = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, pid, found, ..] if found == file => pid.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_the_state_is_an_absolute_path_or_the_usual_one() {
        let state = |named: Option<&str>| state_from(named.map(OsString::from));
        assert_eq!(state(None), Path::new("/run/wakeai"));
        assert_eq!(state(Some("/dev/wakeai")), Path::new("/dev/wakeai"));
        assert_eq!(state(Some("wakeai")), Path::new("/run/wakeai"));
    }

    #[test]
    fn a_held_lock_is_waited_for_and_its_holder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = lock_within(&path, Duration::ZERO).unwrap();
        let refused = lock_within(&path, Duration::from_millis(50)).unwrap_err();
        let said = refused.to_string();
        assert!(matches!(refused, PrivateError::Locked { .. }), "{said}");
        assert!(said.contains(&format!("process {} (", std::process::id())), "{said}");
        assert_eq!(io::Error::from(refused).kind(), io::ErrorKind::TimedOut);
        drop(held);
        lock_within(&path, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_lock_that_every_user_could_open_is_made_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        lock_within(&path, Duration::ZERO).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("leases");
        private_directory(&path, 0o700).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        private_directory(&path, 0o700).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        let said = private_directory(&path, 0o700).unwrap_err().to_string();
        assert!(said.contains("mode 777") && said.contains("remove it"), "{said}");
    }

    #[test]
    fn neither_a_link_nor_a_pipe_is_taken_for_a_lock_or_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let (link, pipe) = (dir.path().join("link"), dir.path().join("pipe"));
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        assert!(lock_within(&link, Duration::ZERO).is_err());
        assert!(read(&link).is_err());
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(matches!(read(&pipe), Err(PrivateError::Strange { .. })));
    }

    #[test]
    fn a_process_that_waits_for_a_lock_does_not_hold_it() {
        let locks = "1: POSIX  ADVISORY  WRITE 5 00:1a:42 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 7 00:1a:42 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 8 00:1a:42 0 EOF\n";
        let device = nix::sys::stat::makedev(0, 0x1a);
        assert_eq!(holder_pid(locks, device, 42), Some(7));
        assert_eq!(holder_pid(locks, device, 43), None);
    }
}
