//! Writes the body of one request into the file of its upload.
//!
//! What one read of the socket returned goes to another thread, which may wait for the disk, and is written there without
//! a further copy. The next read follows the write, so a body takes no memory but that of its reads.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use hyper::body::Bytes;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::tus::Hasher;

use super::offsets::Offsets;
use super::record::Record;
use super::store::now;
use super::writeback::start_writeback;

/// The number of written bytes after which the kernel is told to write them to the disk. Most of a sync is then done before
/// it begins.
const WRITEBACK_BYTES: u64 = 1 << 19;

/// The number of written bytes after which a sync starts in parallel with the writing. The disk is then busy early, and
/// a crash loses little.
const CHECKPOINT_BYTES: u64 = 16 << 20;

/// The files of an upload whose body arrives.
#[derive(Debug)]
pub(crate) struct Writer {
    data: Arc<File>,
    offsets: Arc<Offsets>,
    /// The offset of the next byte.
    pub(crate) position: u64,
    /// The digest of the body, if the request has a checksum.
    pub(crate) hasher: Option<Hasher>,
    /// The sequence number of the last record.
    pub(crate) sequence: u64,
    /// Whether a sync has failed. Written bytes may then be lost, and a second sync would not report that.
    pub(crate) is_lost: bool,
    checkpoint: Option<JoinHandle<io::Result<()>>>,
    /// The offset up to which the last checkpoint syncs the bytes.
    checkpointed: u64,
    writeback: Option<JoinHandle<()>>,
    /// The offset up to which the kernel was told to write the bytes to the disk.
    written_back: u64,
}

impl Writer {
    pub(crate) fn new(
        data: File,
        offsets: Offsets,
        position: u64,
        hasher: Option<Hasher>,
        sequence: u64,
    ) -> Self {
        Self {
            data: Arc::new(data),
            offsets: Arc::new(offsets),
            position,
            hasher,
            sequence,
            is_lost: false,
            checkpoint: None,
            checkpointed: position,
            writeback: None,
            written_back: position,
        }
    }

    /// Writes `bytes` at [`Self::position`]. After an error, the position shows how many bytes were written.
    pub(crate) async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let (data, position, mut hasher) =
            (Arc::clone(&self.data), self.position, self.hasher.take());
        let write = move || {
            let (count, written) = write_at(&data, &bytes, position);
            if let Some(hasher) = &mut hasher {
                hasher.update(&bytes[..count]);
            }
            (count, written, hasher)
        };
        let (count, written, hasher) = spawn_blocking(write).await.map_err(io::Error::other)?;
        self.position += count as u64;
        self.hasher = hasher;
        self.write_back();
        written
    }

    /// Has the kernel write the bytes to the disk if [`WRITEBACK_BYTES`] are new. It is told so by one thread at a time.
    fn write_back(&mut self) {
        let is_running = self.writeback.as_ref().is_some_and(|writeback| !writeback.is_finished());
        if is_running || self.position < self.written_back + WRITEBACK_BYTES {
            return;
        }
        let (data, from) = (Arc::clone(&self.data), self.written_back);
        self.writeback = Some(spawn_blocking(move || start_writeback(&data, from)));
        self.written_back = self.position;
    }

    /// Starts a checkpoint if [`CHECKPOINT_BYTES`] were written since the last one. If that one still runs, waits for it
    /// first, so that a body that arrives faster than the disk writes does not fill the memory. Returns the offset up to
    /// which a checkpoint has synced the bytes, if one has ended.
    pub(crate) async fn checkpoint(&mut self) -> io::Result<Option<u64>> {
        let is_due = self.position >= self.checkpointed + CHECKPOINT_BYTES;
        let has_ended = self.checkpoint.as_ref().is_some_and(JoinHandle::is_finished);
        let synced = if is_due || has_ended { self.end_checkpoint().await? } else { None };
        if is_due {
            self.start_checkpoint();
        }
        Ok(synced)
    }

    /// Starts a sync of the written bytes. The offset is recorded after the sync, unless the bytes still have to be
    /// verified.
    fn start_checkpoint(&mut self) {
        self.checkpointed = self.position;
        self.sequence += 1;
        let record = Record { sequence: self.sequence, offset: self.position, at: now() };
        let record = self.hasher.is_none().then_some(record);
        let (data, offsets) = (Arc::clone(&self.data), Arc::clone(&self.offsets));
        self.checkpoint = Some(spawn_blocking(move || {
            data.sync_data()?;
            record.map_or(Ok(()), |record| offsets.keep(record))
        }));
    }

    /// Waits for the checkpoint that runs, if there is one. Returns the offset up to which it has synced the bytes.
    pub(crate) async fn end_checkpoint(&mut self) -> io::Result<Option<u64>> {
        let Some(checkpoint) = self.checkpoint.take() else { return Ok(None) };
        let synced = checkpoint.await.map_err(io::Error::other).flatten();
        self.is_lost |= synced.is_err();
        synced.map(|()| Some(self.checkpointed))
    }

    /// Truncates the file to the record's offset if it is longer, and syncs the bytes and the record to the disk.
    pub(crate) fn settle(&self, record: Record) -> io::Result<()> {
        self.discard(record.offset)?;
        self.data.sync_data()?;
        self.offsets.keep(record)
    }

    /// Truncates the file to `offset` if it is longer. No sync is needed, because no new byte counts.
    pub(crate) fn discard(&self, offset: u64) -> io::Result<()> {
        if self.position > offset { self.data.set_len(offset) } else { Ok(()) }
    }
}

/// Writes all bytes at an offset. Returns how many bytes were written, and the error that stopped the writing.
fn write_at(file: &File, bytes: &[u8], offset: u64) -> (usize, io::Result<()>) {
    let mut count = 0;
    while count < bytes.len() {
        match file.write_at(&bytes[count..], offset + count as u64) {
            Ok(0) => return (count, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (count, Err(error)),
        }
    }
    (count, Ok(()))
}
