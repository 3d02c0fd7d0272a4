//! The state of all uploads on disk: a file of entries.
//!
//! Each change appends a line, which has a checksum and the entry as JSON. The last entry of an upload counts. A line that
//! a crash has torn does not match its checksum and is skipped. One sync serves all uploads that wait for one. The file is
//! written anew when most of its lines are outdated.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, RenameFlags, fallocate, openat, renameat2};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{UnlinkatFlags, fsync, unlinkat};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::clock::{Clock, ClockReading};
use super::group::CommitGroup;
use super::request::Id;

/// The name of the file in `.wakeai-uploads`.
pub(crate) const NAME: &str = "journal";
/// The name of a new file, before it replaces the old one.
const NEW: &str = "journal.new";
/// The file is not written anew while it is smaller than this.
const SMALL_BYTES: u64 = 1 << 20;
/// The part of the file's blocks that new uploads leave free. When the disk is full, the offsets of older uploads can still
/// be recorded there.
const RESERVE_BYTES: u64 = 1 << 16;
/// The bytes by which the file's blocks are allocated in advance.
const ALLOCATED_BYTES: u64 = 1 << 18;
/// The digits of a line's checksum.
const CHECK_DIGITS: usize = 16;

/// What does not change while the bytes of an upload arrive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Info {
    pub(crate) length: Option<u64>,
    /// The value of `Upload-Metadata`.
    pub(crate) metadata: String,
    pub(crate) client: String,
    /// The name that the file will have, or has. It is on disk before the file gets it.
    pub(crate) name: String,
}

/// How far an upload is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UploadProgress {
    /// The number of acknowledged bytes.
    pub(crate) offset: u64,
    /// The time of the last activity, in milliseconds of the [clock](super::clock). An earlier version kept the wall
    /// clock's seconds under another name; its uploads count from the first start of this one.
    #[serde(default)]
    pub(crate) active_ms: u64,
}

/// A change of one upload.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum JournalEntry<'a> {
    Upload { id: Id, info: Cow<'a, Info>, progress: UploadProgress },
    Progress { id: Id, progress: UploadProgress },
    Removed { id: Id },
    Clock { reading: ClockReading },
}

/// Where an upload's last [`JournalEntry::Upload`] is, and its last progress.
#[derive(Clone, Copy, Debug)]
struct KeptLines {
    start: u64,
    length: usize,
    progress: UploadProgress,
}

#[derive(Debug)]
struct Lines {
    file: Arc<File>,
    /// The end of the last line.
    end: u64,
    /// The end of the blocks that are allocated to the file.
    allocated: u64,
    /// The size at which the file is written anew.
    rewrite_at: u64,
    /// Whether a sync has failed. The kernel reports that once, and a later sync does not write what was lost. So the file
    /// has to be written anew before its lines count as being on disk.
    is_lost: bool,
    uploads: HashMap<Id, KeptLines>,
    /// The last reading of the clocks.
    reading: Option<ClockReading>,
}

#[derive(Debug)]
pub(crate) struct Journal {
    directory: OwnedFd,
    lines: Mutex<Lines>,
    syncs: CommitGroup,
    pub(crate) clock: Clock,
}

