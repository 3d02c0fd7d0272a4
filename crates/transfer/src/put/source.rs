//! The source of an upload: a regular file, or a temporary file that holds another kind of input.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use nix::fcntl::OFlag;

use super::{Config, PutError};
use crate::tus::{Algorithm, Checksum, Hasher};

/// The number of bytes in one read.
const BLOCK: usize = 256 * 1024;

/// A file that can be read at any offset.
#[derive(Clone, Debug)]
pub(super) struct Source {
    file: Arc<File>,
    pub(super) len: u64,
    /// The time of the last change, as seconds and nanoseconds.
    pub(super) changed: (i64, i64),
    pub(super) path: Option<PathBuf>,
    pub(super) name: Option<String>,
}

impl Source {
    pub(super) fn open(config: &Config) -> Result<Self, PutError> {
        let path = config.file.clone();
        let failed = |source| PutError::Read {
            path: path.clone().unwrap_or_else(|| PathBuf::from("standard input")),
            source,
        };
        let own_name = path.as_ref().and_then(|path| path.file_name());
        let name = config.name.clone().or(own_name.map(|name| name.to_string_lossy().into_owned()));
        let limit = config.spool.get();
        let file = match &path {
            Some(path) => {
                let file = File::open(path).map_err(failed)?;
                if file.metadata().map_err(failed)?.is_file() { file } else { spool(file, limit)? }
            }
            None => spool(io::stdin().lock(), limit)?,
        };
        let metadata = file.metadata().map_err(failed)?;
        let changed = (metadata.mtime(), metadata.mtime_nsec());
        Ok(Self { file: Arc::new(file), len: metadata.len(), changed, path, name })
    }

    #[cfg(test)]
    pub(super) fn of(path: &std::path::Path) -> Self {
        let file = File::open(path).unwrap();
        let metadata = file.metadata().unwrap();
        let changed = (metadata.mtime(), metadata.mtime_nsec());
        let path = Some(path.to_owned());
        Self { file: Arc::new(file), len: metadata.len(), changed, path, name: None }
    }

    /// Fails if the file has changed since it was opened.
    pub(super) fn check(&self) -> Result<(), PutError> {
        let now = self.file.metadata().map_err(|_| PutError::Changed)?;
        let same = now.len() == self.len && (now.mtime(), now.mtime_nsec()) == self.changed;
        if same { Ok(()) } else { Err(PutError::Changed) }
    }

    /// The checksum of the bytes from `from` up to `to`.
    pub(super) fn checksum(
        &self,
        algorithm: Algorithm,
        from: u64,
        to: u64,
    ) -> Result<Checksum, PutError> {
        let mut hasher = Hasher::new(algorithm);
        let mut at = from;
        let mut block = vec![0; BLOCK];
        while at < to {
            let most = (to - at).min(BLOCK as u64) as usize;
            let read = self.file.read_at(&mut block[..most], at).map_err(|_| PutError::Changed)?;
            if read == 0 {
                return Err(PutError::Changed);
            }
            hasher.update(&block[..read]);
            at += read as u64;
        }
        Ok(hasher.finish())
    }

    /// The body of a request with the bytes from `from` up to `to`. `sent` counts the bytes that were handed to the
    /// connection.
    pub(super) fn body(&self, from: u64, to: u64, sent: Arc<AtomicU64>) -> Piece {
        Piece { file: Arc::clone(&self.file), at: from, to, sent }
    }
}

/// Copies the input into an unnamed temporary file.
fn spool(input: impl Read, limit: u64) -> Result<File, PutError> {
    let directory = std::env::temp_dir();
    let failed = |source| PutError::Read { path: directory.clone(), source };
    let flags = OFlag::O_TMPFILE.bits();
    let mut options = File::options();
    options.read(true).write(true).mode(0o600).custom_flags(flags);
    let mut file = options.open(&directory).map_err(failed)?;
    let copied = io::copy(&mut input.take(limit.saturating_add(1)), &mut file).map_err(failed)?;
    if copied > limit { Err(PutError::Spool(limit)) } else { Ok(file) }
}

/// A part of the source, as the body of a request.
#[derive(Debug)]
pub(super) struct Piece {
    file: Arc<File>,
    at: u64,
    to: u64,
    sent: Arc<AtomicU64>,
}

impl Body for Piece {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.at >= self.to {
            return Poll::Ready(None);
        }
        let mut block = vec![0; (self.to - self.at).min(BLOCK as u64) as usize];
        let read = match self.file.read_at(&mut block, self.at) {
            Ok(0) => return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
            Ok(read) => read,
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        block.truncate(read);
        self.at += read as u64;
        self.sent.fetch_add(read as u64, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(block.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.at >= self.to
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.to - self.at)
    }
}
