//! Writes the body of one PATCH, on a thread that may wait for the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::tus::Hasher;

use super::offsets::Offsets;

/// The files of an upload whose body arrives.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(super) data: Arc<File>,
    pub(super) offsets: Arc<Offsets>,
    /// The offset of the next byte.
    pub(crate) position: u64,
    /// The digest of the body, if the request has a checksum.
    pub(crate) hasher: Option<Hasher>,
}

impl Writer {
    pub(crate) fn new(data: File, offsets: Offsets, position: u64, hasher: Option<Hasher>) -> Self {
        Self { data: Arc::new(data), offsets: Arc::new(offsets), position, hasher }
    }

    /// Writes `bytes` at [`Self::position`]. After an error, the position shows how many bytes were written.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = match self.data.write_at(bytes, self.position) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                written => written?,
            };
            let (written, rest) = bytes.split_at(count);
            if let Some(hasher) = &mut self.hasher {
                hasher.update(written);
            }
            self.position += count as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Truncates the file to `offset` if it is longer, and syncs it to the disk.
    pub(crate) fn settle(&self, offset: u64) -> io::Result<()> {
        if self.position > offset {
            self.data.set_len(offset)?;
        }
        self.data.sync_data()
    }

    /// Truncates the file to `offset` if it is longer. No sync is needed, because no new byte counts.
    pub(crate) fn discard(&self, offset: u64) -> io::Result<()> {
        if self.position > offset { self.data.set_len(offset) } else { Ok(()) }
    }
}
