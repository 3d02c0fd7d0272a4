//! Moves the bytes of a body into the files.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use http::HeaderMap;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame};
use tokio::sync::watch;

use wakeai_tus as tus;

use super::refusal::Refusal;
use super::server::UploadServer;
use super::store::{StoreEntry, StoredState, refusal};
use super::writer::Writer;

/// A body on its way into the files.
pub(crate) struct BodyTransfer<'a> {
    pub(crate) server: &'a Rc<UploadServer>,
    pub(crate) entry: &'a StoreEntry,
    pub(crate) state: &'a mut StoredState,
    pub(crate) newer: &'a mut watch::Receiver<u64>,
    pub(crate) writer: &'a mut Writer,
    /// The offset up to which written bytes were reported to the upload's state.
    pub(crate) handled: u64,
}

/// The bytes of a frame. Trailers are ignored, but not a checksum, which the client would believe to be compared.
fn data(frame: Frame<Bytes>) -> Result<Bytes, Refusal> {
    let has_checksum = |trailers: &HeaderMap| trailers.contains_key(tus::UPLOAD_CHECKSUM);
    if frame.trailers_ref().is_some_and(has_checksum) {
        return Err(Refusal::Unsupported("a trailer Upload-Checksum"));
    }
    Ok(frame.into_data().unwrap_or_default())
}

impl BodyTransfer<'_> {
    /// Receives the whole body.
    pub(crate) async fn run<B: Body<Data = Bytes> + Unpin>(
        &mut self,
        mut body: B,
    ) -> Result<(), Refusal> {
        let server = Rc::clone(self.server);
        let mut stopping = server.stopping.subscribe();
        let patience: Duration = server.config.limits.body_timeout.into();
        let beyond = match self.state.upload.length() {
            Some(_) => Refusal::BeyondLength,
            None => Refusal::TooLarge,
        };
        let mut room = self.state.upload.room(server.store.max_size);
        let mut offset = self.handled;
        loop {
            let next = async {
                server.pace(&self.entry.client).await;
                tokio::time::timeout(patience, body.frame()).await
            };
            let frame = tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return Err(Refusal::Stopping),
                _ = self.newer.changed() => return Err(Refusal::TakenOver),
                frame = next => frame,
            };
            let bytes = match frame {
                Err(_) => return Err(Refusal::Stalled),
                Ok(None) => return Ok(()),
                Ok(Some(Err(_))) => return Err(Refusal::Cut),
                Ok(Some(Ok(frame))) => data(frame)?,
            };
            let count = bytes.len() as u64;
            server.received(&self.entry.client, count);
            room = room.checked_sub(count).ok_or(beyond)?;
            offset += count;
            if offset > self.state.booked {
                server.store.book(&self.entry.client, self.state, offset).await?;
            }
            self.writer.write(&bytes).await.map_err(|error| refusal(&error))?;
            let synced = self.writer.checkpoint().await;
            if let Some(upto) = synced.map_err(|error| refusal(&error))? {
                self.synced(upto);
            }
        }
    }

    fn synced(&mut self, upto: u64) {
        self.written(upto);
        if self.state.upload.handle_synced(upto).is_some() {
            self.state.active_ms = self.server.store.now_ms();
        }
    }

    fn written(&mut self, upto: u64) {
        self.state.upload.handle_written(upto.saturating_sub(self.handled));
        self.handled = self.handled.max(upto);
    }

    /// Writes what is left, and waits for the last checkpoint. After a disk error, bytes that were written before the error
    /// still count.
    pub(crate) async fn end_writing(&mut self) -> io::Result<()> {
        let flushed = self.writer.flush().await;
        let checkpoint = self.writer.end_checkpoint().await;
        if let Ok(Some(upto)) = checkpoint {
            self.synced(upto);
        }
        self.written(self.writer.position);
        checkpoint.and(flushed)
    }
}
