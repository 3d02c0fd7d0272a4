//! Completes an upload: gives its file the final name.

use super::files::Finished;
use super::journal::UploadProgress;
use super::name::wanted;
use super::refusal::Refusal;
use super::server::UploadServer;
use super::store::{StoreEntry, StoredState};

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
    let Finished { info, refused } = done.await?;
    if let Some((name, errno)) = refused {
        tracing::warn!(%id, name, error = errno.desc(), kept_as = info.name, "the file system refuses the name");
    }
    state.is_finished = true;
    server.store.accounts.finish(&entry.client, state.booked);
    server.counters.completed.one();
    Ok(Some(info.name))
}
