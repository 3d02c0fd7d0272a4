//! The digest of a finished upload's file.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

const PIECE_BYTES: usize = 1 << 18;

/// What tells one content of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    inode: u64,
    bytes: u64,
    /// The time of the last change, of which the kernel keeps account: no program can set it.
    changed: (i64, i64),
}

impl Version {
    pub(crate) fn new(file: &Metadata) -> Self {
        Self { inode: file.ino(), bytes: file.len(), changed: (file.ctime(), file.ctime_nsec()) }
    }
}

/// The SHA-256 of a file of `length` bytes, in Base64.
pub(crate) fn sha256(file: &File, length: u64) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < length {
        let count = PIECE_BYTES.min(usize::try_from(length - at).unwrap_or(PIECE_BYTES));
        file.read_exact_at(&mut piece[..count], at)?;
        hasher.update(&piece[..count]);
        at += count as u64;
    }
    Ok(BASE64.encode(hasher.finalize()))
}
