//! The source of an upload: a regular file, or a temporary file that holds another kind of input.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};

use super::{PutConfig, PutError};
use wakeai_tus::{Algorithm, Checksum, Hasher};

/// The number of bytes in one read.
const BLOCK: usize = 256 * 1024;

/// What the file system says of a file. If it is the same as before, nobody has changed the file: a program can set the
/// modification time, but not the time of the last status change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) len: u64,
    /// The times of the last modification and of the last status change, as seconds and nanoseconds.
    modified: (i64, i64),
    status_changed: (i64, i64),
}

impl Stamp {
    fn new(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            status_changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// The SHA-256 of the first `to` bytes of a file, as they were when they were sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prefix {
    pub(super) to: u64,
    pub(super) sha256: String,
}

/// A file that can be read at any offset.
#[derive(Clone, Debug)]
pub(super) struct UploadSource {
    file: Arc<File>,
    pub(super) len: u64,
    /// The file as it was when it was last compared with what had been sent of it.
    pub(super) stamp: Stamp,
    /// The digest of the first bytes, as they were when they were sent, and their number.
    hasher: Hasher,
    hashed: u64,
    pub(super) path: Option<PathBuf>,
    pub(super) name: Option<Vec<u8>>,
}

impl UploadSource {
    pub(super) fn open(config: &PutConfig) -> Result<Self, PutError> {
        let path = config.file.clone();
        let failed = |source| PutError::Read {
            path: path.clone().unwrap_or_else(|| PathBuf::from("standard input")),
            source,
        };
        let own_name = || path.as_ref().and_then(|path| path.file_name()).map(ToOwned::to_owned);
        let name = config.name.clone().or_else(own_name).map(OsStringExt::into_vec);
        let limit = config.spool.get();
        let file = match &path {
            Some(path) => {
                let file = File::open(path).map_err(failed)?;
                let metadata = file.metadata().map_err(failed)?;
                if metadata.is_dir() {
                    return Err(failed(io::ErrorKind::IsADirectory.into()));
                }
                if metadata.is_file() { file } else { spool(file, limit)? }
            }
            None => spool(io::stdin().lock(), limit)?,
        };
        let stamp = Stamp::new(&file.metadata().map_err(failed)?);
        Ok(Self::new(file, stamp, path, name))
    }

    fn new(file: File, stamp: Stamp, path: Option<PathBuf>, name: Option<Vec<u8>>) -> Self {
        let hasher = Hasher::new(Algorithm::Sha256);
        Self { file: Arc::new(file), len: stamp.len, stamp, hasher, hashed: 0, path, name }
    }

    #[cfg(test)]
    pub(super) fn opened(path: &std::path::Path) -> Self {
        let file = File::open(path).unwrap();
        let stamp = Stamp::new(&file.metadata().unwrap());
        Self::new(file, stamp, Some(path.to_owned()), None)
    }

    /// The digest of what has been sent, as it was then.
    pub(super) fn prefix(&self) -> Prefix {
        Prefix { to: self.hashed, sha256: self.hasher.clone().finish().to_string() }
    }

    /// Takes the bytes up to `to` into the digest of what has been sent.
    pub(super) async fn plan(&mut self, to: u64) -> Result<(), PutError> {
        if to > self.hashed {
            self.hasher = self.hash(self.hasher.clone(), self.hashed, to).await?;
            self.hashed = to;
        }
        Ok(())
    }

    /// Whether the file begins with the bytes of `prefix`. If so, the upload goes on behind them.
    pub(super) async fn begins_with(&mut self, prefix: &Prefix) -> Result<bool, PutError> {
        if prefix.to > self.len {
            return Ok(false);
        }
        self.plan(prefix.to).await?;
        Ok(self.hashed == prefix.to && self.prefix() == *prefix)
    }

    /// Fails if the file no longer has the bytes that have been sent. The file is read only if the file system says that
    /// it may have changed.
    pub(super) async fn look(&mut self) -> Result<(), PutError> {
        let now = self.file.metadata().map_err(|error| self.unreadable(error))?;
        let now = Stamp::new(&now);
        if now == self.stamp {
            return Ok(());
        }
        let fresh = self.hash(Hasher::new(Algorithm::Sha256), 0, self.hashed).await?;
        if now.len != self.len || fresh.finish() != self.hasher.clone().finish() {
            return Err(PutError::Changed);
        }
        self.stamp = now;
        Ok(())
    }

