//! The state of an unfinished upload. A later process continues the upload from this state.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::Url;

use super::PutError;
use super::error::plain;
use super::source::{Prefix, Stamp, UploadSource};
use wakeai_tus::{Algorithm, Hasher};

/// The file that keeps the state of one upload. The file is locked, so that only one process works on the upload.
#[derive(Debug)]
pub(super) struct UploadState {
    /// `None` if no later process can continue the upload.
    file: Option<(PathBuf, File)>,
    pub(super) kept: KeptState,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptState {
    /// The URL of the upload at the server, once the upload was created.
    location: Option<String>,
    /// The source as it was when it was last compared with what had been sent.
    pub(super) stamp: Stamp,
    /// What had been sent or was being sent.
    pub(super) sent: Prefix,
}

impl UploadState {
    /// Opens the state of an upload of `source` to `url`. The caller finds out by [`UploadState::kept`]
    /// whether the source still is what has been sent. An input that is not a regular file has no state.
    ///
    /// # Errors
    ///
    /// [`PutError::Busy`] if another process holds the state.
    pub(super) fn open(
        directory: Option<&Path>,
        url: &Url,
        source: &UploadSource,
    ) -> Result<Self, PutError> {
        let fresh = KeptState { location: None, stamp: source.stamp, sent: source.prefix() };
        let full = source.path.as_ref().and_then(|path| path.canonicalize().ok());
        let Some((directory, full)) = directory.zip(full) else {
            return Ok(Self { file: None, kept: fresh });
        };
        let path = directory.join(name(url, &full, source.name.as_deref()));
        let mut file = match open(&path) {
            Ok(file) => file,
            Err(error) => {
                warn(&path, &error);
                return Ok(Self { file: None, kept: fresh });
            }
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(PutError::Busy),
            Err(TryLockError::Error(error)) => warn(&path, &error),
        }
        let mut text = String::new();
        // A full disk or a crash may have cut off the text. Such a text is ignored.
        let kept: Option<KeptState> =
            file.read_to_string(&mut text).ok().and_then(|_| serde_json::from_str(&text).ok());
        Ok(Self { file: Some((path, file)), kept: kept.unwrap_or(fresh) })
    }

    /// The URL of the upload at the server, if this process or an earlier one has created the upload.
    pub(super) fn location(&self) -> Option<Url> {
        self.kept.location.as_ref().and_then(|location| location.parse().ok())
    }

    /// Keeps the URL of the upload. If this fails, a later process begins anew.
    pub(super) fn keep(&mut self, location: Option<&Url>) {
        self.kept.location = location.map(ToString::to_string);
        self.write();
    }

    /// Keeps what is about to be sent of the source.
    pub(super) fn sends(&mut self, source: &UploadSource) {
        (self.kept.stamp, self.kept.sent) = (source.stamp, source.prefix());
        self.write();
    }

    fn write(&mut self) {
        let Some((path, file)) = &mut self.file else { return };
        let mut write = || {
            let text = serde_json::to_vec(&self.kept)?;
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&text)
        };
        if let Err(error) = write() {
            warn(path, &error);
        }
    }

    /// Removes the state of an upload that is complete, or that has to begin anew.
    pub(super) fn remove(&mut self) {
        if let Some((path, _)) = self.file.take() {
            let _ = fs::remove_file(path); // the file may already be gone
        }
    }
}

impl Drop for UploadState {
    fn drop(&mut self) {
        // Without an upload at the server there is no state to keep.
        if self.kept.location.is_none() {
            self.remove();
        }
        // A child that another thread starts has copies of all open files until it executes its program. Closing alone
        // would leave the lock to the child until then.
        if let Some((_, file)) = &self.file {
            let _ = file.unlock(); // closing the file releases it, too, at the latest then
        }
    }
}

/// The file's name. It depends on the source, the URL and the name at the server.
fn name(url: &Url, source: &Path, name: Option<&[u8]>) -> String {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let parts = [url.as_str().as_bytes(), source.as_os_str().as_encoded_bytes()];
    for part in parts.into_iter().chain(name) {
        hasher.update(part);
        hasher.update(&[0]);
    }
    let digest = hasher.finish().digest;
    let name = digest[..16].iter().fold(0_u128, |name, byte| name << 8 | u128::from(*byte));
    format!("{name:032x}.json")
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    File::options().read(true).write(true).create(true).truncate(false).open(path)
}

fn warn(path: &Path, error: &io::Error) {
    let error = plain(error);
    tracing::warn!(path = %path.display(), error, "the state of the upload cannot be kept");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_belongs_to_one_process_and_ends_with_its_upload() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("source");
        fs::write(&path, b"x").unwrap();
        let source = UploadSource::opened(&path);
        let states = home.path().join("states");
        let url: Url = "http://h/files/".parse().unwrap();
        let open = || UploadState::open(Some(&states), &url, &source);
        let files = || fs::read_dir(&states).unwrap().count();
        let mut first = open().unwrap();
        assert!(matches!(open(), Err(PutError::Busy)));
        let location: Url = "http://h/files/1".parse().unwrap();
        first.keep(Some(&location));
        drop(first);
        let again = open().unwrap();
        // A child between fork and exec has such a copy: of the same open file, and so of its lock.
        let copy = again.file.as_ref().unwrap().1.try_clone().unwrap();
        assert_eq!(again.location(), Some(location.clone()));
        assert!(again.kept.stamp == source.stamp && again.kept.sent == source.prefix());
        drop(again);
        assert!(open().is_ok(), "the lock ends with the upload, not with the copy");
        drop(copy);
        // A file that was cut off is ignored.
        let kept = fs::read_dir(&states).unwrap().next().unwrap().unwrap().path();
        fs::write(&kept, br#"{"location":"htt"#).unwrap();
        assert_eq!(open().unwrap().location(), None);
        assert_eq!(files(), 0, "without a location nothing is kept");
        let mut last = open().unwrap();
        last.keep(Some(&location));
        last.remove();
        drop(last);
        assert_eq!(files(), 0);
    }
}
