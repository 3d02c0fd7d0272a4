//! The state of an unfinished upload, so that a later process continues it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::Url;

use super::source::Source;
use crate::tus::{Algorithm, Hasher};

/// The file that keeps the state of one upload.
#[derive(Debug)]
pub(super) struct State {
    path: Option<PathBuf>,
    kept: Kept,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// The URL of the upload at the server.
    location: Option<String>,
    /// The source's size and time of change.
    len: u64,
    changed: (i64, i64),
}

impl State {
    /// The state of an upload of `source` to `url`. Another version of the source begins anew; an input that is no
    /// regular file keeps none.
    pub(super) fn open(directory: Option<&Path>, url: &Url, source: &Source) -> Self {
        let fresh = Kept { location: None, len: source.len, changed: source.changed };
        let full = source.path.as_ref().and_then(|path| path.canonicalize().ok());
        let Some((directory, full)) = directory.zip(full) else {
            return Self { path: None, kept: fresh };
        };
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(url.as_str().as_bytes());
        hasher.update(&[0]);
        hasher.update(full.as_os_str().as_encoded_bytes());
        let digest = hasher.finish().digest;
        let name = digest[..16].iter().fold(0_u128, |name, byte| name << 8 | u128::from(*byte));
        let path = directory.join(format!("{name:032x}.json"));
        let text = fs::read_to_string(&path).unwrap_or_default();
        let kept: Option<Kept> = serde_json::from_str(&text).ok();
        let kept = kept.filter(|kept| (kept.len, kept.changed) == (fresh.len, fresh.changed));
        Self { path: Some(path), kept: kept.unwrap_or(fresh) }
    }

    /// The URL of the upload at the server, where an earlier process has created it.
    pub(super) fn location(&self) -> Option<Url> {
        self.kept.location.as_ref().and_then(|location| location.parse().ok())
    }

    /// Keeps the URL of the upload. Where that fails, a later process begins anew.
    pub(super) fn keep(&mut self, location: Option<&Url>) {
        self.kept.location = location.map(ToString::to_string);
        let Some(path) = &self.path else { return };
        let write = || {
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            let fresh = path.with_extension("new");
            fs::write(&fresh, serde_json::to_vec(&self.kept)?)?;
            fs::rename(&fresh, path)
        };
        if let Err(error) = write() {
            tracing::warn!(path = %path.display(), %error, "the state of the upload cannot be kept");
        }
    }

    /// Removes the state of an upload that is complete.
    pub(super) fn remove(&self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path); // it may not exist
        }
    }
}
