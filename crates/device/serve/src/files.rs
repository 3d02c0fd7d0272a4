//! The files of uploads. Every path is relative to an open directory, and no symbolic link is followed.
//!
//! While an upload is incomplete, its bytes are in the file `ID` in `.wakeai-uploads`. The [journal](super::journal) beside
//! it has the state of all uploads. A file moves into the directory above when it is complete.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, RenameFlags, open, openat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{UnlinkatFlags, fsync, linkat, unlinkat};
use wakeai_tus::{Algorithm, Hasher};

use super::group::CommitGroup;
use super::journal::{Info, Journal, UploadProgress};
use super::name::{alternatives, numbered};
use super::request::Id;

const UPLOADS: &str = ".wakeai-uploads";
/// The number of names that are tried before an upload fails.
const MOST_NAMES: u32 = 10_000;

/// What tells one content of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    inode: u64,
    bytes: u64,
    /// The time of the last change, of which the kernel keeps account: no program can set it.
    changed: (i64, i64),
}

impl Version {
    pub(crate) fn new(file: &Metadata) -> Self {
        Self { inode: file.ino(), bytes: file.len(), changed: (file.ctime(), file.ctime_nsec()) }
    }
}

/// The state of an upload on disk.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) info: Info,
    pub(crate) progress: UploadProgress,
    /// Whether the file has moved to its final name.
    pub(crate) is_finished: bool,
}

/// The open directories.
#[derive(Debug)]
pub(crate) struct Directory {
    top: OwnedFd,
    top_syncs: CommitGroup,
    uploads: Flock<File>,
    uploads_syncs: CommitGroup,
    pub(crate) journal: Journal,
    /// Held while a file gets or loses a name. Otherwise threads would wait in the kernel for the lock of the directory,
    /// and keep the processors busy meanwhile.
    names: Mutex<()>,
    /// For messages.
    path: PathBuf,
    is_lost: AtomicBool,
}

/// Whether a file got a name, or why the file system refuses the name.
type Named = Result<(), Errno>;

/// The refusal of a name. Which errors are about a name differs between file systems, also between those behind FUSE and on
/// servers. So all are, except those that another name does not help against.
fn not_named(errno: Errno) -> io::Result<Named> {
    match errno {
        Errno::ENOSPC
        | Errno::EDQUOT
        | Errno::EROFS
        | Errno::EIO
        | Errno::ESTALE
        | Errno::ENOMEM
        | Errno::EMFILE
        | Errno::ENFILE
        | Errno::EINTR
        | Errno::ENODEV
        | Errno::ENXIO
        | Errno::ENOTCONN
        | Errno::ETIMEDOUT => Err(errno.into()),
        _ => Ok(Err(errno)),
    }
}

impl Directory {
    /// Opens the directory and locks it for this process.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let top = open(path, flags, Mode::empty())?;
        match mkdirat(&top, UPLOADS, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let uploads = openat(&top, UPLOADS, flags | OFlag::O_NOFOLLOW, Mode::empty())?;
        // This fails if another user has made the directory in advance.
        fchmod(&uploads, Mode::S_IRWXU)?;
        let uploads = Flock::lock(File::from(uploads), FlockArg::LockExclusiveNonblock)
            .map_err(|(_, errno)| io::Error::from(errno))?;
        fsync(&top)?;
        let journal = Journal::open(uploads.as_fd().try_clone_to_owned()?)?;
        Ok(Self {
            top,
            top_syncs: CommitGroup::default(),
            uploads,
            uploads_syncs: CommitGroup::default(),
            journal,
            names: Mutex::default(),
            path: path.to_owned(),
            is_lost: AtomicBool::new(false),
        })
    }

    fn file(&self, name: &str, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        // The umask narrows this mode. Other users cannot open the directory of unfinished uploads.
        let mode = Mode::from_bits_truncate(0o666);
        Ok(File::from(openat(self.uploads.as_fd(), name, flags, mode)?))
    }

