//! Compares the file at the server with the source.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Method, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use tokio::time::timeout;
use url::Url;

use super::PutError;
use super::transfer::Transfer;
use crate::tus::{Algorithm, Checksum, Hasher};

/// The digest of a representation (RFC 9530, section 3).
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
/// The request for such a digest (RFC 9530, section 4).
const WANT_REPR_DIGEST: HeaderName = HeaderName::from_static("want-repr-digest");
/// The longest wait for the next part of the file.
const SILENCE: Duration = Duration::from_mins(1);

/// Asks for the digest of the file at `url` and compares it with the source's. Returns whether the server sent a
/// digest.
///
/// # Errors
///
/// [`PutError::Differs`], and errors that do not pass with further attempts.
pub(super) async fn by_digest(
    transfer: &mut Transfer<'_>,
    url: &Url,
    headers: &[(HeaderName, String)],
) -> Result<bool, PutError> {
    let headers = [headers, &[(WANT_REPR_DIGEST, "sha-256=1".to_owned())]].concat();
    let answer = loop {
        match transfer.client.ask(Method::HEAD, url, &headers).await {
            Ok(answer) => break answer,
            Err(error) => transfer.failed(error).await?,
        }
    };
    let digest = answer.get(&REPR_DIGEST).and_then(|text| text.strip_prefix("sha-256=:"));
    let Some(digest) = digest.and_then(|rest| rest.strip_suffix(':')) else { return Ok(false) };
    if own(transfer)?.to_string() != format!("{} {digest}", Algorithm::Sha256.name()) {
        return Err(PutError::Differs);
    }
    transfer.report.verified = Some("digest");
    Ok(true)
}

/// Reads the file at `url` back and compares it with the source. If the server does not return the file, there is no
/// comparison.
///
/// # Errors
///
/// [`PutError::Differs`], and errors that do not pass with further attempts.
pub(super) async fn by_reading_back(
    transfer: &mut Transfer<'_>,
    url: &Url,
) -> Result<(), PutError> {
    if !transfer.config.verify {
        return Ok(());
    }
    let found = loop {
        match read(transfer, url).await {
            Ok(found) => break found,
            Err(error) => transfer.failed(error).await?,
        }
    };
    let Some(found) = found else { return Ok(()) };
    if found != own(transfer)? {
        return Err(PutError::Differs);
    }
    transfer.report.verified = Some("read back");
    Ok(())
}

fn own(transfer: &Transfer<'_>) -> Result<Checksum, PutError> {
    transfer.source.checksum(Algorithm::Sha256, 0, transfer.source.len)
}

/// The checksum of the file at `url`. It is `None` if the server does not return the file.
async fn read(transfer: &Transfer<'_>, url: &Url) -> Result<Option<Checksum>, PutError> {
    let silent = |_| PutError::Connection("the server was silent for 1 minute".to_owned());
    let asked = transfer.client.send(Method::GET, url, &[], Empty::<Bytes>::new());
    let answer = timeout(SILENCE, asked).await.map_err(silent)??;
    if answer.status() != StatusCode::OK {
        return Ok(None);
    }
    let mut body = answer.into_body();
    let mut hasher = Hasher::new(Algorithm::Sha256);
    while let Some(frame) = timeout(SILENCE, body.frame()).await.map_err(silent)? {
        let frame = frame.map_err(|error| PutError::Connection(error.to_string()))?;
        if let Some(data) = frame.data_ref() {
            hasher.update(data);
        }
    }
    Ok(Some(hasher.finish()))
}