impl Journal {
    /// Reads the file in this directory, or makes it.
    pub(crate) fn open(directory: OwnedFd) -> io::Result<Self> {
        let lines = Lines::read(open_file(&directory, NAME, OFlag::empty())?)?;
        // A process that was killed may not have synced what it wrote, and clients will be told of it.
        lines.file.sync_all()?;
        fsync(&directory)?;
        let latest = lines.uploads.values().map(|kept| kept.progress.active_ms).max();
        let clock = Clock::resume(lines.reading.as_ref(), latest.unwrap_or(0));
        let journal =
            Self { directory, lines: Mutex::new(lines), syncs: CommitGroup::default(), clock };
        journal.rewrite_if_due(&mut journal.lines());
        if let Err(error) = journal.keep_time() {
            tracing::warn!(%error, "cannot record the time: after a boot, uploads may expire later");
        }
        Ok(journal)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The uploads, and how far each is.
    pub(crate) fn uploads(&self) -> Vec<(Id, UploadProgress)> {
        self.lines().uploads.iter().map(|(&id, kept)| (id, kept.progress)).collect()
    }

    /// The part of an upload's state that is not kept in memory.
    pub(crate) fn info(&self, id: Id) -> io::Result<Info> {
        self.lines().info(id)
    }

    /// Adds an upload, or replaces what is known of it.
    pub(crate) fn put(&self, id: Id, info: &Info, progress: UploadProgress) -> io::Result<()> {
        self.append(&JournalEntry::Upload { id, info: Cow::Borrowed(info), progress })
    }

    /// How far an upload is.
    pub(crate) fn progress_of(&self, id: Id) -> Option<UploadProgress> {
        self.lines().uploads.get(&id).map(|kept| kept.progress)
    }

    /// Records how far an upload is. Fails if the upload is not known.
    pub(crate) fn progress(&self, id: Id, progress: UploadProgress) -> io::Result<()> {
        self.append(&JournalEntry::Progress { id, progress })
    }

    pub(crate) fn remove(&self, id: Id) -> io::Result<()> {
        self.append(&JournalEntry::Removed { id })
    }

    /// Records the time, so that the age of uploads is known after a boot.
    pub(crate) fn keep_time(&self) -> io::Result<()> {
        self.append(&JournalEntry::Clock { reading: self.clock.read() })
    }

    fn append(&self, entry: &JournalEntry<'_>) -> io::Result<()> {
        let line = encode(entry)?;
        let mut lines = self.lines();
        let is_new = match entry {
            JournalEntry::Upload { id, .. } => !lines.uploads.contains_key(id),
            JournalEntry::Progress { id, .. } if !lines.uploads.contains_key(id) => {
                return Err(Errno::ENOENT.into());
            }
            _ => false,
        };
        lines.allocate(line.len() as u64, is_new)?;
        // A part of a line that is left by an error is overwritten by the next line.
        lines.file.write_all_at(&line, lines.end)?;
        lines.apply(entry, line.len());
        self.rewrite_if_due(&mut lines);
        Ok(())
    }

    /// Returns after all entries that were made before this call are on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.syncs.sync(|| {
            let mut lines = self.lines();
            if lines.is_lost {
                self.rewrite(&mut lines)?;
            }
            if fstat(&*lines.file)?.st_nlink == 0 {
                tracing::error!(
                    "the journal was removed while the server runs: it is written anew"
                );
                self.rewrite(&mut lines)?;
            }
            let file = Arc::clone(&lines.file);
            drop(lines);
            file.sync_data().inspect_err(|_| self.lines().is_lost = true)
        })
    }

    fn rewrite_if_due(&self, lines: &mut Lines) {
        if lines.end < lines.rewrite_at {
            return;
        }
        if let Err(error) = self.rewrite(lines) {
            tracing::warn!(%error, "cannot write the journal anew");
            lines.rewrite_at = 2 * lines.end;
        }
    }

    /// Replaces the file by one that has one line for each upload.
    fn rewrite(&self, lines: &mut Lines) -> io::Result<()> {
        let written = self.write_new(lines).and_then(|new| {
            renameat2(&self.directory, NEW, &self.directory, NAME, RenameFlags::empty())?;
            Ok(new)
        });
        // The new file counts from the rename on, even if the sync of the directory fails.
        *lines = written.inspect_err(|_| {
            let _ = unlinkat(&self.directory, NEW, UnlinkatFlags::NoRemoveDir);
        })?;
        fsync(&self.directory)?;
        lines.is_lost = false;
        Ok(())
    }

    /// Writes the new file. It has a reserve, except where the old one has to be replaced in any case.
    fn write_new(&self, lines: &Lines) -> io::Result<Lines> {
        let mut new = Lines::new(open_file(&self.directory, NEW, OFlag::O_TRUNC)?);
        let file = Arc::clone(&new.file);
        let mut writer = BufWriter::new(&*file);
        let clock = lines
            .reading
            .clone()
            .map(|reading| Ok::<_, io::Error>(JournalEntry::Clock { reading }));
        let uploads = lines.uploads.iter().map(|(&id, kept)| {
            let info = Cow::Owned(lines.info(id)?);
            Ok(JournalEntry::Upload { id, info, progress: kept.progress })
        });
        for entry in clock.into_iter().chain(uploads) {
            let entry = entry?;
            let line = encode(&entry)?;
            writer.write_all(&line)?;
            new.apply(&entry, line.len());
        }
        writer.flush()?;
        file.sync_all()?;
        (new.allocated, new.rewrite_at, new.is_lost) =
            (new.end, SMALL_BYTES.max(2 * new.end), true);
        new.allocate(0, !lines.is_lost)?;
        Ok(new)
    }
}

impl Lines {
    /// The lines of an empty file.
    fn new(file: File) -> Self {
        Self {
            file: Arc::new(file),
            end: 0,
            allocated: 0,
            rewrite_at: SMALL_BYTES,
            is_lost: false,
            uploads: HashMap::new(),
            reading: None,
        }
    }

