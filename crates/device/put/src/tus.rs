//! The upload over tus 1.0.0: creation, offsets, checksums, and the comparison at the end.

use http::Method;
use http::header::{CONTENT_TYPE, LOCATION};
use url::Url;

use super::answers::{Asked, Meaning};
use super::http::{HttpAnswer, Query};
use super::transfer::PutTransfer;
use super::{PutError, target, verify};
use wakeai_tus::{
    Algorithm, CHECKSUM_MISMATCH, Extension, Hasher, Metadata, OFFSET_OCTET_STREAM,
    TUS_CHECKSUM_ALGORITHM, TUS_EXTENSION, TUS_MAX_SIZE, TUS_RESUMABLE, TUS_VERSION,
    UPLOAD_CHECKSUM, UPLOAD_LENGTH, UPLOAD_METADATA, UPLOAD_OFFSET, VERSION, WAKEAI_NAME,
    read_list,
};

/// A request of the protocol, which names its version (tus, `Tus-Resumable`).
fn query(asked: Asked, method: Method, url: &Url) -> Query<'_> {
    Query::new(asked, method, url).with(TUS_RESUMABLE, VERSION)
}

/// What a server says of itself.
#[derive(Clone, Copy, Debug, Default)]
struct TusServer {
    /// The best checksum algorithm that the server announces. SHA-256 comes before SHA-1.
    algorithm: Option<Algorithm>,
    terminates: bool,
}

impl TusServer {
    /// What an answer to OPTIONS says. The upload has `bytes`.
    ///
    /// # Errors
    ///
    /// The server has another version of the protocol, or a limit below `bytes`.
    fn read(answer: &HttpAnswer, bytes: u64) -> Result<Self, PutError> {
        let versions = answer.get(&TUS_VERSION).unwrap_or(VERSION);
        if !versions.split(',').any(|version| version.trim() == VERSION) {
            return Err(PutError::Answer(
                "names no version of tus that this program knows, which is 1.0.0",
            ));
        }
        if let Some(most) = answer.number(&TUS_MAX_SIZE).filter(|most| *most < bytes) {
            return Err(PutError::TooLarge { most, bytes });
        }
        let has: Vec<Extension> = read_list(answer.get(&TUS_EXTENSION).unwrap_or_default());
        let known: Vec<_> = read_list(answer.get(&TUS_CHECKSUM_ALGORITHM).unwrap_or("sha1"));
        let best = [Algorithm::Sha256, Algorithm::Sha1].into_iter().find(|it| known.contains(it));
        Ok(Self {
            algorithm: best.filter(|_| has.contains(&Extension::Checksum)),
            terminates: has.contains(&Extension::Termination),
        })
    }
}

/// Where an upload is.
struct At {
    location: Url,
    /// `None` if the server has to be asked.
    offset: Option<u64>,
}

/// Creates the upload, or finds the upload of an earlier process. Sends the bytes that the server does not have.
/// `options` is the server's answer to OPTIONS.
pub(super) async fn upload(
    transfer: &mut PutTransfer<'_>,
    options: &HttpAnswer,
) -> Result<(), PutError> {
    let server = TusServer::read(options, transfer.source.len)?;
    let mut at = earlier(transfer, server).await?;
    let mut restarted = false;
    loop {
        let Some(At { location, offset }) = &mut at else {
            at = begin(transfer).await?;
            continue;
        };
        transfer.report.location = target::shown(location);
        let to = match *offset {
            Some(from) if from >= transfer.source.len => break,
            Some(from) => transfer.next_piece(from).await?,
            None => 0,
        };
        let step = match *offset {
            None => ask(transfer, location).await.map(Some),
            Some(from) => send(transfer, location, (from, to), server.algorithm).await,
        };
        match step {
            Ok(Some(has)) if offset.is_none() && has > transfer.trusted => {
                tracing::warn!(
                    "the server has bytes that are not of this file: the upload begins anew"
                );
                forget(transfer, location, server).await;
                at = None;
            }
            Ok(Some(has)) => {
                if offset.is_none_or(|before| has > before) {
                    transfer.advanced(has);
                }
                *offset = Some(has);
            }
            Ok(None) => *offset = None,
            Err(error) => match error.meaning() {
                // The server has removed the upload, for example because it had expired.
                Meaning::Anew if !restarted => {
                    tracing::info!("the server no longer has the upload: it begins anew");
                    (at, restarted) = (None, true);
                    transfer.state.keep(None);
                }
                Meaning::Smaller => {
                    let from = offset.unwrap_or_default();
                    transfer.smaller(to - from, error)?;
                    *offset = None;
                }
                _ => {
                    transfer.failed(error).await?;
                    *offset = None;
                }
            },
        }
    }
    let Some(At { location, .. }) = at else { return Ok(()) };
    verify(transfer, &location, server).await
}

/// Creates an upload; `None` where it is to be tried again.
async fn begin(transfer: &mut PutTransfer<'_>) -> Result<Option<At>, PutError> {
    match create(transfer).await {
        Ok(location) => {
            transfer.state.keep(Some(&location));
            Ok(Some(At { location, offset: Some(0) }))
        }
        Err(error) => transfer.failed(error).await.map(|()| None),
    }
}

/// The upload of an earlier process, if the source still is what was sent.
async fn earlier(
    transfer: &mut PutTransfer<'_>,
    server: TusServer,
) -> Result<Option<At>, PutError> {
    let Some(location) = transfer.state.location() else { return Ok(None) };
    if !transfer.continues().await? {
        forget(transfer, &location, server).await;
        return Ok(None);
    }
    transfer.report.resumes = 1;
    Ok(Some(At { location, offset: None }))
}

