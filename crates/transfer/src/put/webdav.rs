//! The upload by PUT requests.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use http::Method;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use url::Url;

use super::transfer::Transfer;
use super::{Protocol, PutError, target, verify};

/// The name at the server if neither the file nor the URL has one.
const NO_NAME: &str = "upload";

fn url(transfer: &Transfer<'_>) -> Url {
    let name = transfer.source.name.as_deref().unwrap_or(NO_NAME);
    target::of_file(&transfer.config.url, name)
}

/// Sends the file in one request. After each interruption it starts again from the beginning.
pub(super) async fn whole(transfer: &mut Transfer<'_>) -> Result<(), PutError> {
    let url = url(transfer);
    transfer.report.location = target::shown(&url);
    let to = transfer.source.len;
    loop {
        transfer.next_piece(0).await?;
        match put(transfer, &url, (0, to), Vec::new()).await {
            Ok(_) => break,
            Err(error) => transfer.failed(error).await?,
        }
    }
    transfer.advanced(to);
    verify::by_reading_back(transfer, &url).await
}

/// Sends the file in pieces with `Content-Range`. After an interruption it continues behind the bytes that the server
/// has.
pub(super) async fn in_ranges(transfer: &mut Transfer<'_>) -> Result<(), PutError> {
    let url = url(transfer);
    transfer.report.location = target::shown(&url);
    let len = transfer.source.len;
    if len == 0 {
        return whole(transfer).await;
    }
    // The server may still have an older file of this name. The first piece replaces it.
    let mut replaced = transfer.state.location().as_ref() == Some(&url);
    transfer.report.resumes = u64::from(replaced);
    // `None` if the server has to be asked for its offset.
    let mut offset = if replaced { None } else { Some(0) };
    loop {
        let step = match offset {
            None => length(transfer, &url).await.map(Some),
            Some(from) if from >= len => break,
            Some(from) => {
                let to = transfer.next_piece(from).await?;
                let mut headers = Vec::new();
                // The first piece is sent as a whole file, so that no bytes of an older file remain.
                if from > 0 {
                    headers.push((CONTENT_RANGE, format!("bytes {from}-{}/{len}", to - 1)));
                }
                put(transfer, &url, (from, to), headers).await
            }
        };
        match step {
            Ok(Some(has)) if has > len => {
                return Err(PutError::Answer("says that it has more bytes than the file"));
            }
            Ok(Some(has)) => {
                if !replaced {
                    transfer.state.keep(Some(&url));
                    replaced = true;
                }
                transfer.advanced(has);
                offset = Some(has);
            }
            Ok(None) => offset = if replaced { None } else { Some(0) },
            Err(PutError::Refused { status: 400 | 405 | 411 | 416 | 501, .. }) => {
                tracing::info!("the server takes no parts: the file is sent whole");
                transfer.report.protocol = Protocol::Put;
                transfer.state.remove();
                return whole(transfer).await;
            }
            Err(error) => {
                transfer.failed(error).await?;
                offset = if replaced { None } else { Some(0) };
            }
        }
    }
    verify::by_reading_back(transfer, &url).await
}

/// Sends the bytes from `from` up to `to`. Returns `to`, or `None` if the request was cut because the turn had ended.
async fn put(
    transfer: &mut Transfer<'_>,
    url: &Url,
    (from, to): (u64, u64),
    headers: Vec<(http::HeaderName, String)>,
) -> Result<Option<u64>, PutError> {
    let sent = Arc::new(AtomicU64::new(0));
    let body = transfer.source.body(from, to, sent.clone());
    let client = transfer.client.clone();
    let give = client.give(Method::PUT, url, &headers, body);
    let Some(answer) = transfer.sending((from, to), &sent, give).await? else { return Ok(None) };
    if !(200..300).contains(&answer.status) {
        return Err(answer.refused("take the file"));
    }
    transfer.report.pieces += 1;
    Ok(Some(to))
}

/// The length of the file at the server. It is zero if the server has no such file.
async fn length(transfer: &Transfer<'_>, url: &Url) -> Result<u64, PutError> {
    let answer = transfer.client.ask(Method::HEAD, url, &[]).await?;
    match answer.status {
        404 => Ok(0),
        200..300 => answer.number(&CONTENT_LENGTH).ok_or(PutError::Answer("has no Content-Length")),
        _ => Err(answer.refused("tell the file's length")),
    }
}
