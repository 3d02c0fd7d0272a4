//! Receives the next bytes of a body while the previous bytes are being written.

use std::io;
use std::sync::Arc;

use tokio::task::{JoinHandle, spawn_blocking};

use super::record::Record;
use super::store::now;
use super::writer::Writer;

/// The number of written bytes after which a sync starts in parallel with the writing. The disk is then busy early, and
/// a crash loses little.
const CHECKPOINT_BYTES: u64 = 16 << 20;

/// The task that writes one batch. It returns the buffer for later use.
type Job = JoinHandle<(Writer, Vec<u8>, io::Result<()>)>;

/// A writer that works while the next bytes arrive.
#[derive(Debug)]
pub(crate) struct Pipeline {
    writer: Option<Writer>,
    job: Option<Job>,
    spare: Vec<u8>,
    batch: Vec<u8>,
    batch_bytes: usize,
    checkpoint: Option<(u64, JoinHandle<io::Result<()>>)>,
    checkpointed: u64,
    /// The sequence number of the last record.
    pub(crate) sequence: u64,
    /// Whether a sync has failed. Written bytes may then be lost, and a second sync would not report that.
    pub(crate) is_lost: bool,
}

impl Pipeline {
    pub(crate) fn new(writer: Writer, batch_bytes: usize, sequence: u64) -> Self {
        Self {
            checkpointed: writer.position,
            writer: Some(writer),
            job: None,
            spare: Vec::new(),
            batch: Vec::with_capacity(batch_bytes),
            batch_bytes,
            checkpoint: None,
            sequence,
            is_lost: false,
        }
    }

    /// Takes bytes, and waits only while two batches are full.
    pub(crate) async fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(self.batch_bytes - self.batch.len()));
            self.batch.extend_from_slice(now);
            bytes = rest;
            if self.batch.len() == self.batch_bytes {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Waits for the batch that is being written, and starts writing the next one.
    async fn flush(&mut self) -> io::Result<()> {
        self.settle().await?;
        self.start_checkpoint();
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        if self.spare.capacity() == 0 {
            self.spare.reserve_exact(self.batch_bytes);
        }
        let mut batch = std::mem::replace(&mut self.batch, std::mem::take(&mut self.spare));
        self.job = Some(spawn_blocking(move || {
            let written = writer.write(&batch);
            batch.clear();
            (writer, batch, written)
        }));
        Ok(())
    }

    async fn settle(&mut self) -> io::Result<()> {
        let Some(job) = self.job.take() else { return Ok(()) };
        let (writer, spare, written) = job.await.map_err(io::Error::other)?;
        (self.writer, self.spare) = (Some(writer), spare);
        written
    }

    /// Writes all bytes that were taken. `keep` is false if an earlier error makes further writes useless.
    pub(crate) async fn finish(&mut self, keep: bool) -> io::Result<()> {
        self.settle().await?;
        if keep && !self.batch.is_empty() {
            self.flush().await?;
            self.settle().await?;
        }
        Ok(())
    }

    /// The writer, after [`Self::finish`]. It is `None` if the writing thread panicked.
    pub(crate) fn into_writer(self) -> Option<Writer> {
        self.writer
    }

    /// The offset up to which bytes are written, after [`Self::finish`].
    pub(crate) fn position(&self) -> Option<u64> {
        self.writer.as_ref().map(|writer| writer.position)
    }

    /// Starts a sync of the written bytes, if [`CHECKPOINT_BYTES`] were written since the last sync began and no sync
    /// is running. The offset is recorded after the sync, unless the bytes still have to be verified.
    fn start_checkpoint(&mut self) {
        let Some(writer) = &self.writer else { return };
        let upto = writer.position;
        if self.checkpoint.is_some() || upto < self.checkpointed + CHECKPOINT_BYTES {
            return;
        }
        self.checkpointed = upto;
        self.sequence += 1;
        let (data, offsets) = (Arc::clone(&writer.data), Arc::clone(&writer.offsets));
        let record = Record { sequence: self.sequence, offset: upto, at: now() };
        let record = writer.hasher.is_none().then_some(record);
        let sync = move || {
            data.sync_data()?;
            record.map_or(Ok(()), |record| offsets.keep(record))
        };
        self.checkpoint = Some((upto, spawn_blocking(sync)));
    }

    /// Returns the offset up to which a checkpoint has synced the bytes, if the checkpoint has ended. If `wait` is set,
    /// waits for its end.
    pub(crate) async fn end_checkpoint(&mut self, wait: bool) -> io::Result<Option<u64>> {
        match self.checkpoint.take() {
            Some((upto, sync)) if wait || sync.is_finished() => {
                let synced = sync.await.map_err(io::Error::other).flatten();
                self.is_lost |= synced.is_err();
                synced.map(|()| Some(upto))
            }
            running => {
                self.checkpoint = running;
                Ok(None)
            }
        }
    }
}
