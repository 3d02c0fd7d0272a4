//! Writes the body of one PATCH, on a thread that may wait for the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::tus::Hasher;

use super::files::write_record;
use super::record::Record;

/// The files of an upload whose body arrives.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(super) data: Arc<File>,
    pub(super) offsets: Arc<File>,
    /// The offset of the next byte.
    pub(crate) position: u64,
    /// The digest of the body, where the request has told one.
    pub(crate) hasher: Option<Hasher>,
}

impl Writer {
    pub(crate) fn new(files: (File, File), position: u64, hasher: Option<Hasher>) -> Self {
        let (data, offsets) = (Arc::new(files.0), Arc::new(files.1));
        Self { data, offsets, position, hasher }
    }

    /// Writes bytes behind those before. After an error [`Self::position`] tells how many were written.
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

    /// Truncates the file to `offset` where it is longer. If `record` is given, the bytes and the record are on disk at
    /// the return.
    pub(crate) fn settle(&self, offset: u64, record: Option<Record>) -> io::Result<()> {
        if self.position > offset {
            self.data.set_len(offset)?;
        }
        let Some(record) = record else { return Ok(()) };
        self.data.sync_data()?;
        write_record(&self.offsets, record)
    }
}
