//! The digest of the first bytes of an upload, which grows with it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

const PIECE_BYTES: usize = 1 << 18;

/// The SHA-256 of the bytes before `at`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    hasher: Sha256,
    at: u64,
}

impl Running {
    /// The number of bytes that are hashed.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Adds the bytes at `offset`. Bytes behind a gap are left to [`Self::finish`].
    pub(crate) fn update(&mut self, offset: u64, bytes: &[u8]) {
        if offset == self.at {
            self.hasher.update(bytes);
            self.at += bytes.len() as u64;
        }
    }

    /// The digest of the file in Base64. What was not added before, for example before a restart, is read.
    pub(crate) fn finish(mut self, file: &File, length: u64) -> io::Result<String> {
        let mut piece = Vec::new();
        while self.at < length {
            piece.resize(
                PIECE_BYTES.min(usize::try_from(length - self.at).unwrap_or(PIECE_BYTES)),
                0,
            );
            file.read_exact_at(&mut piece, self.at)?;
            self.update(self.at, &piece);
        }
        Ok(BASE64.encode(self.hasher.finalize()))
    }
}
