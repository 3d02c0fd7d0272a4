//! Compares the file at the server with the source.
//!
//! Each way says what was compared, and the source is read anew for it:
//!
//! - `digest`: the SHA-256 that the server states of the file, with the source's.
//! - `checksums`: the server compared the checksum of each piece with what it received. Whether it compares at all is
//!   tried out, and what was sent is compared with the source.
//! - `read back`: the file is fetched, and its SHA-256 is compared with the source's.

use std::time::Duration;

use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use tokio::time::timeout;
use url::Url;

use super::PutError;
use super::answers::{Asked, Meaning};
use super::http::{HttpAnswer, Query, broken};
use super::target::shown;
use super::transfer::PutTransfer;
use wakeai_tus::{Algorithm, Checksum, Hasher, REPR_DIGEST, WANT_REPR_DIGEST};

/// The longest wait for the next part of the file.
const SILENCE: Duration = Duration::from_mins(1);

/// Asks by `query` for the digest of the file and compares it with the source's. Returns whether the server sent a
/// digest.
///
/// # Errors
///
/// [`PutError::Differs`], and errors that do not pass with further attempts.
pub(super) async fn by_digest(
    transfer: &mut PutTransfer<'_>,
    query: Query<'_>,
) -> Result<bool, PutError> {
    let answer = transfer.ask(&query.with(WANT_REPR_DIGEST, "sha-256=1")).await?;
    let Some(digest) = sha256_of(&answer) else { return Ok(false) };
    if own(transfer).await?.to_string() != format!("{} {digest}", <&str>::from(Algorithm::Sha256)) {
        return Err(PutError::Differs);
    }
    transfer.report.verified = Some("digest");
    Ok(true)
}

/// The digest of an answer, in Base64.
fn sha256_of(answer: &HttpAnswer) -> Option<&str> {
    if answer.meaning() != Meaning::Done {
        return None;
    }
    sha256_in(answer.get(&REPR_DIGEST)?)
}

/// The SHA-256 among the digests of the field, which is a dictionary of byte sequences (RFC 9530, section 2).
fn sha256_in(digests: &str) -> Option<&str> {
    let members = digests.split(',').map(str::trim);
    let value = members.filter_map(|member| member.strip_prefix("sha-256=:")).next_back()?;
    value.split_once(':').map(|(digest, _)| digest)
}

/// Compares what was sent, piece by piece and with checksums, with the source as it is now.
pub(super) async fn by_checksums(transfer: &mut PutTransfer<'_>) -> Result<(), PutError> {
    let sent = transfer.source.prefix();
    let own = own(transfer).await?.to_string();
    if (sent.to, sent.sha256) != (transfer.source.len, own) {
        return Err(PutError::Changed);
    }
    transfer.report.verified = Some("checksums");
    Ok(())
}

/// Reads the file at `url` back and compares it with the source. If the server does not return the file, there is no
/// comparison, and the report says why.
///
/// # Errors
///
/// [`PutError::Differs`], [`PutError::Missing`], and errors that do not pass with further attempts.
pub(super) async fn by_reading_back(
    transfer: &mut PutTransfer<'_>,
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
    match found {
        Ok(checksum) if checksum != own(transfer).await? => return Err(PutError::Differs),
        Ok(_) => transfer.report.verified = Some("read back"),
        Err(reason) => transfer.report.unverified = Some(reason),
    }
    Ok(())
}

async fn own(transfer: &PutTransfer<'_>) -> Result<Checksum, PutError> {
    transfer.source.checksum(Algorithm::Sha256, 0, transfer.source.len).await
}

/// The checksum of the file at `url`, or the reason why it cannot be compared.
async fn read(transfer: &PutTransfer<'_>, url: &Url) -> Result<Result<Checksum, String>, PutError> {
    let silent = |_| PutError::Connection("the server was silent for 1 minute".to_owned());
    // A cache on the way may have an older file, and a coding would change the bytes.
    let query = Query::new(Asked::ReadBack, Method::GET, url)
        .with(CACHE_CONTROL, "no-cache")
        .with(ACCEPT_ENCODING, "identity");
    let mut reply =
        timeout(SILENCE, transfer.client.send(&query, None)).await.map_err(silent)??;
    let headers = reply.answer.headers();
    let (is_coded, has_length) =
        (headers.contains_key(CONTENT_ENCODING), headers.contains_key(CONTENT_LENGTH));
    if reply.answer.status() != StatusCode::OK {
        let answer = super::http::read(reply, &query).await;
        return match answer.meaning() {
            Meaning::None => Err(PutError::Missing(shown(url))),
            Meaning::Passes => Err(answer.refused()),
            _ => Ok(Err(answer.refused().to_string())),
        };
    }
    if is_coded {
        return Ok(Err("the server gives it back in another coding".to_owned()));
    }
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut length = 0;
    let body = reply.answer.body_mut();
    while let Some(frame) = timeout(SILENCE, body.frame()).await.map_err(silent)? {
        let frame = frame.map_err(|error| broken(&error, &std::sync::OnceLock::new()))?;
        if let Some(data) = frame.data_ref() {
            hasher.update(data);
            length += data.len() as u64;
        }
    }
    if length < transfer.source.len && !has_length {
        // Such an answer may have been cut off.
        return Err(PutError::Connection("the file was not read back to its end".to_owned()));
    }
    Ok(Ok(hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_found_among_others() {
        assert_eq!(sha256_in("sha-512=:QQ==:, sha-256=:Qg==:;a=1"), Some("Qg=="));
        assert_eq!(sha256_in("sha-256=:Qg==:"), Some("Qg=="));
        for none in ["", "sha-512=:QQ==:", "sha-256=Qg==", "xsha-256=:Qg==:"] {
            assert_eq!(sha256_in(none), None, "{none}");
        }
    }
}
