//! The answers to requests: status and header fields.

use std::time::{Duration, SystemTime};

use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, LOCATION, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use strum::VariantArray as _;

use wakeai_tus::{self as tus, Algorithm, Extension, encoded};

use super::append::Appended;
use super::journal::Info;
use super::refusal::{Refusal, Target};
use super::upload::Upload;

/// The media types of a PATCH (RFC 5789, section 3.1).
const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");

pub(crate) type ServeAnswer = Response<Full<Bytes>>;

/// The answer to a request that has been done, or that CORS asks for in advance.
pub(crate) fn done() -> ServeAnswer {
    plain(StatusCode::NO_CONTENT)
}

/// The answer to an OPTIONS of this path.
pub(crate) fn options(max_size: u64, target: Target) -> ServeAnswer {
    let mut answer = plain(StatusCode::NO_CONTENT);
    let names: Vec<&str> = Extension::VARIANTS.iter().map(Into::into).collect();
    let algorithms = [Algorithm::Sha1, Algorithm::Sha256].map(<&str>::from).join(",");
    let headers = answer.headers_mut();
    headers.insert(tus::TUS_VERSION, HeaderValue::from_static(tus::VERSION));
    headers.insert(ALLOW, HeaderValue::from_static(target.allowed()));
    headers.insert(ACCEPT_PATCH, HeaderValue::from_static(tus::OFFSET_OCTET_STREAM));
    put(headers, tus::TUS_EXTENSION, &names.join(",")); // it has all of them
    headers.insert(tus::TUS_MAX_SIZE, max_size.into());
    put(headers, tus::TUS_CHECKSUM_ALGORITHM, &algorithms);
    answer
}

/// The answer to a request that created an upload and may have brought its first bytes.
pub(crate) fn created(location: &str, appended: &Appended, has_body: bool) -> ServeAnswer {
    // The upload exists even if the bytes were refused, and the client needs its address to continue.
    let mut answer = plain(StatusCode::CREATED);
    put(answer.headers_mut(), LOCATION, location);
    if has_body {
        answer.headers_mut().insert(tus::UPLOAD_OFFSET, appended.offset.into());
    }
    tell_end(answer.headers_mut(), appended.expires, appended.name.as_deref());
    answer
}

/// The answer to a PATCH.
pub(crate) fn appended(appended: &Appended) -> ServeAnswer {
    let mut answer = appended.refused.map_or_else(done, refused);
    answer.headers_mut().insert(tus::UPLOAD_OFFSET, appended.offset.into());
    tell_end(answer.headers_mut(), appended.expires, appended.name.as_deref());
    answer
}

fn tell_end(headers: &mut HeaderMap, expires: u64, name: Option<&str>) {
    put(headers, tus::UPLOAD_EXPIRES, &date(expires));
    if let Some(name) = name {
        put(headers, tus::WAKEAI_NAME, &encoded(name.as_bytes()));
    }
}

/// The answer to a HEAD. The name is that of the file of a finished upload.
pub(crate) fn head(upload: &Upload, expires: u64, info: &Info, is_finished: bool) -> ServeAnswer {
    let mut answer = plain(StatusCode::OK);
    let headers = answer.headers_mut();
    headers.insert(tus::UPLOAD_OFFSET, upload.offset().into());
    match upload.length() {
        Some(length) => headers.insert(tus::UPLOAD_LENGTH, length.into()),
        None => headers.insert(tus::UPLOAD_DEFER_LENGTH, HeaderValue::from_static("1")),
    };
    if !info.metadata.is_empty() {
        put(headers, tus::UPLOAD_METADATA, &info.metadata);
    }
    tell_end(headers, expires, is_finished.then_some(&*info.name));
    answer
}

/// The answer to a request that is refused. The body states the reason.
pub(crate) fn refused(refusal: Refusal) -> ServeAnswer {
    let mut answer = plain(refusal.status());
    answer.extensions_mut().insert(refusal); // for the counters
    *answer.body_mut() = Full::new(Bytes::from(format!("{refusal}\n")));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    let told = match refusal {
        Refusal::Version => Some((tus::TUS_VERSION, tus::VERSION)),
        Refusal::Token => Some((WWW_AUTHENTICATE, "Bearer")),
        Refusal::Method(target) => Some((ALLOW, target.allowed())),
        Refusal::MediaType => Some((ACCEPT_PATCH, tus::OFFSET_OCTET_STREAM)),
        Refusal::ContentCoding => Some((ACCEPT_ENCODING, "identity")),
        _ => None,
    };
    headers.extend(told.map(|(name, value)| (name, HeaderValue::from_static(value))));
    answer
}

fn plain(status: StatusCode) -> ServeAnswer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(tus::TUS_RESUMABLE, HeaderValue::from_static(tus::VERSION));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Adds a header field, unless a header cannot contain the value.
pub(crate) fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn date(seconds: u64) -> String {
    // The date format ends with the year 9999.
    let seconds = seconds.min(253_402_300_799);
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}
