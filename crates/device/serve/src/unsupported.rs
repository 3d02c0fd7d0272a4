//! What a request may ask for that this server does not do. It is refused before its body is read, because a client that
//! was not understood would take the answer at the end for the answer to what it had asked.

use http::HeaderMap;
use http::header::{
    CONTENT_ENCODING, CONTENT_RANGE, EXPECT, HeaderName, IF_MATCH, IF_NONE_MATCH, TRAILER,
    TRANSFER_ENCODING,
};

use wakeai_tus as tus;

use super::refusal::Refusal;

/// Fields of a body that the server does not look at, each with its name in messages. The checksums among them would
/// go without a comparison.
const FIELDS: [(HeaderName, &str); 6] = [
    (CONTENT_RANGE, "Content-Range"),
    (HeaderName::from_static("content-digest"), "Content-Digest"),
    (HeaderName::from_static("repr-digest"), "Repr-Digest"),
    (HeaderName::from_static("digest"), "Digest"),
    (HeaderName::from_static("content-md5"), "Content-MD5"),
    (HeaderName::from_static("upload-concat"), "Upload-Concat"),
];

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
    match FIELDS.iter().find(|(name, _)| headers.contains_key(name)) {
        Some((_, shown)) => Err(Refusal::Unsupported(shown)),
        None => Ok(()),
    }
}

/// The preconditions of a request (RFC 9110, section 13.1). Uploads have no entity tags, so only `*` can match, and only
/// where there is an upload. The fields with dates are ignored, because uploads have no dates of change (sections 13.1.3
/// and 13.1.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preconditions {
    if_match: Option<bool>,
    if_none_match: Option<bool>,
}

impl Preconditions {
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let is_any = |name| {
            let present = headers.contains_key(&name);
            present.then(|| tokens(headers, &name).any(|token| token == "*"))
        };
        Self { if_match: is_any(IF_MATCH), if_none_match: is_any(IF_NONE_MATCH) }
    }

    /// Checks them before a request that would succeed otherwise. `exists` says whether the target is an upload.
    pub(crate) fn check(self, exists: bool, is_head: bool) -> Result<(), Refusal> {
        if self.if_match.is_some_and(|any| !(any && exists)) {
            return Err(Refusal::Precondition);
        }
        match self.if_none_match {
            Some(true) if exists && is_head => Err(Refusal::NotModified),
            Some(true) if exists => Err(Refusal::Precondition),
            _ => Ok(()),
        }
    }
}

/// The elements of a list field (RFC 9110, section 5.6.1).
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or("?"));
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|token| !token.is_empty())
}
