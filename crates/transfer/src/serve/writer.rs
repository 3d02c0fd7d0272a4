//! Writes the body of one request into the file of its upload.
//!
//! The bytes are gathered in a block. A full block goes to another thread, which may wait for the disk. Meanwhile the
//! body waits in the socket, so it takes no memory of this process but that of one block.

use std::io;
use std::sync::Arc;

use tokio::task::{JoinHandle, spawn_blocking};

use crate::tus::Hasher;

use super::block::Block;
use super::data::Data;
use super::offsets::Offsets;
use super::record::Record;
use super::store::now;

/// The number of written bytes after which a sync starts in parallel with the writing. The disk is then busy early, and
/// a crash loses little.
const CHECKPOINT_BYTES: u64 = 16 << 20;

/// The files of an upload whose body arrives.
#[derive(Debug)]
pub(crate) struct Writer {
    data: Arc<Data>,
    offsets: Arc<Offsets>,
    /// The offset of the first byte that is not in the file yet.
    pub(crate) position: u64,
    /// The bytes from this offset on.
    block: Option<Block>,
    /// The digest of the body, if the request has a checksum.
    pub(crate) hasher: Option<Hasher>,
    /// The sequence number of the last record.
    pub(crate) sequence: u64,
    /// Whether a sync has failed. Written bytes may then be lost, and a second sync would not report that.
    pub(crate) is_lost: bool,
    checkpoint: Option<JoinHandle<io::Result<()>>>,
    /// The offset up to which the last checkpoint syncs the bytes.
    checkpointed: u64,
}

impl Writer {
    pub(crate) fn new(
        data: Data,
        offsets: Offsets,
        position: u64,
        block: Block,
        hasher: Option<Hasher>,
        sequence: u64,
    ) -> Self {
        Self {
            data: Arc::new(data),
            offsets: Arc::new(offsets),
            position,
            block: Some(block),
            hasher,
            sequence,
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
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Writes the bytes of the block at [`Self::position`]. After an error, the position shows how many bytes were written,
    /// and nothing more can be written.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let Some(block) = self.block.take_if(|block| !block.bytes().is_empty()) else {
            return Ok(());
        };
        let (data, position, mut hasher) =
            (Arc::clone(&self.data), self.position, self.hasher.take());
        let write = move || {
            let (count, written) = data.write(block.bytes(), position);
            if let Some(hasher) = &mut hasher {
                hasher.update(&block.bytes()[..count]);
            }
            (count, written, hasher, block)
        };
        let (count, written, hasher, mut block) =
            spawn_blocking(write).await.map_err(io::Error::other)?;
        self.position += count as u64;
        self.hasher = hasher;
        written?;
        block.clear();
        self.block = Some(block);
        Ok(())
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
            data.sync()?;
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
        self.data.sync()?;
        self.offsets.keep(record)
    }

    /// Truncates the file to `offset` if it is longer. No sync is needed, because no new byte counts.
    pub(crate) fn discard(&self, offset: u64) -> io::Result<()> {
        if self.position > offset { self.data.truncate(offset) } else { Ok(()) }
    }
}
