//! The client against servers that a test writes, and against nginx, Apache, rclone and the server of this crate.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "the harness shows it where a test is skipped")]

mod answers;
mod changed;
mod fake;
mod messages;
mod names;
mod peers;
mod proxies;
mod rules;
mod verified;

use std::ffi::OsString;
use std::future::pending;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wakeai_put::{
    Chunks, Protocol, Proxies, PutConfig, PutError, PutProgress, PutReport, parse_url, run,
};
use wakeai_units::{Bytes, Duration};

/// A file, and the directory of the states of unfinished uploads.
struct Home {
    directory: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: impl Into<OsString>) -> PathBuf {
        self.directory.path().join(name.into())
    }

    fn write(&self, name: impl Into<OsString>, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// An upload of `file` that keeps its state here.
    fn config(&self, file: &Path, url: &str) -> PutConfig {
        let (url, zone) = parse_url(url).unwrap();
        PutConfig {
            file: Some(file.to_owned()),
            url,
            zone,
            name: None,
            overwrite: false,
            chunks: Chunks::Auto,
            protocol: Protocol::Auto,
            verify: true,
            states: Some(self.path("states")),
            credentials: None,
            ca: None,
            proxies: Proxies::default(),
            algorithm: None,
            agent: None,
            timeout: None,
            retry_for: Duration::from_secs(20),
            spool: Bytes::new(1 << 20),
        }
    }
}

fn put(config: &PutConfig) -> Result<PutReport, PutError> {
    put_until(config, &mut |_| false)
}

/// An upload that is interrupted, as by a signal, when `stop` says so.
fn put_until(
    config: &PutConfig,
    stop: &mut dyn FnMut(PutProgress) -> bool,
) -> Result<PutReport, PutError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let mut tell = |progress| {
        if stop(progress) {
            let _ = sender.send(()); // the upload may have ended
        }
    };
    runtime.block_on(async {
        let stopped = std::pin::pin!(async {
            if receiver.recv().await.is_none() {
                pending::<()>().await;
            }
        });
        run(config, stopped, &mut tell).await
    })
}

/// Bytes in which a byte in the wrong place is found.
fn content(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(length)
    .collect()
}