/// Ends an upload that is of no use any more. Otherwise the server keeps it until it expires.
async fn forget(transfer: &mut PutTransfer<'_>, location: &Url, server: TusServer) {
    transfer.state.keep(None);
    transfer.trusted = u64::MAX;
    if !server.terminates {
        return;
    }
    if let Err(error) = transfer.client.ask(&query(Asked::Offset, Method::DELETE, location)).await {
        tracing::debug!(%error, "the server keeps the upload until it expires");
    }
}

async fn create(transfer: &PutTransfer<'_>) -> Result<Url, PutError> {
    let mut query = query(Asked::Create, Method::POST, &transfer.config.url)
        .with(UPLOAD_LENGTH, transfer.source.len.to_string());
    if let Some(name) = &transfer.source.name {
        let mut metadata = Metadata::default();
        metadata.insert("filename", name).expect("the key is ASCII");
        query = query.with(UPLOAD_METADATA, metadata.to_string());
    }
    let answer = transfer.client.ask(&query).await?.done()?;
    let location = answer.get(&LOCATION).ok_or(PutError::Answer("names no Location"))?;
    target::follow(&transfer.config.url, location)
}

fn offset_of(answer: &HttpAnswer) -> Result<u64, PutError> {
    answer.number(&UPLOAD_OFFSET).ok_or(PutError::Answer("has no Upload-Offset"))
}

/// The offset of an upload. An upload of another length is not this one.
async fn ask(transfer: &mut PutTransfer<'_>, location: &Url) -> Result<u64, PutError> {
    let query = query(Asked::Offset, Method::HEAD, location);
    let answer = transfer.client.ask(&query).await?.done()?;
    let len = transfer.source.len;
    if answer.number(&UPLOAD_LENGTH).is_some_and(|length| length != len) {
        return Err(PutError::Answer("names another Upload-Length than that of the file"));
    }
    let has = offset_of(&answer)?;
    if has > len {
        return Err(PutError::Answer("says that it has more bytes than the file"));
    }
    keep_name(transfer, &answer);
    Ok(has)
}

/// Sends the bytes from `from` up to `to`. Returns the offset after them, or `None` if the piece was cut because the turn
/// had ended.
async fn send(
    transfer: &mut PutTransfer<'_>,
    location: &Url,
    (from, to): (u64, u64),
    algorithm: Option<Algorithm>,
) -> Result<Option<u64>, PutError> {
    let mut query = query(Asked::Piece, Method::PATCH, location)
        .with(CONTENT_TYPE, OFFSET_OCTET_STREAM)
        .with(UPLOAD_OFFSET, from.to_string());
    if let Some(algorithm) = algorithm {
        let checksum = transfer.source.checksum(algorithm, from, to).await?;
        query = query.with(UPLOAD_CHECKSUM, checksum.to_string());
    }
    let Some((answer, _)) = transfer.send(&query, (from, to)).await? else { return Ok(None) };
    let answer = answer.done()?;
    let has = offset_of(&answer)?;
    if has > to {
        return Err(PutError::Answer("says that it has more bytes than were sent"));
    }
    if has <= from {
        // Otherwise the same piece would be sent again and again, without a pause.
        return Err(PutError::Connection(
            "the server took a piece, but its offset stays".to_owned(),
        ));
    }
    transfer.report.pieces += 1;
    keep_name(transfer, &answer);
    Ok(Some(has))
}

/// Keeps the name that the server gave the file.
fn keep_name(transfer: &mut PutTransfer<'_>, answer: &HttpAnswer) {
    if let Some(name) = answer.get(&WAKEAI_NAME) {
        let name = target::last_segment(name);
        transfer.report.stored_as = Some(String::from_utf8_lossy(&name).into_owned());
    }
}

/// Compares the upload with the source: by a digest that the server sends, by the checksums of all pieces, or by
/// reading the file back. tus does not define how to read an upload, but servers allow it.
async fn verify(
    transfer: &mut PutTransfer<'_>,
    location: &Url,
    server: TusServer,
) -> Result<(), PutError> {
    let query = query(Asked::ReadBack, Method::HEAD, location);
    if !transfer.config.verify || verify::by_digest(transfer, query).await? {
        return Ok(());
    }
    if let Some(algorithm) = server.algorithm {
        if compares_checksums(transfer, location, algorithm).await? {
            return verify::by_checksums(transfer).await;
        }
        tracing::warn!("the server announces checksums, but does not compare them");
    }
    match verify::by_reading_back(transfer, location).await {
        // The URL of an upload need not be that of its file.
        Err(PutError::Missing(_)) => {
            transfer.report.unverified = Some("the server does not give uploads back".to_owned());
            Ok(())
        }
        compared => compared,
    }
}

/// Whether the server refuses a checksum that is wrong. It is sent with no bytes, so it changes nothing.
async fn compares_checksums(
    transfer: &mut PutTransfer<'_>,
    location: &Url,
    algorithm: Algorithm,
) -> Result<bool, PutError> {
    let mut hasher = Hasher::new(algorithm);
    hasher.update(b"not the empty string");
    let query = query(Asked::Piece, Method::PATCH, location)
        .with(CONTENT_TYPE, OFFSET_OCTET_STREAM)
        .with(UPLOAD_OFFSET, transfer.source.len.to_string())
        .with(UPLOAD_CHECKSUM, hasher.finish().to_string());
    Ok(transfer.ask(&query).await?.status == CHECKSUM_MISMATCH)
}
