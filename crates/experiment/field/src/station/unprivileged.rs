//! The files of a helper without root. No lease records them, so each helper holds a lock on the directory of its own, and
//! the next helper of the same user removes those of one that was killed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;

use super::is_brought;

/// The file that names the directory of a program that was brought along.
const NOTE: &str = "brought";

/// What one helper has made. It stays until [`Files::remove`].
pub(super) struct Files {
    /// The directory of the run's files.
    pub(super) directory: PathBuf,
    socket: PathBuf,
    brought: Option<PathBuf>,
    /// Held while this process lives.
    _lives: Flock<File>,
}

impl Files {
    /// Makes the directory and listens at `socket`, after the files of killed helpers were removed.
    ///
    /// # Errors
    ///
    /// The kernel's error. Nothing of this helper is left then.
    pub(super) fn make(
        directory: PathBuf,
        socket: PathBuf,
        brought: Option<&Path>,
    ) -> io::Result<(Self, UnixListener)> {
        // One helper at a time makes or removes files: a directory without a lock is that of a dead one.
        let _alone = alone()?;
        clean(&parent(), brought)?;
        fs::create_dir(&directory)?;
        let make = || {
            let lives = locked(&directory, FlockArg::LockExclusiveNonblock)?;
            if let Some(brought) = brought {
                fs::write(directory.join(NOTE), brought.as_os_str().as_bytes())?;
            }
            let listener = UnixListener::bind(&socket)?;
            listener.set_nonblocking(true)?;
            Ok((lives, listener))
        };
        match make() {
            Ok((lives, listener)) => {
                let brought = brought.map(Path::to_owned);
                Ok((Self { directory, socket, brought, _lives: lives }, listener))
            }
            Err(error) => {
                remove(&directory, &socket, brought);
                Err(error)
            }
        }
    }

    /// Removes all of them, and the directory of the user's helpers with the last one.
    pub(super) fn remove(self) {
        let alone = alone();
        remove(&self.directory, &self.socket, self.brought.as_deref());
        drop(alone);
        leave();
    }
}

/// The directory of the sockets of this user's helpers, which is made.
pub(super) fn directory() -> io::Result<PathBuf> {
    let own = parent();
    wakeai_host::private_directory(&own, 0o700)?;
    Ok(own)
}

/// Removes the directory of the user's helpers, where nothing is in it any more.
pub(super) fn leave() {
    let _ = fs::remove_dir(parent());
}

fn parent() -> PathBuf {
    let temporary = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let temporary = temporary.filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir);
    let temporary = if temporary.is_dir() { temporary } else { PathBuf::from("/data/local/tmp") };
    temporary.join(format!("wakeai-field-{}", geteuid()))
}

/// Holds the lock of the directory of this user's helpers. Another helper that ends may remove that directory before the lock is
/// held, so it is made and looked at again.
fn alone() -> io::Result<Flock<File>> {
    use std::os::unix::fs::MetadataExt as _;
    loop {
        let parent = directory()?;
        let lock = locked(&parent, FlockArg::LockExclusive)?;
        let of = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
        match fs::metadata(&parent) {
            Ok(there) if of(&there) == of(&lock.metadata()?) => return Ok(lock),
            _ => {}
        }
    }
}

fn locked(directory: &Path, how: FlockArg) -> io::Result<Flock<File>> {
    let mut file = File::open(directory)?;
    loop {
        match Flock::lock(file, how) {
            Ok(lock) => return Ok(lock),
            Err((again, nix::errno::Errno::EINTR)) => file = again,
            Err((_, errno)) => return Err(errno.into()),
        }
    }
}

/// Removes the files of killed helpers in `parent`, and the programs that were brought along for them, except in `own`, from which
/// this process runs.
fn clean(parent: &Path, own: Option<&Path>) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let directory = entry?.path();
        if directory.extension() != Some(OsStr::new("run")) {
            continue;
        }
        let Ok(_dead) = locked(&directory, FlockArg::LockExclusiveNonblock) else { continue };
        let brought = fs::read(directory.join(NOTE)).ok();
        let brought = brought.map(|bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes)));
        let brought = brought.filter(|path| is_brought(path) && Some(path.as_path()) != own);
        remove(&directory, &directory.with_extension("sock"), brought.as_deref());
    }
    Ok(())
}

/// The directory goes last: while it is there, the next helper finds what else is left.
fn remove(directory: &Path, socket: &Path, brought: Option<&Path>) {
    let _ = fs::remove_file(socket);
    if let Some(brought) = brought {
        let _ = fs::remove_dir_all(brought);
    }
    let _ = fs::remove_dir_all(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_dead_helper_are_removed_and_those_of_a_living_one_stay() {
        let parent = tempfile::tempdir().unwrap();
        let brought = parent.path().join(format!("{}a1B2c3", super::super::BROUGHT));
        let other = parent.path().join("of-somebody-else");
        for directory in [&brought, &other] {
            fs::create_dir(directory).unwrap();
        }
        let helper = |name: &str, note: &Path| {
            let directory = parent.path().join(format!("field-1-{name}.run"));
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join(NOTE), note.as_os_str().as_bytes()).unwrap();
            fs::write(directory.with_extension("sock"), "").unwrap();
            directory
        };
        let dead = helper("00", &brought);
        let strange = helper("01", &other);
        let own = parent.path().join(format!("{}d4E5f6", super::super::BROUGHT));
        fs::create_dir(&own).unwrap();
        let before = helper("02", &own);
        let living = helper("03", &brought);
        let _lives = locked(&living, FlockArg::LockExclusiveNonblock).unwrap();
        clean(parent.path(), Some(&own)).unwrap();
        for gone in [&dead, &strange, &before, &dead.with_extension("sock"), &brought] {
            assert!(!gone.exists(), "{}", gone.display());
        }
        assert!(living.exists() && living.with_extension("sock").exists());
        assert!(own.exists(), "the program of the helper that cleans");
        assert!(other.exists(), "it is not the directory of a program that was brought along");
    }
}
