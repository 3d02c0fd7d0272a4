//! Parses the head of a request into an [`Operation`]. It does no input or output.

use std::fmt;
use std::str::FromStr;

use http::header::TRANSFER_ENCODING;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use wakeai_daemon::METHODS;
use wakeai_tus::{self as tus, Checksum, Invalid, Metadata};

use super::refusal::{Refusal, Target};
use super::unsupported::{refuse_body, refuse_framing};

/// The path that creates uploads; each upload has its ID below it.
pub(crate) const BASE: &str = "/files";
/// The largest size of `Upload-Metadata`, in bytes.
pub const METADATA_LIMIT: usize = 4096;

/// The largest size of the path and of all header fields together, in bytes.
const HEAD_LIMIT: usize = 16 << 10;

/// The identity of an upload: 128 random bits in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u128);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Id {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let id = u128::from_str_radix(text, 16).ok().map(Self);
        id.filter(|id| id.to_string() == text).ok_or(Refusal::NotFound)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Bytes that a request brings for an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The offset of the first byte.
    pub offset: u64,
    /// The number of bytes, if the head states it.
    pub size: Option<u64>,
    /// The checksum of all these bytes.
    pub checksum: Option<Checksum>,
    /// The length of the whole upload, if this request states it.
    pub length: Option<u64>,
}

/// An upload that a request creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// The length. It is `None` if the client states it later.
    pub length: Option<u64>,
    /// The metadata.
    pub metadata: Metadata,
    /// The first bytes, if the request carries any.
    pub first: Option<Append>,
}

/// The operation that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// OPTIONS: what the server can do with this target.
    Options(Target),
    /// POST: create an upload.
    Create(Create),
    /// HEAD: the offset of an upload.
    Head {
        /// The upload.
        id: Id,
        /// Whether the client also wants the digest of the finished upload (RFC 9530, `Want-Repr-Digest`).
        wants_digest: bool,
    },
    /// PATCH: bytes for an upload.
    Append(Id, Append),
    /// DELETE: end an upload and remove its bytes.
    Delete(Id),
}

impl Operation {
    /// Reads the head of a request.
    ///
    /// # Errors
    ///
    /// The reason why the request is refused.
    pub fn read(method: &Method, path: &str, headers: &HeaderMap) -> Result<Self, Refusal> {
        let field = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len();
        if path.len() + headers.iter().map(field).sum::<usize>() > HEAD_LIMIT {
            return Err(Refusal::Head);
        }
        refuse_framing(headers)?;
        let overridden = match one(headers, "X-HTTP-Method-Override")? {
            Some(name) => {
                Method::from_str(name).map_err(|_| Refusal::Field("X-HTTP-Method-Override"))?
            }
            None => method.clone(),
        };
        let below = path.strip_prefix(BASE).unwrap_or(path);
        let id = below.strip_prefix('/').unwrap_or(below);
        if overridden == Method::OPTIONS {
            let all = id.is_empty() || path == "*";
            return Ok(Self::Options(if all { Target::Uploads } else { Target::Upload }));
        }
        if one(headers, "Tus-Resumable")? != Some(tus::VERSION) {
            return Err(Refusal::Version);
        }
        match (overridden.as_str(), id) {
            ("POST", "") => Ok(Self::Create(create(headers)?)),
            (method, "") => Err(refused_method(method, Target::Uploads)),
            ("HEAD", id) => {
                Ok(Self::Head { id: id.parse()?, wants_digest: wants_digest(headers)? })
            }
            ("DELETE", id) => Ok(Self::Delete(id.parse()?)),
            ("PATCH", id) => {
                let id = id.parse()?;
                refuse_body(headers)?;
                has_offset_octets(headers)?.then_some(()).ok_or(Refusal::MediaType)?;
                let offset =
                    number(headers, "Upload-Offset")?.ok_or(Refusal::Field("Upload-Offset"))?;
                Ok(Self::Append(id, append(headers, offset)?))
            }
            (method, _) => Err(refused_method(method, Target::Upload)),
        }
    }
}

