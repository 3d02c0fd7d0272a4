//! Makes and removes network namespaces, and lets single threads enter them.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use serde::{Deserialize, Serialize};

/// The directory of the names that `ip netns` lists (ip-netns(8)).
const NETNS_DIR: &str = "/run/netns";

/// The inode of a network namespace, as `/proc/PID/ns/net` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NetnsId(pub u64);

impl NetnsId {
    /// The namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// Where `/proc` is not mounted.
    pub fn current() -> io::Result<Self> {
        Ok(Self(fs::metadata("/proc/thread-self/ns/net")?.ino()))
    }

    /// An open handle on this namespace, found by its name or through any process in it; `None`
    /// where the namespace does not exist any more.
    pub fn open(self) -> Option<Namespace> {
        Namespace::all().into_iter().find(|namespace| namespace.id == self)
    }
}

/// A namespace could not be made, entered or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the network namespace {name}: {source}")]
pub struct NamespaceError {
    action: &'static str,
    name: String,
    source: io::Error,
}

impl NamespaceError {
    /// Whether a privilege is missing (`CAP_SYS_ADMIN`).
    pub fn is_permission(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }

    /// The lease could not be written.
    pub(crate) fn unrecorded(name: &str, error: impl std::fmt::Display) -> Self {
        Self::when("write down", name)(io::Error::other(error.to_string()))
    }

    /// Makes the error of the operation `action` on the namespace from the kernel's error.
    fn when(action: &'static str, name: &str) -> impl Fn(io::Error) -> Self {
        move |source| Self { action, name: name.to_owned(), source }
    }
}

/// An open network namespace.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    id: NetnsId,
    file: File,
}

