//! Receives the next bytes of a body while those before are being written.

use std::io;
use std::sync::Arc;

use tokio::task::{JoinHandle, spawn_blocking};

use super::record::Record;
use super::store::now;
use super::writer::Writer;

/// The bytes after which a sync starts beside the writing, so that the disk is busy early and little is lost by a crash.
const CHECKPOINT_BYTES: u64 = 16 << 20;

/// The writing of one batch, with the buffer to use again.
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
    /// A sync has failed. Bytes that were written may be lost, and a second sync would not tell.
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

    /// Waits for the batch that is being written, and starts with the next one.
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

    /// Writes all that was taken. `keep` is false where an earlier error makes further writes useless.
    pub(crate) async fn finish(&mut self, keep: bool) -> io::Result<()> {
        self.settle().await?;
        if keep && !self.batch.is_empty() {
            self.flush().await?;
            self.settle().await?;
        }
        Ok(())
    }

    /// The writer, after [`Self::finish`]. It is gone where a thread panicked.
    pub(crate) fn into_writer(self) -> Option<Writer> {
        self.writer
    }

    /// The offset up to which bytes are written, after [`Self::finish`].
    pub(crate) fn position(&self) -> Option<u64> {
        self.writer.as_ref().map(|writer| writer.position)
    }

    /// Starts a sync of what is written, if it is time and none runs. The offset is recorded after it, unless the bytes
    /// still have to be verified.
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

    /// The offset up to which a checkpoint has synced the bytes, if it has ended; waits for it if `wait` is set.
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
