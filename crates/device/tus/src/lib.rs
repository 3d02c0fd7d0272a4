//! Header fields, extensions, metadata and checksums of tus 1.0.0, the protocol of resumable uploads.
//!
//! Source: <https://tus.io/protocols/resumable-upload>, version 1.0.0.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::str::FromStr;
use std::{fmt, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderName;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use sha1::Digest;

/// The number of bytes of a file in one read.
const BLOCK: usize = 256 * 1024;

/// The version of the protocol. No other version exists.
pub const VERSION: &str = "1.0.0";

/// The media type of the body of a PATCH request, and of a POST request that carries data.
pub const OFFSET_OCTET_STREAM: &str = "application/offset+octet-stream";

/// The status code that answers a body whose checksum does not match.
pub const CHECKSUM_MISMATCH: u16 = 460;

/// The version of the protocol that a request or an answer uses.
pub const TUS_RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
/// The versions that a server knows.
pub const TUS_VERSION: HeaderName = HeaderName::from_static("tus-version");
/// The extensions that a server has, separated by commas.
pub const TUS_EXTENSION: HeaderName = HeaderName::from_static("tus-extension");
/// The largest upload that a server takes, in bytes.
pub const TUS_MAX_SIZE: HeaderName = HeaderName::from_static("tus-max-size");
/// The checksum algorithms that a server knows, separated by commas.
pub const TUS_CHECKSUM_ALGORITHM: HeaderName = HeaderName::from_static("tus-checksum-algorithm");
/// The offset in the upload, in bytes.
pub const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
/// The length of the whole upload, in bytes.
pub const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
/// Says that the length will be known later. The only value is 1.
pub const UPLOAD_DEFER_LENGTH: HeaderName = HeaderName::from_static("upload-defer-length");
/// Pairs of a key and a value in Base64, separated by commas.
pub const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
/// The checksum of the body of one request: the algorithm, a space, the digest in Base64.
pub const UPLOAD_CHECKSUM: HeaderName = HeaderName::from_static("upload-checksum");
/// The time after which an unfinished upload is removed.
pub const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
/// The name of a finished upload's file, percent-encoded. Only `wakeai serve` tells it.
pub const WAKEAI_NAME: HeaderName = HeaderName::from_static("wakeai-name");
/// The digest of a finished upload (RFC 9530, section 3).
pub const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
/// The request for such a digest (RFC 9530, section 4).
pub const WANT_REPR_DIGEST: HeaderName = HeaderName::from_static("want-repr-digest");

/// An extension of the protocol that client or server use, with its name in [`TUS_EXTENSION`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Extension {
    /// A POST request creates an upload.
    Creation,
    /// The POST request that creates an upload may carry its first bytes.
    CreationWithUpload,
    /// The length of an upload may be stated after its creation.
    CreationDeferLength,
    /// Unfinished uploads are removed after a time that the server states.
    Expiration,
    /// A DELETE request ends an upload.
    Termination,
    /// A request may carry the checksum of its body.
    Checksum,
}

/// The algorithm of a checksum, with its name in the header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Algorithm {
    /// SHA-1, which each server with the extension has to support.
    Sha1,
    /// SHA-256.
    Sha256,
}

/// The extensions or the algorithms that the value of a header field names. Unknown names are skipped.
pub fn read_list<T: FromStr>(list: &str) -> Vec<T> {
    list.split(',').filter_map(|name| name.trim().parse().ok()).collect()
}

/// A name with every octet percent-encoded that is not an unreserved character (RFC 3986, sections 2.1 and 2.3).
pub fn encoded(name: &[u8]) -> String {
    const ENCODED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    percent_encode(name, ENCODED).to_string()
}

/// A digest that is being computed.
#[derive(Clone, Debug)]
pub enum Hasher {
    /// SHA-1.
    Sha1(sha1::Sha1),
    /// SHA-256.
    Sha256(sha2::Sha256),
}

impl Hasher {
    /// A digest to which no bytes were added yet.
    pub fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Sha1 => Self::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => Self::Sha256(sha2::Sha256::new()),
        }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// Adds the bytes of a file from `from` up to `to`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has fewer bytes.
    pub fn add_file(&mut self, file: &File, from: u64, to: u64) -> io::Result<()> {
        let (mut at, mut block) = (from, vec![0; BLOCK]);
        while at < to {
            let count = (to - at).min(BLOCK as u64) as usize;
            file.read_exact_at(&mut block[..count], at)?;
            self.update(&block[..count]);
            at += count as u64;
        }
        Ok(())
    }

    /// The checksum of all bytes that were added.
    pub fn finish(self) -> Checksum {
        let (algorithm, digest) = match self {
            Self::Sha1(hasher) => (Algorithm::Sha1, hasher.finalize().to_vec()),
            Self::Sha256(hasher) => (Algorithm::Sha256, hasher.finalize().to_vec()),
        };
        Checksum { algorithm, digest }
    }
}

