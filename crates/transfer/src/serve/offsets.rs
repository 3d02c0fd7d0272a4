//! Keeps the acknowledged offset of an upload on disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::files::Directory;
use super::record::Record;
use super::request::Id;

/// The file `ID.state` of an upload.
#[derive(Debug)]
pub(crate) struct Offsets {
    directory: Arc<Directory>,
    file: File,
    /// Whether the names of the upload's files are on disk, too. The creation of an upload does not wait for this.
    exists: AtomicBool,
}

impl Offsets {
    /// Opens the file. `exists` says whether the upload's other files are on disk already.
    pub(crate) fn open(directory: Arc<Directory>, id: Id, exists: bool) -> io::Result<Self> {
        let file = directory.open_offsets(id)?;
        Ok(Self { directory, file, exists: AtomicBool::new(exists) })
    }

    /// Writes a record. When this returns, the record is on disk, and so are the files that a restart needs to find it.
    pub(crate) fn keep(&self, record: Record) -> io::Result<()> {
        let (at, bytes) = record.encode();
        self.file.write_all_at(&bytes, at)?;
        self.file.sync_data()?;
        if !self.exists.load(Ordering::Relaxed) {
            self.directory.sync_uploads()?;
            self.exists.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
