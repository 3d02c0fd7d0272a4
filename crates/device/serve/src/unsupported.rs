//! What a request may ask for that this server does not do. It is refused before its body is read, because a client that
//! was not understood would take the answer at the end for the answer to what it had asked.

use http::HeaderMap;
use http::header::{
    CONTENT_ENCODING, EXPECT, HeaderName, IF_MATCH, IF_NONE_MATCH, TRAILER, TRANSFER_ENCODING,
};

use wakeai_tus as tus;

use super::refusal::Refusal;

/// Fields of a body that the server does not look at, written as in messages. The checksums among them would go without a
/// comparison.
const FIELDS: [&str; 6] =
    ["Content-Range", "Content-Digest", "Repr-Digest", "Digest", "Content-MD5", "Upload-Concat"];

/// Refuses what the server does not do, whatever the method.
pub(super) fn refuse_framing(headers: &HeaderMap) -> Result<(), Refusal> {
    // RFC 9110, section 10.1.1.
    if tokens(headers, &EXPECT).any(|token| !token.eq_ignore_ascii_case("100-continue")) {
        return Err(Refusal::Expectation);
    }
    // RFC 9112, section 6.1. The connection's decoder takes off the last coding only.
    if tokens(headers, &TRANSFER_ENCODING).any(|token| !token.eq_ignore_ascii_case("chunked")) {
        return Err(Refusal::TransferCoding);
    }
    Ok(())
}

/// Refuses what the server does not do with a body.
pub(super) fn refuse_body(headers: &HeaderMap) -> Result<(), Refusal> {
    // RFC 9110, section 8.4.
    if tokens(headers, &CONTENT_ENCODING).any(|token| !token.eq_ignore_ascii_case("identity")) {
        return Err(Refusal::ContentCoding);
    }
    if tokens(headers, &TRAILER)
        .any(|token| token.eq_ignore_ascii_case(tus::UPLOAD_CHECKSUM.as_str()))
    {
        return Err(Refusal::Unsupported("Trailer: Upload-Checksum"));
    }
    match FIELDS.iter().find(|name| headers.contains_key(**name)) {
        Some(name) => Err(Refusal::Unsupported(name)),
        None => Ok(()),
    }
}

/// Checks the preconditions of a request (RFC 9110, section 13.1) that would succeed otherwise. `exists` says whether the
/// target is an upload. Uploads have no entity tags, so only `*` can match, and only where there is an upload. The fields with
/// dates are ignored, because uploads have no dates of change (sections 13.1.3 and 13.1.4).
pub(crate) fn check_preconditions(
    headers: &HeaderMap,
    exists: bool,
    is_head: bool,
) -> Result<(), Refusal> {
    let matches = |name| exists && tokens(headers, name).any(|token| token == "*");
    if headers.contains_key(IF_MATCH) && !matches(&IF_MATCH) {
        return Err(Refusal::Precondition);
    }
    match matches(&IF_NONE_MATCH) {
        true if is_head => Err(Refusal::NotModified),
        true => Err(Refusal::Precondition),
        false => Ok(()),
    }
}

/// The elements of a list field (RFC 9110, section 5.6.1).
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or("?"));
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|token| !token.is_empty())
}