    fn read(file: File) -> io::Result<Self> {
        let mut lines = Self::new(file);
        let file = Arc::clone(&lines.file);
        let mut reader = BufReader::new(&*file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = reader.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                break;
            }
            if let Some(entry) = decode(&line) {
                lines.apply(&entry, count);
            } else {
                tracing::warn!(at = lines.end, "a line of the journal is damaged");
                lines.end += count as u64;
            }
        }
        lines.allocated = lines.end;
        if file.metadata()?.len() > lines.end {
            file.set_len(lines.end)?; // what a crash has left of a line
        }
        lines.allocate(0, false)?;
        let live: usize = lines.uploads.values().map(|kept| kept.length).sum();
        lines.rewrite_at = SMALL_BYTES.max(2 * live as u64);
        Ok(lines)
    }

    /// Takes in the entry of the next line, which has `length` bytes.
    fn apply(&mut self, entry: &JournalEntry<'_>, length: usize) {
        let start = self.end;
        self.end += length as u64;
        match *entry {
            JournalEntry::Upload { id, progress, .. } => {
                self.uploads.insert(id, KeptLines { start, length, progress });
            }
            JournalEntry::Progress { id, progress } => {
                if let Some(kept) = self.uploads.get_mut(&id) {
                    kept.progress = progress;
                }
            }
            JournalEntry::Removed { id } => {
                self.uploads.remove(&id);
            }
            JournalEntry::Clock { ref reading } => self.reading = Some(reading.clone()),
        }
    }

    fn info(&self, id: Id) -> io::Result<Info> {
        let kept = self.uploads.get(&id).ok_or(Errno::ENOENT)?;
        let mut line = vec![0; kept.length];
        self.file.read_exact_at(&mut line, kept.start)?;
        match decode(&line) {
            Some(JournalEntry::Upload { id: found, info, .. }) if found == id => {
                Ok(info.into_owned())
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Allocates blocks for `more` bytes. Fails if `leaves_reserve` and the disk has no room for the reserve.
    fn allocate(&mut self, more: u64, leaves_reserve: bool) -> io::Result<()> {
        let needed = self.end + more;
        if needed + RESERVE_BYTES <= self.allocated {
            return Ok(());
        }
        let (from, count) = (self.allocated, needed + ALLOCATED_BYTES - self.allocated);
        let offsets = i64::try_from(from).ok().zip(i64::try_from(count).ok());
        let (from, count) = offsets.ok_or(io::ErrorKind::FileTooLarge)?;
        match fallocate(&*self.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, from, count) {
            Ok(()) => self.allocated = needed + ALLOCATED_BYTES,
            Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => self.allocated = u64::MAX,
            Err(errno) if leaves_reserve => return Err(errno.into()),
            Err(_) => {}
        }
        Ok(())
    }
}

fn open_file(directory: &OwnedFd, name: &str, flags: OFlag) -> io::Result<File> {
    let flags = flags | OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    Ok(File::from(openat(directory.as_fd(), name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?))
}

fn encode(entry: &JournalEntry<'_>) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(entry)?;
    let mut line = format!("{} ", check(&json)).into_bytes();
    line.extend_from_slice(&json);
    line.push(b'\n');
    Ok(line)
}

fn decode(line: &[u8]) -> Option<JournalEntry<'static>> {
    let (digits, json) = line.strip_suffix(b"\n")?.split_at_checked(CHECK_DIGITS)?;
    let json = json.strip_prefix(b" ")?;
    if digits == check(json).as_bytes() { serde_json::from_slice(json).ok() } else { None }
}

/// The first 64 bits of the SHA-256, in hexadecimal.
fn check(json: &[u8]) -> String {
    let digest = Sha256::digest(json);
    let first = digest.first_chunk().expect("a digest has more than eight bytes");
    format!("{:016x}", u64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(directory: &tempfile::TempDir) -> Journal {
        Journal::open(File::open(directory.path()).unwrap().into()).unwrap()
    }

    fn info(name: &str) -> Info {
        let (metadata, client) = ("filename eA==".to_owned(), "me".to_owned());
        Info { length: Some(9), metadata, client, name: name.to_owned() }
    }

    const A: Id = Id(1);
    const B: Id = Id(2);

    #[test]
    fn a_line_that_is_torn_anywhere_leaves_the_state_before() {
        let directory = tempfile::tempdir().unwrap();
        let journal = open(&directory);
        journal.put(A, &info("a"), UploadProgress { offset: 0, active_ms: 1 }).unwrap();
        let whole = std::fs::read(directory.path().join(NAME)).unwrap().len();
        journal.progress(A, UploadProgress { offset: 5, active_ms: 2 }).unwrap();
        drop(journal);
        let bytes = std::fs::read(directory.path().join(NAME)).unwrap();
        for torn in whole..bytes.len() {
            std::fs::write(directory.path().join(NAME), &bytes[..torn]).unwrap();
            let journal = open(&directory);
            assert_eq!(
                journal.uploads(),
                [(A, UploadProgress { offset: 0, active_ms: 1 })],
                "{torn}"
            );
            journal.progress(A, UploadProgress { offset: 7, active_ms: 3 }).unwrap();
            drop(journal);
            assert_eq!(
                open(&directory).uploads(),
                [(A, UploadProgress { offset: 7, active_ms: 3 })]
            );
        }
    }

    #[test]
    fn a_damaged_line_costs_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let journal = open(&directory);
        journal.put(A, &info("a"), UploadProgress::default()).unwrap();
        journal.progress(A, UploadProgress { offset: 5, active_ms: 2 }).unwrap();
        journal.put(B, &info("b"), UploadProgress { offset: 1, active_ms: 1 }).unwrap();
        drop(journal);
        // The line is still an entry, and only its checksum shows the damage.
        let lines = std::fs::read_to_string(directory.path().join(NAME)).unwrap();
        let damaged = lines.replace("\"offset\":5", "\"offset\":7");
        assert_ne!(damaged, lines);
        std::fs::write(directory.path().join(NAME), damaged).unwrap();
        let journal = open(&directory);
        let mut uploads = journal.uploads();
        uploads.sort_unstable_by_key(|&(id, _)| id);
        assert_eq!(
            uploads,
            [(A, UploadProgress::default()), (B, UploadProgress { offset: 1, active_ms: 1 })]
        );
        assert_eq!(journal.info(B).unwrap(), info("b"));
    }

    #[test]
    fn an_upload_that_is_not_known_makes_no_progress() {
        let directory = tempfile::tempdir().unwrap();
        let journal = open(&directory);
        let progress = UploadProgress { offset: 5, active_ms: 2 };
        assert_eq!(journal.progress(A, progress).unwrap_err().kind(), io::ErrorKind::NotFound);
        journal.put(A, &info("a"), UploadProgress::default()).unwrap();
        journal.progress(A, progress).unwrap();
        assert_eq!(journal.progress_of(A), Some(progress));
        journal.remove(A).unwrap();
        assert_eq!(journal.progress(A, progress).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(journal.info(A).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn after_a_sync_that_failed_the_next_one_writes_the_file_anew() {
        let directory = tempfile::tempdir().unwrap();
        let journal = open(&directory);
        journal.put(A, &info("a"), UploadProgress { offset: 5, active_ms: 2 }).unwrap();
        let before = Arc::clone(&journal.lines().file);
        journal.lines().is_lost = true;
        journal.sync().unwrap();
        assert!(!journal.lines().is_lost);
        assert!(!Arc::ptr_eq(&before, &journal.lines().file));
        journal.progress(A, UploadProgress { offset: 6, active_ms: 3 }).unwrap();
        drop(journal);
        assert_eq!(open(&directory).uploads(), [(A, UploadProgress { offset: 6, active_ms: 3 })]);
        assert!(!directory.path().join(NEW).exists());
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_read(bytes: Vec<u8>, lines in 0_usize..4) {
            let directory = tempfile::tempdir().unwrap();
            let mut file: Vec<u8> = Vec::new();
            for at in 0..lines {
                let progress = UploadProgress { offset: at as u64, active_ms: 1 };
                let info = Cow::Owned(info("a"));
                file.extend(encode(&JournalEntry::Upload { id: A, info, progress }).unwrap());
                file.extend(&bytes);
                file.push(b'\n');
            }
            file.extend(&bytes);
            std::fs::write(directory.path().join(NAME), file).unwrap();
            let found = open(&directory).uploads();
            let last = lines.checked_sub(1).map(|at| (A, UploadProgress { offset: at as u64, active_ms: 1 }));
            proptest::prop_assert_eq!(found, Vec::from_iter(last));
        }
    }

    #[test]
    fn outdated_lines_do_not_fill_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let journal = open(&directory);
        journal.put(A, &info("a"), UploadProgress::default()).unwrap();
        journal.put(B, &info("b"), UploadProgress::default()).unwrap();
        journal.remove(B).unwrap();
        for offset in 1..=30_000 {
            journal.progress(A, UploadProgress { offset, active_ms: 4 }).unwrap();
        }
        let size = std::fs::metadata(directory.path().join(NAME)).unwrap().len();
        assert!(size < SMALL_BYTES, "{size}");
        assert_eq!(journal.info(A).unwrap(), info("a"));
        drop(journal);
        let journal = open(&directory);
        assert_eq!(journal.uploads(), [(A, UploadProgress { offset: 30_000, active_ms: 4 })]);
        assert_eq!(journal.info(A).unwrap(), info("a"));
    }
}