    /// Removes files that a crash or an earlier version has left without an upload.
    pub(crate) fn remove_strays(&self) -> io::Result<()> {
        let own = openat(self.uploads.as_fd(), ".", OFlag::O_DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::from_fd(own)?.iter() {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        let known: HashSet<Id> = self.journal.uploads().into_iter().map(|(id, _)| id).collect();
        for name in names {
            let id = name.split('.').next().and_then(|id| id.parse().ok());
            if id.is_some_and(|id| !known.contains(&id)) {
                self.unlink(&name)?;
            }
        }
        Ok(())
    }

    /// The size of all regular files in the directory itself.
    pub(crate) fn used(&self) -> io::Result<u64> {
        let own = openat(&self.top, ".", OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        let mut used: u64 = 0;
        for entry in Dir::from_fd(own)?.iter() {
            let entry = entry?;
            let status = match fstatat(&self.top, entry.file_name(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Err(Errno::ENOENT) => continue,
                status => status?,
            };
            if SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFREG {
                used = used.saturating_add(status.st_size.unsigned_abs());
            }
        }
        Ok(used)
    }

    /// The number of bytes that the file system has left for this process's user.
    pub(crate) fn free(&self) -> io::Result<u64> {
        let of = fstatvfs(&self.top)?;
        Ok(of.blocks_available().saturating_mul(of.fragment_size()))
    }

    fn names(&self) -> MutexGuard<'_, ()> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs the names in `.wakeai-uploads` to the disk.
    fn sync_uploads(&self) -> io::Result<()> {
        self.uploads_syncs.sync(|| self.uploads.sync_all())
    }

    /// Records how far an upload is. When this returns, that is on disk. `has_name` says whether the file's name already is.
    pub(crate) fn keep(&self, id: Id, progress: UploadProgress, has_name: bool) -> io::Result<()> {
        let keep = || {
            if !has_name {
                self.sync_uploads()?;
            }
            self.journal.progress(id, progress)?;
            self.journal.sync()
        };
        let kept = keep();
        self.check().and(kept)
    }

    /// Checks that the directory and the one of unfinished uploads still are where they were. Both stay open and take
    /// bytes after they were removed, but nobody would find these.
    pub(crate) fn check(&self) -> io::Result<()> {
        let found = fstatat(&self.top, UPLOADS, AtFlags::AT_SYMLINK_NOFOLLOW);
        let own = fstat(self.uploads.as_fd());
        let is_there = found.ok().zip(own.ok()).is_some_and(|(found, own)| is_same(&found, &own));
        if self.is_lost.swap(!is_there, Ordering::Relaxed) == is_there {
            if is_there {
                tracing::warn!(directory = %self.path.display(), "the directory is back");
            } else {
                tracing::error!(
                    directory = %self.path.display(),
                    "the directory or its .wakeai-uploads was removed or replaced while the server runs, so nothing can \
                     be stored: bring its storage back, and start the server again"
                );
            }
        }
        if is_there { Ok(()) } else { Err(Errno::ESTALE.into()) }
    }

    /// Whether the directory was gone at the last check.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Reads the state of an upload from the disk.
    pub(crate) fn load(&self, id: Id, mut progress: UploadProgress) -> io::Result<Stored> {
        let info = self.journal.info(id)?;
        let bytes = match self.file(&id.to_string(), OFlag::O_RDONLY) {
            Ok(data) => Some(data.metadata()?.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let has_moved = bytes.is_none() && info.length == Some(progress.offset);
        match bytes {
            Some(bytes) => progress.offset = progress.offset.min(bytes),
            // All bytes of a file are recorded before it moves to its name. A file is made with the first byte.
            None if has_moved || progress.offset == 0 => {}
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        Ok(Stored { info, progress, is_finished: has_moved })
    }

    /// Opens the file of an upload's bytes for writing. Bytes beyond the acknowledged offset are truncated.
    pub(crate) fn open_data(&self, id: Id, offset: u64) -> io::Result<File> {
        let made = if offset == 0 { OFlag::O_CREAT } else { OFlag::empty() };
        let names = self.names();
        let data = self.file(&id.to_string(), OFlag::O_RDWR | made)?;
        drop(names);
        match data.metadata()?.len() {
            bytes if bytes < offset => Err(Errno::ENOENT.into()), // see `check_data`
            bytes if bytes > offset => data.set_len(offset).map(|()| data),
            _ => Ok(data),
        }
    }

    /// Moves a complete upload's file to its final name. If the name is taken, the file gets a name with a number, and if
    /// the file system refuses the name, another one of [`alternatives`]. Returns the name that it got.
    pub(crate) fn finish(
        &self,
        id: Id,
        mut info: Info,
        progress: UploadProgress,
        wanted: &str,
    ) -> io::Result<String> {
        self.check_data(id, progress.offset)?;
        let mut refused: Option<(String, Errno)> = None;
        let mut last = Errno::EINVAL;
        for name in alternatives(wanted, &format!("upload-{id}")) {
            if let Err(errno) = self.finish_as(id, &mut info, progress, &name)? {
                last = errno;
                refused.get_or_insert((name, errno));
                continue;
            }
            if let Some((name, errno)) = refused {
                tracing::warn!(%id, name, error = errno.desc(), kept_as = info.name, "the file system refuses the name");
            }
            return Ok(info.name);
        }
        Err(last.into()) // about the name that all file systems take
    }

    /// Moves a complete upload's file to this name, or to the first one with a number that is free.
    fn finish_as(
        &self,
        id: Id,
        info: &mut Info,
        progress: UploadProgress,
        wanted: &str,
    ) -> io::Result<Named> {
        for number in 1..=MOST_NAMES {
            let name = if number == 1 { wanted.to_owned() } else { numbered(wanted, number) };
            let is_free = match fstatat(&self.top, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Err(Errno::ENOENT) => true,
                // A crash may have come between the link and the unlink.
                Ok(found) if self.is_data(id, &found) => false,
                Ok(_) => continue,
                Err(errno) => return not_named(errno),
            };
            if info.name != name {
                info.name.clone_from(&name);
                self.journal.put(id, info, progress)?;
                self.journal.sync()?;
            }
            let linked = if is_free { self.link(id, &name) } else { Ok(()) };
            match linked {
                Ok(()) => {
                    self.top_syncs.sync(|| Ok(fsync(&self.top)?))?;
                    // If a crash brings this name back, the upload is finished again, and nothing changes.
                    self.unlink(&id.to_string())?;
                    return Ok(Ok(()));
                }
                Err(Errno::EEXIST) => {}
                Err(errno) => return not_named(errno),
            }
        }
        Ok(Err(Errno::EEXIST))
    }

    /// Checks that the file of an upload has all acknowledged bytes. Somebody may have removed or truncated it.
    pub(crate) fn check_data(&self, id: Id, offset: u64) -> io::Result<()> {
        match fstatat(self.uploads.as_fd(), id.to_string().as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(found) if found.st_size.unsigned_abs() >= offset => Ok(()),
            Ok(_) => Err(Errno::ENOENT.into()),
            Err(Errno::ENOENT) if offset == 0 => Ok(()), // a file is made with the first byte
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether `found` is the file of the upload's bytes.
    fn is_data(&self, id: Id, found: &FileStat) -> bool {
        let (uploads, id) = (self.uploads.as_fd(), id.to_string());
        let data = fstatat(uploads, id.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        data.is_ok_and(|data| is_same(&data, found))
    }

    /// Gives the file of an upload's bytes a second name, in the directory above. Without a journal in the file system, a
    /// power failure after a rename could remove the old name and not keep the new one.
    fn link(&self, id: Id, name: &str) -> nix::Result<()> {
        let (uploads, id) = (self.uploads.as_fd(), id.to_string());
        let _names = self.names();
        match linkat(uploads, id.as_str(), &self.top, name, AtFlags::empty()) {
            // Some file systems, such as FAT, have no hard links.
            Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS) => self.rename(&id, name),
            linked => linked,
        }
    }

    /// Renames the file of an upload's bytes, unless the new name is taken.
    fn rename(&self, id: &str, name: &str) -> nix::Result<()> {
        let uploads = self.uploads.as_fd();
        match renameat2(uploads, id, &self.top, name, RenameFlags::RENAME_NOREPLACE) {
            // The file system refuses the name, or has no such rename. It shows with an empty file, which takes the name.
            Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
                let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC | OFlag::O_WRONLY;
                drop(openat(&self.top, name, flags, Mode::from_bits_truncate(0o666))?);
                renameat2(uploads, id, &self.top, name, RenameFlags::empty()).inspect_err(|_| {
                    let _ = unlinkat(&self.top, name, UnlinkatFlags::NoRemoveDir);
                })
            }
            renamed => renamed,
        }
    }

    /// The SHA-256 of a finished upload's file, in Base64. It is `None` if the file no longer exists or has another
    /// length, or changes meanwhile. `known` is an earlier digest, which counts if the file has not changed since.
    pub(crate) fn digest(
        &self,
        info: &Info,
        known: Option<(Version, String)>,
    ) -> Option<(Version, String)> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = openat(&self.top, info.name.as_str(), flags, Mode::empty()).ok()?;
        let file = File::from(file);
        let status = file.metadata().ok()?;
        if !status.is_file() || Some(status.len()) != info.length {
            return None;
        }
        let version = Version::new(&status);
        if let Some(known) = known.filter(|(of, _)| *of == version) {
            return Some(known);
        }
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.add_file(&file, 0, status.len()).ok()?;
        let digest = BASE64.encode(hasher.finish().digest);
        (Version::new(&file.metadata().ok()?) == version).then_some((version, digest))
    }

    /// Forgets an upload, and removes its file in `.wakeai-uploads`.
    pub(crate) fn remove(&self, id: Id) -> io::Result<()> {
        if self.journal.remove(id).is_err() {
            // On a full disk, the journal needs the room of the file.
            self.unlink(&id.to_string())?;
            self.journal.remove(id)?;
        }
        self.journal.sync()?;
        self.unlink(&id.to_string())
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        let _names = self.names();
        match unlinkat(self.uploads.as_fd(), name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn is_same(one: &FileStat, other: &FileStat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