/// A checksum as [`UPLOAD_CHECKSUM`] carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The digest: 20 bytes of SHA-1, 32 of SHA-256.
    pub digest: Vec<u8>,
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", <&str>::from(self.algorithm), BASE64.encode(&self.digest))
    }
}

/// The reason why a value of a header field is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The value of `Upload-Checksum` is not an algorithm, a space and a digest in Base64.
    #[error("Upload-Checksum is not an algorithm, a space and a digest in Base64")]
    Checksum,
    /// The algorithm of `Upload-Checksum` is unknown.
    #[error("the algorithm of Upload-Checksum is unknown")]
    Algorithm,
    /// The value of `Upload-Metadata` is not a list of keys with values in Base64.
    #[error("Upload-Metadata is not a list of keys, each with a value in Base64")]
    Metadata,
}

impl FromStr for Checksum {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (name, digest) = text.split_once(' ').ok_or(Invalid::Checksum)?;
        let digest = BASE64.decode(digest.trim()).map_err(|_| Invalid::Checksum)?;
        let algorithm: Algorithm = name.parse().map_err(|_| Invalid::Algorithm)?;
        let length = match algorithm {
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 => 32,
        };
        if digest.len() == length { Ok(Self { algorithm, digest }) } else { Err(Invalid::Checksum) }
    }
}

/// The metadata of an upload, in the order of [`UPLOAD_METADATA`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata(Vec<(String, Vec<u8>)>);

impl Metadata {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        let pair = self.0.iter().find(|(name, _)| name == key);
        pair.map(|(_, value)| value.as_slice())
    }

    /// Adds a pair. `key` is ASCII without spaces and commas, and must differ from the keys of all other pairs.
    ///
    /// # Errors
    ///
    /// [`Invalid::Metadata`] if `key` breaks these rules.
    pub fn insert(&mut self, key: &str, value: &[u8]) -> Result<(), Invalid> {
        let valid =
            !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
        if !valid || self.get(key).is_some() {
            return Err(Invalid::Metadata);
        }
        self.0.push((key.to_owned(), value.to_vec()));
        Ok(())
    }
}

impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, value)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{key}")?;
            if !value.is_empty() {
                write!(f, " {}", BASE64.encode(value))?;
            }
        }
        Ok(())
    }
}

impl FromStr for Metadata {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let mut metadata = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once(' ').unwrap_or((pair, ""));
            let value = BASE64.decode(value.trim()).map_err(|_| Invalid::Metadata)?;
            metadata.insert(key, &value)?;
        }
        Ok(metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_as_it_is_written() {
        let mut metadata = Metadata::default();
        metadata.insert("filename", "写真 1.jpg".as_bytes()).unwrap();
        metadata.insert("private", b"").unwrap();
        let text = metadata.to_string();
        assert_eq!(text, "filename 5YaZ55yfIDEuanBn,private");
        assert_eq!(text.parse(), Ok(metadata));
        for bad in ["a b c", "a !", "a YQ==,a YQ==", "k\u{e9}y YQ=="] {
            assert_eq!(bad.parse::<Metadata>(), Err(Invalid::Metadata), "{bad}");
        }
    }

    #[test]
    fn a_checksum_is_read_as_it_is_written() {
        for (algorithm, text) in [
            (Algorithm::Sha1, "sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0="),
            (Algorithm::Sha256, "sha256 uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="),
        ] {
            let mut hasher = Hasher::new(algorithm);
            hasher.update(b"hello ");
            hasher.update(b"world");
            let checksum = hasher.finish();
            assert_eq!(checksum.to_string(), text);
            assert_eq!(text.parse(), Ok(checksum));
        }
        assert_eq!("md5 YQ==".parse::<Checksum>(), Err(Invalid::Algorithm));
        for bad in ["", "sha1", "sha1 ", "sha1 YQ==", "sha1 !!"] {
            assert_eq!(bad.parse::<Checksum>(), Err(Invalid::Checksum), "{bad}");
        }
    }

    #[test]
    fn lists_leave_out_what_is_unknown() {
        let found: Vec<Extension> = read_list("creation, concatenation,checksum");
        assert_eq!(found, [Extension::Creation, Extension::Checksum]);
        let found: Vec<Algorithm> = read_list("md5,sha256 , sha1");
        assert_eq!(found, [Algorithm::Sha256, Algorithm::Sha1]);
    }
}
