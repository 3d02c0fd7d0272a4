//! Keeps the acknowledged offset of an upload on disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::files::Directory;
use super::record::Record;
use super::request::Id;

/// The file `ID.offset` of an upload.
#[derive(Debug)]
pub(crate) struct Offsets {
    id: Id,
    directory: Arc<Directory>,
    file: File,
    /// Whether the upload's other files are on disk too, which its creation does not wait for.
    exists: AtomicBool,
}

impl Offsets {
    /// Opens the file. `exists` says that an offset was kept before.
    pub(crate) fn open(directory: Arc<Directory>, id: Id, exists: bool) -> io::Result<Self> {
        let file = directory.open_offsets(id)?;
        Ok(Self { id, directory, file, exists: AtomicBool::new(exists) })
    }

    /// Writes a record. It is on disk at the return, and so are the files that a restart needs to find it.
    pub(crate) fn keep(&self, record: Record) -> io::Result<()> {
        let (at, bytes) = record.encode();
        self.file.write_all_at(&bytes, at)?;
        self.file.sync_data()?;
        if !self.exists.load(Ordering::Relaxed) {
            self.directory.sync(self.id)?;
            self.exists.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
