//! The files of uploads. Every path is relative to an open directory, and no symbolic link is followed.
//!
//! An upload has three files in `.wakeai-uploads`: `ID` has its bytes, `ID.offset` the [record](super::record) of the
//! acknowledged offset, and `ID.json` the rest. An upload exists while its `ID.json` exists. Its bytes move into the
//! directory above when it is complete.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, RenameFlags, open, openat, renameat2};
use nix::sys::stat::{Mode, SFlag, fchmod, fstatat, mkdirat};
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{UnlinkatFlags, unlinkat};
use serde::{Deserialize, Serialize};

use super::digest::sha256;
use super::name::numbered;
use super::record::{FILE_BYTES, Record};
use super::request::Id;

const UPLOADS: &str = ".wakeai-uploads";
/// The suffix of a new `ID.json`, before it replaces the old one.
const NEW: &str = ".json.new";
/// The number of names that are tried before an upload fails.
const MOST_NAMES: u32 = 10_000;

/// The content of `ID.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Info {
    pub(crate) length: Option<u64>,
    /// The value of `Upload-Metadata`.
    pub(crate) metadata: String,
    pub(crate) client: String,
    /// The name of the file. It is recorded before the file is renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
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
    uploads: Flock<File>,
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
        sync(&top)?;
        Ok(Self { top, uploads })
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
        let has_info = |name: &str| name.strip_suffix(".json").and_then(|id| id.parse::<Id>().ok());
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
        self.file(&id.to_string(), new)?;
        let offsets = self.file(&format!("{id}.offset"), new)?;
        // Both slots are written at the start, so that a record can be written even if the disk is full.
        offsets.write_all_at(&[0; FILE_BYTES], 0)?;
        let (at, bytes) = record.encode();
        offsets.write_all_at(&bytes, at)?;
        let mut file = self.file(&format!("{id}.json"), new)?;
        file.write_all(&serde_json::to_vec(info)?)
    }

    /// Syncs `ID.json` and the names of all files to the disk.
    pub(crate) fn sync(&self, id: Id) -> io::Result<()> {
        self.file(&format!("{id}.json"), OFlag::O_RDONLY)?.sync_all()?;
        self.uploads.sync_all()
    }

    /// Replaces `ID.json`. When this returns, the new content is on disk.
    pub(crate) fn write_info(&self, id: Id, info: &Info) -> io::Result<()> {
        let new = format!("{id}{NEW}");
        let mut file = self.file(&new, OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_WRONLY)?;
        file.write_all(&serde_json::to_vec(info)?)?;
        file.sync_all()?;
        let uploads = self.uploads.as_fd();
        renameat2(
            uploads,
            new.as_str(),
            uploads,
            format!("{id}.json").as_str(),
            RenameFlags::empty(),
        )?;
        self.uploads.sync_all()
    }

    pub(crate) fn read_info(&self, id: Id) -> io::Result<Info> {
        let mut text = Vec::new();
        let file = self.file(&format!("{id}.json"), OFlag::O_RDONLY)?;
        file.take(1 << 20).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// Reads the state of an upload from the disk.
    pub(crate) fn load(&self, id: Id) -> io::Result<Stored> {
        let info = self.read_info(id)?;
        let bytes = match self.file(&id.to_string(), OFlag::O_RDONLY) {
            Ok(data) => Some(data.metadata()?.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut slots = Vec::new();
        match self.file(&format!("{id}.offset"), OFlag::O_RDONLY) {
            Ok(file) => file.take(FILE_BYTES as u64).read_to_end(&mut slots).map(|_| ())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && bytes.is_none() => {}
            Err(error) => return Err(error),
        }
        let mut record = Record::newest(&slots).unwrap_or_default();
        match bytes {
            Some(bytes) => record.offset = record.offset.min(bytes),
            None if info.name.is_some() => record.offset = info.length.unwrap_or_default(),
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

    /// Opens the file of an upload's offset for writing.
    pub(crate) fn open_offsets(&self, id: Id) -> io::Result<File> {
        self.file(&format!("{id}.offset"), OFlag::O_RDWR)
    }

    /// Moves a complete upload's file to its final name. If the name is taken, the file gets a name with a number.
    /// Returns the name that the file got.
    pub(crate) fn finish(&self, id: Id, mut info: Info, wanted: &str) -> io::Result<Info> {
        let mut last = None;
        for number in 1..=MOST_NAMES {
            let name = if number == 1 { wanted.to_owned() } else { numbered(wanted, number) };
            if fstatat(&self.top, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW).is_ok() {
                continue;
            }
            info.name = Some(name.clone());
            self.write_info(id, &info)?;
            let (from, flags) = (id.to_string(), RenameFlags::RENAME_NOREPLACE);
            match renameat2(self.uploads.as_fd(), from.as_str(), &self.top, name.as_str(), flags) {
                Ok(()) => {
                    // If a crash undoes the rename, the upload is still complete and is finished again.
                    sync(&self.top)?;
                    let _ = self.unlink(&format!("{id}.offset"));
                    return Ok(info);
                }
                Err(Errno::EEXIST) => last = Some(Errno::EEXIST),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(last.unwrap_or(Errno::EEXIST).into())
    }

    /// The SHA-256 of a finished upload's file, in Base64. It is `None` if the file no longer exists or has another
    /// length.
    pub(crate) fn digest(&self, info: &Info) -> Option<String> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = openat(&self.top, info.name.as_deref()?, flags, Mode::empty()).ok()?;
        let file = File::from(file);
        let status = file.metadata().ok()?;
        let is_whole = status.is_file() && Some(status.len()) == info.length;
        if is_whole { sha256(&file, status.len()).ok() } else { None }
    }

    /// Removes every file of an upload in `.wakeai-uploads`.
    pub(crate) fn remove(&self, id: Id) -> io::Result<()> {
        for suffix in [".json", NEW, ".offset", ""] {
            self.unlink(&format!("{id}{suffix}"))?;
        }
        self.uploads.sync_all()
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        match unlinkat(self.uploads.as_fd(), name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn sync(directory: &OwnedFd) -> io::Result<()> {
    Ok(nix::unistd::fsync(directory)?)
}