    fn unreadable(&self, source: io::Error) -> PutError {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return PutError::Changed;
        }
        let path = self.path.clone().unwrap_or_else(|| PathBuf::from("standard input"));
        PutError::Read { path, source }
    }

    /// The checksum of the bytes from `from` up to `to`.
    pub(super) async fn checksum(
        &self,
        algorithm: Algorithm,
        from: u64,
        to: u64,
    ) -> Result<Checksum, PutError> {
        Ok(self.hash(Hasher::new(algorithm), from, to).await?.finish())
    }

    /// Adds the bytes from `from` up to `to` to a digest. Large parts take seconds, so this runs beside the event loop.
    async fn hash(&self, mut hasher: Hasher, from: u64, to: u64) -> Result<Hasher, PutError> {
        let file = Arc::clone(&self.file);
        let hash = move || hasher.add_file(&file, from, to).map(|()| hasher);
        let hashed = tokio::task::spawn_blocking(hash).await;
        hashed
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|error| self.unreadable(error))
    }

    /// The body of a request with the bytes from `from` up to `to`. `sent` tells how much of it was handed to the
    /// connection.
    pub(super) fn body(&self, from: u64, to: u64, sent: Arc<Sent>) -> Piece {
        Piece { file: Arc::clone(&self.file), at: from, to, sent }
    }

    /// The error that ended the reading of a piece.
    pub(super) fn failure(&self, sent: &Sent) -> Option<PutError> {
        let error = sent.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.map(|error| self.unreadable(error))
    }
}

/// How far the sending of a piece has come.
#[derive(Debug, Default)]
pub(super) struct Sent {
    bytes: AtomicU64,
    /// The error that ended the reading of the source.
    failed: Mutex<Option<io::Error>>,
}

impl Sent {
    /// The number of bytes that were handed to the connection.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
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
    sent: Arc<Sent>,
}

impl Piece {
    /// Ends the request, and keeps the error for [`UploadSource::failure`].
    fn fail(&self, error: io::Error) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let kind = error.kind();
        *self.sent.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        Poll::Ready(Some(Err(kind.into())))
    }
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
            Ok(0) => return self.fail(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) => return self.fail(error),
        };
        block.truncate(read);
        self.at += read as u64;
        self.sent.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(block.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.at >= self.to
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.to - self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;

    /// Writes the bytes, and sets the modification time that the file had before.
    fn write_secretly(path: &std::path::Path, bytes: &[u8]) {
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).unwrap();
        // The kernel's clock of file times advances only every few milliseconds.
        let before = Stamp::new(&fs::metadata(path).unwrap());
        while Stamp::new(&fs::metadata(path).unwrap()).status_changed == before.status_changed {
            fs::write(path, bytes).unwrap();
            File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
        }
    }

    #[tokio::test]
    async fn a_file_with_other_bytes_and_the_same_times_is_found() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("f");
        fs::write(&path, b"abcdef").unwrap();
        let mut source = UploadSource::opened(&path);
        source.plan(3).await.unwrap();
        source.look().await.unwrap();
        // What has not been sent may change, as long as the length stays.
        write_secretly(&path, b"abcXYZ");
        source.look().await.unwrap();
        write_secretly(&path, b"aXcdef");
        assert!(matches!(source.look().await, Err(PutError::Changed)));
        fs::write(&path, b"abcdefg").unwrap();
        assert!(matches!(source.look().await, Err(PutError::Changed)));
    }

    #[tokio::test]
    async fn a_chmod_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("f");
        fs::write(&path, b"abcdef").unwrap();
        let mut source = UploadSource::opened(&path);
        source.plan(6).await.unwrap();
        File::open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        source.look().await.unwrap();
    }

    #[tokio::test]
    async fn a_prefix_is_known_again() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("f");
        fs::write(&path, b"abcdef").unwrap();
        let mut source = UploadSource::opened(&path);
        source.plan(4).await.unwrap();
        let prefix = source.prefix();
        fs::write(&path, b"abcdXY").unwrap();
        assert!(UploadSource::opened(&path).begins_with(&prefix).await.unwrap());
        fs::write(&path, b"abXdef").unwrap();
        assert!(!UploadSource::opened(&path).begins_with(&prefix).await.unwrap());
        fs::write(&path, b"abc").unwrap();
        assert!(!UploadSource::opened(&path).begins_with(&prefix).await.unwrap());
    }
}
