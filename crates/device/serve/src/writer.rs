//! Writes the body of one request into the file of its upload.
//!
//! The bytes are gathered in a block. A full block goes to another thread, which may wait for the disk. If few connections
//! are open, a second block takes bytes meanwhile. Otherwise the body waits in the socket.

use std::io;
use std::sync::Arc;

use tokio::task::{JoinHandle, spawn_blocking};

use wakeai_tus::Hasher;

use super::block::Block;
use super::data::Data;
use super::files::Directory;
use super::journal::UploadProgress;
use super::request::Id;

/// The number of written bytes after which a sync starts in parallel with the writing. The disk is then busy early, and
/// a crash loses little.
const CHECKPOINT_BYTES: u64 = 16 << 20;

/// The outcome of a write.
#[derive(Debug)]
struct Written {
    /// The number of bytes that were written.
    count: usize,
    outcome: io::Result<()>,
    hasher: Option<Hasher>,
    block: Block,
}

/// The file of an upload whose body arrives.
#[derive(Debug)]
pub(crate) struct Writer {
    directory: Arc<Directory>,
    id: Id,
    data: Arc<Data>,
    /// Whether the file's name is on disk.
    has_name: bool,
    /// The offset of the first byte that is not in the file yet.
    pub(crate) position: u64,
    /// The block that takes bytes. It is `None` after an error.
    block: Option<Block>,
    spare: Option<Block>,
    writing: Option<JoinHandle<Written>>,
    /// Whether the body has to be verified.
    has_checksum: bool,
    /// The digest of the body, if the request has a checksum. A write has it while it runs.
    pub(crate) hasher: Option<Hasher>,
    /// Whether a sync has failed. Written bytes may then be lost, and a second sync would not report that.
    pub(crate) is_lost: bool,
    checkpoint: Option<JoinHandle<io::Result<()>>>,
    /// The offset up to which the last checkpoint syncs the bytes.
    checkpointed: u64,
}

impl Writer {
    pub(crate) fn new(
        directory: Arc<Directory>,
        id: Id,
        data: Data,
        has_name: bool,
        position: u64,
        [block, spare]: [Option<Block>; 2],
        hasher: Option<Hasher>,
    ) -> Self {
        Self {
            directory,
            id,
            data: Arc::new(data),
            has_name,
            position,
            block,
            spare,
            writing: None,
            has_checksum: hasher.is_some(),
            hasher,
            is_lost: false,
            checkpoint: None,
            checkpointed: position,
        }
    }

    /// Takes bytes of the body, and writes each block that becomes full.
    pub(crate) async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let block = self.block.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            bytes = block.fill(bytes);
            if block.is_full() {
                let other = self.end_write().await?.or_else(|| self.spare.take());
                self.start_write();
                self.block = match other {
                    None => self.end_write().await?,
                    other => other,
                };
            }
        }
        Ok(())
    }

    /// Writes what is left in the block, after which nothing more can be written.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.end_write().await?;
        self.start_write();
        self.end_write().await?;
        Ok(())
    }

    /// Starts to write the bytes of the block at [`Self::position`]. No other write runs.
    fn start_write(&mut self) {
        let Some(block) = self.block.take() else { return };
        let (data, position, mut hasher) =
            (Arc::clone(&self.data), self.position, self.hasher.take());
        self.writing = Some(spawn_blocking(move || {
            let (count, outcome) = data.write(block.bytes(), position);
            if let Some(hasher) = &mut hasher {
                hasher.update(&block.bytes()[..count]);
            }
            Written { count, outcome, hasher, block }
        }));
    }

    /// Waits for the write that runs, if there is one, and returns its block. After an error, [`Self::position`] shows how
    /// many bytes were written.
    async fn end_write(&mut self) -> io::Result<Option<Block>> {
        let Some(writing) = self.writing.take() else { return Ok(None) };
        // The bytes of the next block would follow a gap after an error.
        let next = self.block.take();
        let Written { count, outcome, hasher, mut block } =
            writing.await.map_err(io::Error::other)?;
        self.position += count as u64;
        self.hasher = hasher;
        outcome?;
        self.block = next;
        block.clear();
        Ok(Some(block))
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
        let progress = UploadProgress {
            offset: self.position,
            active_ms: self.directory.journal.clock.now_ms(),
        };
        let progress = (!self.has_checksum).then_some(progress);
        let (directory, data) = (Arc::clone(&self.directory), Arc::clone(&self.data));
        let (id, has_name) = (self.id, self.has_name);
        self.checkpoint = Some(spawn_blocking(move || {
            data.file.sync_data()?;
            progress.map_or(Ok(()), |progress| directory.keep(id, progress, has_name))
        }));
    }

    /// Waits for the checkpoint that runs, if there is one. Returns the offset up to which it has synced the bytes.
    pub(crate) async fn end_checkpoint(&mut self) -> io::Result<Option<u64>> {
        let Some(checkpoint) = self.checkpoint.take() else { return Ok(None) };
        let synced = checkpoint.await.map_err(io::Error::other).flatten();
        self.is_lost |= synced.is_err();
        self.has_name |= synced.is_ok() && !self.has_checksum;
        synced.map(|()| Some(self.checkpointed))
    }

    /// Truncates the file to the acknowledged offset if it is longer. Syncs the bytes and records the offset.
    pub(crate) fn settle(&self, progress: UploadProgress) -> io::Result<()> {
        self.discard(progress.offset)?;
        self.data.file.sync_data()?;
        self.directory.keep(self.id, progress, self.has_name)
    }

    /// Truncates the file to `offset` if it is longer. No sync is needed, because no new byte counts.
    pub(crate) fn discard(&self, offset: u64) -> io::Result<()> {
        if self.position > offset { self.data.file.set_len(offset) } else { Ok(()) }
    }
}