/// RFC 9110, section 9.1: 405 for a method that the server knows, 501 for another one.
fn refused_method(method: &str, target: Target) -> Refusal {
    if METHODS.contains(&method) { Refusal::Method(target) } else { Refusal::UnknownMethod }
}

fn create(headers: &HeaderMap) -> Result<Create, Refusal> {
    refuse_body(headers)?;
    let length = number(headers, "Upload-Length")?;
    match (length, one(headers, "Upload-Defer-Length")?) {
        (Some(_), None) | (None, Some("1")) => {}
        (None, None) => return Err(Refusal::Field("Upload-Length")),
        _ => return Err(Refusal::Field("Upload-Defer-Length")),
    }
    let metadata = one(headers, "Upload-Metadata")?.unwrap_or_default();
    if metadata.len() > METADATA_LIMIT {
        return Err(Refusal::Field("Upload-Metadata"));
    }
    let metadata = metadata.parse().map_err(|_| Refusal::Field("Upload-Metadata"))?;
    let first = if has_offset_octets(headers)? {
        Some(Append { length: None, ..append(headers, 0)? })
    } else if has_body(headers)? {
        return Err(Refusal::MediaType);
    } else {
        None
    };
    if let (Some(length), Some(Append { size: Some(size), .. })) = (length, &first)
        && *size > length
    {
        return Err(Refusal::BeyondLength);
    }
    Ok(Create { length, metadata, first })
}

/// Whether the head announces a body (RFC 9112, section 6.3).
fn has_body(headers: &HeaderMap) -> Result<bool, Refusal> {
    let size = number(headers, "Content-Length")?;
    Ok(headers.contains_key(TRANSFER_ENCODING) || size.is_some_and(|size| size > 0))
}

fn append(headers: &HeaderMap, offset: u64) -> Result<Append, Refusal> {
    let checksum = one(headers, "Upload-Checksum")?.map(Checksum::from_str).transpose();
    Ok(Append {
        offset,
        size: number(headers, "Content-Length")?,
        checksum: checksum.map_err(|invalid| match invalid {
            Invalid::Algorithm => Refusal::Algorithm,
            _ => Refusal::Field("Upload-Checksum"),
        })?,
        length: number(headers, "Upload-Length")?,
    })
}

/// Whether the client wants SHA-256. A preference of zero means that it does not (RFC 9530, section 4).
fn wants_digest(headers: &HeaderMap) -> Result<bool, Refusal> {
    let wanted = one(headers, "Want-Repr-Digest")?.unwrap_or_default().split(',');
    let mut preferences = wanted.filter_map(|pair| pair.trim().split_once('='));
    Ok(preferences.any(|(name, preference)| name == "sha-256" && preference != "0"))
}

/// Whether the body has the type of tus. Types have no case, and may have parameters (RFC 9110, section 8.3.1).
fn has_offset_octets(headers: &HeaderMap) -> Result<bool, Refusal> {
    let kind = one(headers, "Content-Type")?.and_then(|kind| kind.split(';').next());
    Ok(kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(tus::OFFSET_OCTET_STREAM)))
}

/// The field's value. A field that comes twice is refused, because two programs could read different values from it. `name`
/// is written as in messages; fields are found whatever their case.
fn one<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let wrong = Refusal::Field(name);
    if values.next().is_some() {
        return Err(wrong);
    }
    value.to_str().map(|value| Some(value.trim())).map_err(|_| wrong)
}

/// The field's number. It has only digits and is at most `i64::MAX`, because file offsets are signed.
fn number(headers: &HeaderMap, name: &'static str) -> Result<Option<u64>, Refusal> {
    let Some(text) = one(headers, name)? else { return Ok(None) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse::<u64>().ok().filter(|&number| digits && i64::try_from(number).is_ok());
    number.map(Some).ok_or(Refusal::Field(name))
}
