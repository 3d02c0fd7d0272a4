//! Completes an upload: gives its file the final name.

use std::sync::Arc;

use crate::tus::Metadata;

use super::name::safe;
use super::offsets::Offsets;
use super::record::Record;
use super::refusal::Refusal;
use super::request::Id;
use super::server::Server;
use super::store::{Entry, State};

/// Moves a complete upload's file into the directory. Returns its name, or `None` if it was moved earlier.
pub(crate) async fn finish(
    server: &Server,
    entry: &Entry,
    state: &mut State,
) -> Result<Option<String>, Refusal> {
    if state.is_finished {
        return Ok(None);
    }
    let id = entry.id;
    let record =
        Record { sequence: state.sequence + 1, offset: state.upload.offset(), at: state.at };
    let is_kept = state.is_kept;
    let directory = Arc::clone(&server.store.files);
    let done = server.store.blocking(move |files| {
        // The record of an upload of no bytes, or of one that was read at the start, may not be on disk yet.
        if !is_kept {
            Offsets::open(directory, id, false)?.keep(record)?;
        }
        let info = files.read_info(id)?;
        let metadata = info.metadata.parse().unwrap_or_default();
        files.finish(id, info, &wanted(id, &metadata))
    });
    let info = done.await?;
    state.is_finished = true;
    server.store.accounts.finish(&entry.client, state.booked);
    server.counters.completed.one();
    Ok(Some(info.name))
}

/// The name that an upload's file gets, unless another file has it.
pub(crate) fn wanted(id: Id, metadata: &Metadata) -> String {
    let told = metadata.get("filename").or_else(|| metadata.get("name"));
    safe(told, &format!("upload-{id}"))
}