impl Namespace {
    /// Makes a namespace that `ip netns` lists under `name`. Its loopback interface is still down.
    /// [`crate::Lease::create_namespace`] also records the namespace in a lease, so that it is
    /// removed in the end.
    ///
    /// # Errors
    ///
    /// Where the name is taken or `CAP_SYS_ADMIN` is missing.
    pub fn create(name: &str) -> Result<Self, NamespaceError> {
        let failed = NamespaceError::when("create", name);
        fs::create_dir_all(NETNS_DIR).map_err(&failed)?;
        share_names().map_err(|errno| failed(errno.into()))?;
        let path = path_of(name);
        File::create_new(&path).map_err(&failed)?;
        // This needs a thread of its own, because unshare(2) moves the calling thread permanently.
        let made = std::thread::scope(|scope| {
            let mounted = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET)?;
                let own = Path::new("/proc/thread-self/ns/net");
                mount(Some(own), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            });
            mounted.join().expect("the thread only makes two system calls")
        });
        if let Err(errno) = made {
            let _ = fs::remove_file(&path); // nothing is mounted on it
            return Err(failed(errno.into()));
        }
        Self::open(name)
    }

    /// Returns an error where the name is taken.
    pub(crate) fn check_free(name: &str) -> Result<(), NamespaceError> {
        match fs::symlink_metadata(path_of(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            found => {
                let source = found.err().unwrap_or(io::ErrorKind::AlreadyExists.into());
                Err(NamespaceError::when("create", name)(source))
            }
        }
    }

    /// The namespace that `ip netns` lists under `name`.
    ///
    /// # Errors
    ///
    /// Where there is no such namespace.
    pub fn open(name: &str) -> Result<Self, NamespaceError> {
        Self::at(name, &path_of(name)).map_err(NamespaceError::when("open", name))
    }

    /// Every namespace on the machine that has a name or a process, each once.
    pub fn all() -> Vec<Self> {
        let named = entries(NETNS_DIR).into_iter().map(|path| (path.clone(), path));
        let processes = entries("/proc").into_iter().filter(|path| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit())
        });
        let through = processes.map(|process| (process.join("ns/net"), process));
        let mut seen = Vec::new();
        let mut found = Vec::new();
        for (path, named_after) in named.chain(through) {
            let name = named_after.file_name().unwrap_or_default().to_string_lossy();
            // The process may have ended, or no namespace may be mounted at the name.
            let Ok(namespace) = Self::at(&name, &path) else { continue };
            if !seen.contains(&namespace.id) {
                seen.push(namespace.id);
                found.push(namespace);
            }
        }
        found
    }

    /// The namespace of an open file, named after its inode.
    ///
    /// # Errors
    ///
    /// Where the file does not stand for a namespace.
    pub fn from_file(file: File) -> io::Result<Self> {
        let inode = file.metadata()?.ino();
        if !is_nsfs(&file) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not the file of a namespace",
            ));
        }
        Ok(Self { name: inode.to_string(), id: NetnsId(inode), file })
    }

    fn at(name: &str, path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.len() == 0 && metadata.is_file() && !is_nsfs(&file) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no namespace is mounted there"));
        }
        Ok(Self { name: name.to_owned(), id: NetnsId(metadata.ino()), file })
    }

    /// The name that `ip netns` lists, the pid of a process in the namespace, or the inode
    /// ([`Self::from_file`]).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The identity of the namespace.
    pub fn id(&self) -> NetnsId {
        self.id
    }

    /// Moves the calling thread, and no other thread, into the namespace.
    ///
    /// # Errors
    ///
    /// Where `CAP_SYS_ADMIN` is missing.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(|errno| NamespaceError::when("enter", &self.name)(errno.into()))
    }

    /// Runs `work` on a thread of its own inside the namespace and returns its result.
    ///
    /// # Errors
    ///
    /// Where the namespace cannot be entered. A panic of `work` is passed on.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| self.enter().map(|()| work()));
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Removes the name; the kernel frees the namespace when its last process has ended and its
    /// last socket is closed. Returns `false` where there was no such name.
    ///
    /// # Errors
    ///
    /// Where `CAP_SYS_ADMIN` is missing.
    pub fn remove(name: &str) -> Result<bool, NamespaceError> {
        let path = path_of(name);
        let failed = NamespaceError::when("remove", name);
        if !path.exists() {
            return Ok(false);
        }
        match umount2(&path, MntFlags::MNT_DETACH) {
            // EINVAL: nothing is mounted at the name, because the process that made it died before
            // that.
            Ok(()) | Err(nix::errno::Errno::EINVAL) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
        fs::remove_file(&path).map(|()| true).map_err(failed)
    }
}

/// Makes the directory of names a mount that is shared with all mount namespaces that were copied from this one, as the first
/// `ip netns add` after boot does. Otherwise services with mounts of their own, and `ip netns` once it does so itself, would see
/// files without namespaces, and a name that was removed here would hold its namespace there. The mount stays, as that
/// of `ip netns` does.
fn share_names() -> nix::Result<()> {
    let none = None::<&str>;
    let share = || mount(none, NETNS_DIR, none, MsFlags::MS_SHARED | MsFlags::MS_REC, none);
    match share() {
        // It is a directory of another mount still. A recursive bind mount keeps the names that there are.
        Err(nix::errno::Errno::EINVAL) => {
            let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
            mount(Some(NETNS_DIR), NETNS_DIR, none, bind, none)?;
            share()
        }
        other => other,
    }
}

fn path_of(name: &str) -> PathBuf {
    Path::new(NETNS_DIR).join(name)
}

fn entries(dir: &str) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn is_nsfs(file: &File) -> bool {
    // NSFS_MAGIC of <linux/magic.h>
    nix::sys::statfs::fstatfs(file).is_ok_and(|stat| stat.filesystem_type().0 == 0x6e73_6673)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_of_this_thread_is_found_among_all() {
        let here = NetnsId::current().unwrap();
        assert_eq!(here.open().expect("this process is in it").id(), here);
        assert!(NetnsId(1).open().is_none());
    }
}
