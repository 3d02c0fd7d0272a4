//! The files of uploads. Every path is relative to an open directory, and no symbolic link is followed.
//!
//! An upload has two files in `.wakeai-uploads`: `ID` has its bytes, and `ID.state` the [record](super::record) of the
//! acknowledged offset and, behind it, the rest as JSON. An upload exists while its `ID.state` exists. Its bytes move
//! into the directory above when it is complete.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, RenameFlags, open, openat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstatat, mkdirat};
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{UnlinkatFlags, fsync, linkat, unlinkat};
use serde::{Deserialize, Serialize};

use super::digest::sha256;
use super::group::Group;
use super::name::numbered;
use super::record::{HEAD_BYTES, Record};
use super::request::Id;

const UPLOADS: &str = ".wakeai-uploads";
/// The suffix of a new `ID.state`, before it replaces the old one.
const NEW: &str = ".state.new";
/// The number of bytes that are read of `ID.state` at most.
const MOST_STATE: u64 = 1 << 20;
/// The number of names that are tried before an upload fails.
const MOST_NAMES: u32 = 10_000;

/// The JSON part of `ID.state`, which follows the record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Info {
    pub(crate) length: Option<u64>,
    /// The value of `Upload-Metadata`.
    pub(crate) metadata: String,
    pub(crate) client: String,
    /// The name that the file will have, or has. It is on disk before the file gets it.
    pub(crate) name: String,
}

/// The state of an upload on disk.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) info: Info,
    pub(crate) record: Record,
    /// Whether the bytes have not been moved to their final name yet.
    pub(crate) has_data: bool,
}

