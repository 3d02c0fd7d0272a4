//! Receives the body of a PATCH, or of a POST that carries the first bytes, and completes an upload.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use hyper::body::{Body, Bytes};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use wakeai_tus::{Checksum, Hasher};

use super::block::Block;
use super::data::Data;
use super::journal::UploadProgress;
use super::name::wanted;
use super::refusal::Refusal;
use super::request::Append;
use super::server::UploadServer;
use super::store::{Held, StoreEntry, StoredState, refusal};
use super::transfer::BodyTransfer;
use super::upload::End;
use super::writer::Writer;

/// The state of an upload after one request.
#[derive(Debug)]
pub(crate) struct Appended {
    /// The offset after the request.
    pub(crate) offset: u64,
    /// The time at which the upload expires, in seconds since 1970.
    pub(crate) expires: u64,
    /// The name of the file, if the upload is complete.
    pub(crate) name: Option<String>,
    /// Why the request did not succeed, or not to its end.
    pub(crate) refused: Option<Refusal>,
}

/// Appends a body to an upload. When this returns, the bytes of the body that count are on disk.
///
/// # Errors
///
/// The request did not get hold of the upload.
pub(crate) async fn append<B>(
    server: &Rc<UploadServer>,
    entry: &StoreEntry,
    request: &Append,
    body: B,
) -> Result<Appended, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let Held { mut state, mut newer } = entry.hold().await?;
    server.store.check_alive(&state)?;
    let before = state.upload.offset();
    let received = receive(server, entry, &mut state, request, &mut newer, body).await;
    server.counters.bytes_acknowledged.add(state.upload.offset() - before);
    let mut appended = Appended {
        offset: state.upload.offset(),
        expires: server.store.expires(&state),
        name: None,
        refused: received.err(),
    };
    if appended.refused.is_none() && state.upload.is_complete() {
        match finish(server, entry, &mut state).await {
            Ok(name) => appended.name = name,
            Err(refused) => appended.refused = Some(refused),
        }
    }
    Ok(appended)
}

/// Moves a complete upload's file into the directory. Returns its name, or `None` if it was moved earlier.
pub(crate) async fn finish(
    server: &UploadServer,
    entry: &StoreEntry,
    state: &mut StoredState,
) -> Result<Option<String>, Refusal> {
    if state.is_finished {
        return Ok(None);
    }
    let id = entry.id;
    let progress = UploadProgress { offset: state.upload.offset(), active_ms: state.active_ms };
    let is_kept = state.is_kept;
    let done = server.store.blocking(move |files| {
        // The state of an upload of no bytes, or of one that was read at the start, may not be on disk yet.
        if !is_kept {
            files.keep(id, progress, false)?;
        }
        let info = files.journal.info(id)?;
        let metadata = info.metadata.parse().unwrap_or_default();
        files.finish(id, info, progress, &wanted(id, &metadata))
    });
    let name = done.await?;
    state.is_finished = true;
    server.store.accounts.finish(&entry.client, state.booked);
    server.counters.completed.one();
    Ok(Some(name))
}

async fn receive<B>(
    server: &Rc<UploadServer>,
    entry: &StoreEntry,
    state: &mut StoredState,
    request: &Append,
    newer: &mut watch::Receiver<u64>,
    body: B,
) -> Result<(), Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let before = state.upload.clone();
    state.upload.handle_append(request, server.store.max_size)?;
    if state.is_finished {
        state.upload.handle_end(End::Refused);
        return if request.size == Some(0) { Ok(()) } else { Err(Refusal::BeyondLength) };
    }
    let prepared = prepare(server, entry, state, request, before.length().is_some()).await;
    // The length that the request states counts only once it is on disk.
    let mut writer = prepared.inspect_err(|_| state.upload = before)?;
    let handled = state.upload.offset();
    let mut transfer = BodyTransfer { server, entry, state, newer, writer: &mut writer, handled };
    let mut outcome = transfer.run(body).await;
    if let Err(error) = transfer.end_writing().await {
        outcome = Err(refusal(&error));
    }
    let end = match end(&mut outcome, request.checksum.as_ref(), writer.hasher.take()) {
        _ if writer.is_lost => End::Refused,
        end => end,
    };
    let active_ms = server.store.now_ms();
    settle(state, writer, end, active_ms).await.and(outcome)
}

/// Books the bytes in the accounts, writes the length if this request is the first to state it, and opens the files.
async fn prepare(
    server: &UploadServer,
    entry: &StoreEntry,
    state: &mut StoredState,
    request: &Append,
    knew_length: bool,
) -> Result<Writer, Refusal> {
    let (id, offset, length) = (entry.id, state.upload.offset(), state.upload.length());
    let upto = length.or(request.size.map(|size| offset.saturating_add(size)));
    server.store.book(&entry.client, state, upto.unwrap_or(offset)).await?;
    let progress = UploadProgress { offset, active_ms: state.active_ms };
    let (open, most) = (*server.open.borrow(), state.upload.room(server.store.max_size));
    let tells_length = !knew_length && length.is_some();
    let opened = server.store.blocking(move |files| {
        if tells_length {
            let mut info = files.journal.info(id)?;
            info.length = length;
            files.journal.put(id, &info, progress)?;
            files.journal.sync()?;
        }
        // After an error, the journal may be ahead of what is acknowledged, and of what will be on disk.
        if files.journal.progress_of(id).is_some_and(|known| known.offset != offset) {
            files.journal.progress(id, progress)?;
            files.journal.sync()?;
        }
        files.open_data(id, offset)
    });
    let hasher = request.checksum.as_ref().map(|checksum| Hasher::new(checksum.algorithm));
    let data = Data::new(opened.await?);
    let blocks = Block::some(open, most, offset);
    let directory = Arc::clone(&server.store.files);
    Ok(Writer::new(directory, id, data, state.is_kept, offset, blocks, hasher))
}

/// Determines how the body ended. A checksum that does not match becomes a refusal.
fn end(
    outcome: &mut Result<(), Refusal>,
    expected: Option<&Checksum>,
    body: Option<Hasher>,
) -> End {
    match outcome {
        Ok(()) => {
            let matches = body.map(Hasher::finish).as_ref() == expected;
            if !matches {
                *outcome = Err(Refusal::Checksum);
            }
            End::Complete { matches }
        }
        Err(
            Refusal::BeyondLength
            | Refusal::TooLarge
            | Refusal::Quota
            | Refusal::Storage
            | Refusal::Unsupported(_),
        ) => End::Refused,
        Err(_) => End::Cut,
    }
}

/// Truncates the file to the bytes that count, and syncs them and their offset to the disk.
async fn settle(
    state: &mut StoredState,
    writer: Writer,
    end: End,
    active_ms: u64,
) -> Result<(), Refusal> {
    let mut after = state.upload.clone();
    let moved = after.handle_end(end);
    let progress = UploadProgress { offset: after.offset(), active_ms };
    let settle = move || {
        if moved { writer.settle(progress) } else { writer.discard(progress.offset) }
    };
    let settled = spawn_blocking(settle).await;
    match settled.map_err(io::Error::other).flatten() {
        Ok(()) => {
            state.upload = after;
            if moved {
                state.active_ms = active_ms;
                state.is_kept = true;
            }
            Ok(())
        }
        Err(error) => {
            // It is unknown whether the bytes are on disk. They do not count, and the next request truncates them.
            state.upload.handle_end(End::Refused);
            Err(refusal(&error))
        }
    }
}
