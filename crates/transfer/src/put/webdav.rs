//! The upload by PUT requests.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use url::Url;

use super::upload::{Transfer, counter};
use super::{PutError, target};
use crate::tus::{Algorithm, Hasher};

/// The name at the server where neither file nor URL has one.
const NO_NAME: &str = "upload";

fn url(transfer: &Transfer<'_>) -> Url {
    let name = transfer.source.name.as_deref().unwrap_or(NO_NAME);
    target::of_file(&transfer.config.url, name)
}

/// Sends the file by one request, again from its begin after each interruption.
pub(super) async fn whole(transfer: &mut Transfer<'_>) -> Result<(), PutError> {
    let url = url(transfer);
    transfer.report.location = target::shown(&url);
    let to = transfer.source.len;
    loop {
        transfer.next_piece(0).await?;
        match put(transfer, &url, (0, to), Vec::new()).await {
            Ok(()) => break,
            Err(error) => {
                transfer.failed(error).await?;
                transfer.report.resumes += 1;
            }
        }
    }
    transfer.advanced(to);
    read_back(transfer, &url).await
}

/// Sends the file in pieces with `Content-Range`, and continues after what the server has.
pub(super) async fn in_ranges(transfer: &mut Transfer<'_>) -> Result<(), PutError> {
    let url = url(transfer);
    transfer.report.location = target::shown(&url);
    let len = transfer.source.len;
    if len == 0 {
        return whole(transfer).await;
    }
    // Only what this upload has sent counts, because a file of this name may be there already.
    let continues = transfer.state.location().as_ref() == Some(&url);
    transfer.report.resumes = u64::from(continues);
    let mut offset = if continues { None } else { Some(0) };
    transfer.state.keep(Some(&url));
    loop {
        let step = match offset {
            None => length(transfer, &url).await,
            Some(from) if from >= len => break,
            Some(from) => {
                let to = transfer.next_piece(from).await?;
                let mut headers = Vec::new();
                // The first piece is a file of its own, so that the rest of an older one does not stay.
                if from > 0 {
                    headers.push((CONTENT_RANGE, format!("bytes {from}-{}/{len}", to - 1)));
                }
                put(transfer, &url, (from, to), headers).await.map(|()| to)
            }
        };
        match step {
            Ok(has) if has > len => return Err(PutError::Answer("has more bytes than the file")),
            Ok(has) => {
                transfer.advanced(has);
                offset = Some(has);
            }
            Err(PutError::Refused { status: 400 | 405 | 411 | 416 | 501, .. }) => {
                tracing::info!("the server takes no parts: the file is sent whole");
                "put".clone_into(&mut transfer.report.protocol);
                return whole(transfer).await;
            }
            Err(error) => {
                transfer.failed(error).await?;
                transfer.report.resumes += 1;
                offset = None;
            }
        }
    }
    read_back(transfer, &url).await
}

async fn put(
    transfer: &mut Transfer<'_>,
    url: &Url,
    (from, to): (u64, u64),
    headers: Vec<(http::HeaderName, String)>,
) -> Result<(), PutError> {
    let sent = counter();
    let body = transfer.source.body(from, to, sent.clone());
    let client = transfer.client.clone();
    let give = client.give(Method::PUT, url, &headers, body);
    let answer = transfer.sending((from, to), &sent, give).await?;
    if !(200..300).contains(&answer.status) {
        return Err(answer.refused("take the file"));
    }
    transfer.report.pieces += 1;
    Ok(())
}

/// The length of the file at the server; zero where there is none.
async fn length(transfer: &Transfer<'_>, url: &Url) -> Result<u64, PutError> {
    let answer = transfer.client.ask(Method::HEAD, url, &[]).await?;
    match answer.status {
        404 => Ok(0),
        200..300 => answer.number(&CONTENT_LENGTH).ok_or(PutError::Answer("has no Content-Length")),
        _ => Err(answer.refused("tell the file's length")),
    }
}

/// Reads the file back and compares it with the source. Where the server does not give it, the upload is not
/// verified.
async fn read_back(transfer: &mut Transfer<'_>, url: &Url) -> Result<(), PutError> {
    if !transfer.config.verify {
        return Ok(());
    }
    let answer = transfer.client.send(Method::GET, url, &[], Empty::<Bytes>::new()).await;
    let Ok(answer) = answer else { return Ok(()) };
    if answer.status() != StatusCode::OK {
        return Ok(());
    }
    let mut body = answer.into_body();
    let mut hasher = Hasher::new(Algorithm::Sha256);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Ok(()) };
        if let Some(data) = frame.data_ref() {
            hasher.update(data);
        }
    }
    let own = transfer.source.checksum(Algorithm::Sha256, 0, transfer.source.len)?;
    if hasher.finish() != own {
        return Err(PutError::Differs);
    }
    transfer.report.verified = Some("read back".to_owned());
    Ok(())
}