/// The open directories.
#[derive(Debug)]
pub(crate) struct Directory {
    top: OwnedFd,
    top_syncs: Group,
    uploads: Flock<File>,
    uploads_syncs: Group,
    /// Held while a file gets or loses a name. Otherwise threads would wait in the kernel for the lock of the directory,
    /// and keep the processors busy meanwhile.
    names: Mutex<()>,
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
        Ok(Self {
            top,
            top_syncs: Group::default(),
            uploads,
            uploads_syncs: Group::default(),
            names: Mutex::default(),
        })
    }

    fn file(&self, name: &str, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        // The umask narrows this mode. Other users cannot open the directory of unfinished uploads.
        let mode = Mode::from_bits_truncate(0o666);
        Ok(File::from(openat(self.uploads.as_fd(), name, flags, mode)?))
    }

    /// The IDs of all uploads. A crash may leave files without an upload; these are removed.
    pub(crate) fn list(&self) -> io::Result<Vec<Id>> {
        let own = openat(self.uploads.as_fd(), ".", OFlag::O_DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::from_fd(own)?.iter() {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        let has_info =
            |name: &str| name.strip_suffix(".state").and_then(|id| id.parse::<Id>().ok());
        let mut found: Vec<Id> = names.iter().filter_map(|name| has_info(name)).collect();
        found.sort_unstable();
        for name in names.iter().filter(|name| !name.starts_with('.')) {
            let id = name.split('.').next().and_then(|id| id.parse::<Id>().ok());
            let is_left =
                name.ends_with(NEW) || id.is_some_and(|id| found.binary_search(&id).is_err());
            if id.is_some() && is_left {
                self.unlink(name)?;
            }
        }
        Ok(found)
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

    /// Makes the files of a new upload. They reach the disk together with the first acknowledged bytes. Before that, a
    /// crash can lose no acknowledged byte.
    pub(crate) fn create(&self, id: Id, info: &Info, record: Record) -> io::Result<()> {
        let made = self.make(id, info, record);
        if made.is_err() {
            let _ = self.remove(id);
        }
        made
    }

    fn make(&self, id: Id, info: &Info, record: Record) -> io::Result<()> {
        let new = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY;
        let mut state = {
            let _names = self.names();
            self.file(&id.to_string(), new)?;
            self.file(&format!("{id}.state"), new)?
        };
        // Both slots of the record are written at the start, so that a record can be written even if the disk is full.
        state.write_all(&encode(record, info)?)
    }

    fn names(&self) -> MutexGuard<'_, ()> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs the names in `.wakeai-uploads` to the disk.
    pub(crate) fn sync_uploads(&self) -> io::Result<()> {
        self.uploads_syncs.sync(|| self.uploads.sync_all())
    }

    /// Replaces `ID.state`. When this returns, the new content is on disk.
    pub(crate) fn write_info(&self, id: Id, info: &Info) -> io::Result<()> {
        let record = Record::newest(&self.read_state(id)?).unwrap_or_default();
        let new = format!("{id}{NEW}");
        let mut file = self.file(&new, OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_WRONLY)?;
        file.write_all(&encode(record, info)?)?;
        file.sync_all()?;
        let (uploads, flags) = (self.uploads.as_fd(), RenameFlags::empty());
        renameat2(uploads, new.as_str(), uploads, format!("{id}.state").as_str(), flags)?;
        self.sync_uploads()
    }

    fn read_state(&self, id: Id) -> io::Result<Vec<u8>> {
        let mut state = Vec::new();
        let file = self.file(&format!("{id}.state"), OFlag::O_RDONLY)?;
        file.take(MOST_STATE).read_to_end(&mut state)?;
        Ok(state)
    }

    pub(crate) fn read_info(&self, id: Id) -> io::Result<Info> {
        info(&self.read_state(id)?)
    }

    /// Reads the state of an upload from the disk.
    pub(crate) fn load(&self, id: Id) -> io::Result<Stored> {
        let state = self.read_state(id)?;
        let info = info(&state)?;
        let mut record = Record::newest(&state).unwrap_or_default();
        let bytes = match self.file(&id.to_string(), OFlag::O_RDONLY) {
            Ok(data) => Some(data.metadata()?.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        match bytes {
            Some(bytes) => record.offset = record.offset.min(bytes),
            // The file has moved to its name, which it does after all of its bytes are recorded.
            None if info.length == Some(record.offset) => {}
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        Ok(Stored { info, record, has_data: bytes.is_some() })
    }

    /// Opens the file of an upload's bytes for writing. Bytes beyond the acknowledged offset are truncated.
    pub(crate) fn open_data(&self, id: Id, offset: u64) -> io::Result<File> {
        let data = self.file(&id.to_string(), OFlag::O_RDWR)?;
        if data.metadata()?.len() > offset {
            data.set_len(offset)?;
        }
        Ok(data)
    }

    /// Opens the file that has the record of an upload's offset for writing.
    pub(crate) fn open_offsets(&self, id: Id) -> io::Result<File> {
        self.file(&format!("{id}.state"), OFlag::O_RDWR)
    }

    /// Moves a complete upload's file to its final name. If the name is taken, the file gets a name with a number.
    /// Returns the name that the file got.
    pub(crate) fn finish(&self, id: Id, mut info: Info, wanted: &str) -> io::Result<Info> {
        for number in 1..=MOST_NAMES {
            let name = if number == 1 { wanted.to_owned() } else { numbered(wanted, number) };
            let is_free = match fstatat(&self.top, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Err(Errno::ENOENT) => true,
                // A crash may have come between the link and the unlink.
                Ok(found) if self.is_data(id, &found) => false,
                Ok(_) => continue,
                Err(errno) => return Err(errno.into()),
            };
            if info.name != name {
                info.name.clone_from(&name);
                self.write_info(id, &info)?;
            }
            let linked = if is_free { self.link(id, &name) } else { Ok(()) };
            match linked {
                Ok(()) => {
                    self.top_syncs.sync(|| Ok(fsync(&self.top)?))?;
                    // If a crash brings this name back, the upload is finished again, and nothing changes.
                    self.unlink(&id.to_string())?;
                    return Ok(info);
                }
                Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(Errno::EEXIST.into())
    }

    /// Whether `found` is the file of the upload's bytes.
    fn is_data(&self, id: Id, found: &FileStat) -> bool {
        let (uploads, id) = (self.uploads.as_fd(), id.to_string());
        let data = fstatat(uploads, id.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        data.is_ok_and(|data| (data.st_dev, data.st_ino) == (found.st_dev, found.st_ino))
    }

    /// Gives the file of an upload's bytes a second name, in the directory above. Without a journal in the file system, a
    /// power failure after a rename could remove the old name and not keep the new one.
    fn link(&self, id: Id, name: &str) -> nix::Result<()> {
        let (uploads, id) = (self.uploads.as_fd(), id.to_string());
        let _names = self.names();
        match linkat(uploads, id.as_str(), &self.top, name, AtFlags::empty()) {
            // Some file systems, such as FAT, have no hard links.
            Err(Errno::EPERM | Errno::EOPNOTSUPP) => {
                renameat2(uploads, id.as_str(), &self.top, name, RenameFlags::RENAME_NOREPLACE)
            }
            linked => linked,
        }
    }

    /// The SHA-256 of a finished upload's file, in Base64. It is `None` if the file no longer exists or has another
    /// length.
    pub(crate) fn digest(&self, info: &Info) -> Option<String> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = openat(&self.top, info.name.as_str(), flags, Mode::empty()).ok()?;
        let file = File::from(file);
        let status = file.metadata().ok()?;
        let is_whole = status.is_file() && Some(status.len()) == info.length;
        if is_whole { sha256(&file, status.len()).ok() } else { None }
    }

    /// Removes every file of an upload in `.wakeai-uploads`.
    pub(crate) fn remove(&self, id: Id) -> io::Result<()> {
        for suffix in [".state", NEW, ""] {
            self.unlink(&format!("{id}{suffix}"))?;
        }
        self.sync_uploads()
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        let _names = self.names();
        match unlinkat(self.uploads.as_fd(), name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// The bytes of `ID.state`.
fn encode(record: Record, info: &Info) -> io::Result<Vec<u8>> {
    let mut state = vec![0; HEAD_BYTES];
    let (at, bytes) = record.encode();
    state[at as usize..][..bytes.len()].copy_from_slice(&bytes);
    serde_json::to_writer(&mut state, info)?;
    Ok(state)
}

fn info(state: &[u8]) -> io::Result<Info> {
    Ok(serde_json::from_slice(state.get(HEAD_BYTES..).unwrap_or_default())?)
}
