//! Completes an upload: gives its file the final name.

use crate::tus::Metadata;

use super::name::safe;
use super::refusal::Refusal;
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
    let done = server.store.blocking(move |files| {
        let info = files.read_info(id)?;
        let metadata: Metadata = info.metadata.parse().unwrap_or_default();
        let told = metadata.get("filename").or_else(|| metadata.get("name"));
        let wanted = safe(told, &format!("upload-{id}"));
        files.finish(id, info, &wanted)
    });
    let info = done.await?;
    state.is_finished = true;
    server.store.accounts.finish(&entry.client, state.booked);
    server.counters.completed.one();
    Ok(info.name)
}
