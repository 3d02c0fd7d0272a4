//! The upload over tus 1.0.0.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderName, Method};
use url::Url;

use super::http::Answer;
use super::transfer::Transfer;
use super::{PutError, target, verify};
use crate::tus::{
    Algorithm, Extension, Metadata, OFFSET_OCTET_STREAM, TUS_CHECKSUM_ALGORITHM, TUS_EXTENSION,
    TUS_RESUMABLE, UPLOAD_CHECKSUM, UPLOAD_LENGTH, UPLOAD_METADATA, UPLOAD_OFFSET, VERSION,
};

fn version() -> (HeaderName, String) {
    (TUS_RESUMABLE, VERSION.to_owned())
}

/// Creates the upload, or finds the upload of an earlier process. Sends the bytes that the server does not have.
pub(super) async fn upload(transfer: &mut Transfer<'_>) -> Result<(), PutError> {
    let algorithm = checksum_algorithm(transfer).await?;
    let mut location = transfer.state.location();
    let mut restarted = false;
    // `None` if the server has to be asked for its offset.
    let mut offset = None;
    transfer.report.resumes = u64::from(location.is_some());
    loop {
        let Some(at) = location.clone() else {
            match create(transfer).await {
                Ok(created) => {
                    transfer.state.keep(Some(&created));
                    (location, offset) = (Some(created), Some(0));
                }
                Err(error) => transfer.failed(error).await?,
            }
            continue;
        };
        transfer.report.location = target::shown(&at);
        let step = match offset {
            None => ask(transfer, &at).await.map(Some),
            Some(from) if from >= transfer.source.len => break,
            Some(from) => send(transfer, &at, from, algorithm).await,
        };
        match step {
            Ok(None) => offset = None,
            Ok(Some(has)) if has > transfer.source.len => {
                return Err(PutError::Answer("says that it has more bytes than the file"));
            }
            Ok(Some(has)) => {
                if offset.is_none_or(|before| has > before) {
                    transfer.advanced(has);
                }
                offset = Some(has);
            }
            // The server has removed the upload, for example because it had expired.
            Err(PutError::Refused { status: 403 | 404 | 410, .. }) if !restarted => {
                tracing::info!("the server no longer has the upload: it begins anew");
                (location, offset, restarted) = (None, None, true);
                transfer.state.keep(None);
            }
            Err(error) => {
                transfer.failed(error).await?;
                offset = None;
            }
        }
    }
    let Some(location) = location else { return Ok(()) };
    verify(transfer, &location, algorithm).await
}

/// The best checksum algorithm that the server announces. SHA-256 comes before SHA-1.
async fn checksum_algorithm(transfer: &mut Transfer<'_>) -> Result<Option<Algorithm>, PutError> {
    let answer = loop {
        match transfer.client.ask(Method::OPTIONS, &transfer.config.url, &[version()]).await {
            Ok(answer) => break answer,
            Err(error) => transfer.failed(error).await?,
        }
    };
    let has = Extension::read_list(answer.get(&TUS_EXTENSION).unwrap_or_default());
    if !has.contains(&Extension::Checksum) {
        return Ok(None);
    }
    let known = Algorithm::read_list(answer.get(&TUS_CHECKSUM_ALGORITHM).unwrap_or("sha1"));
    let best = [Algorithm::Sha256, Algorithm::Sha1].into_iter().find(|best| known.contains(best));
    Ok(best)
}

async fn create(transfer: &Transfer<'_>) -> Result<Url, PutError> {
    let mut headers = vec![version(), (UPLOAD_LENGTH, transfer.source.len.to_string())];
    if let Some(name) = &transfer.source.name {
        let mut metadata = Metadata::default();
        metadata.insert("filename", name.as_bytes()).expect("the key is ASCII");
        headers.push((UPLOAD_METADATA, metadata.to_string()));
    }
    let answer = transfer.client.ask(Method::POST, &transfer.config.url, &headers).await?;
    if answer.status != 201 {
        return Err(answer.refused("create the upload"));
    }
    let location = answer.get(&LOCATION).ok_or(PutError::Answer("names no Location"))?;
    target::follow(&transfer.config.url, location)
}

fn offset_of(answer: &Answer) -> Result<u64, PutError> {
    answer.number(&UPLOAD_OFFSET).ok_or(PutError::Answer("has no Upload-Offset"))
}

async fn ask(transfer: &Transfer<'_>, location: &Url) -> Result<u64, PutError> {
    let answer = transfer.client.ask(Method::HEAD, location, &[version()]).await?;
    if !(200..300).contains(&answer.status) {
        return Err(answer.refused("tell the offset"));
    }
    offset_of(&answer)
}

/// Sends a piece. Returns the offset after it, or `None` if the piece was cut because the turn had ended.
async fn send(
    transfer: &mut Transfer<'_>,
    location: &Url,
    from: u64,
    algorithm: Option<Algorithm>,
) -> Result<Option<u64>, PutError> {
    let to = transfer.next_piece(from).await?;
    let mut headers = vec![
        version(),
        (CONTENT_TYPE, OFFSET_OCTET_STREAM.to_owned()),
        (UPLOAD_OFFSET, from.to_string()),
    ];
    if let Some(algorithm) = algorithm {
        let checksum = transfer.source.checksum(algorithm, from, to)?;
        headers.push((UPLOAD_CHECKSUM, checksum.to_string()));
    }
    let sent = Arc::new(AtomicU64::new(0));
    let body = transfer.source.body(from, to, sent.clone());
    let client = transfer.client.clone();
    let give = client.give(Method::PATCH, location, &headers, body);
    let Some(answer) = transfer.sending((from, to), &sent, give).await? else { return Ok(None) };
    if answer.status != 204 && answer.status != 200 {
        return Err(answer.refused("take a piece"));
    }
    transfer.report.pieces += 1;
    offset_of(&answer).map(Some)
}

/// Compares the upload with the source: by a digest that the server sends, by the checksums of all pieces, or by
/// reading the file back. tus does not define how to read an upload, but servers allow it.
async fn verify(
    transfer: &mut Transfer<'_>,
    location: &Url,
    algorithm: Option<Algorithm>,
) -> Result<(), PutError> {
    if !transfer.config.verify || verify::by_digest(transfer, location, &[version()]).await? {
        return Ok(());
    }
    if algorithm.is_some() {
        transfer.report.verified = Some("checksums");
        return Ok(());
    }
    verify::by_reading_back(transfer, location).await
}
