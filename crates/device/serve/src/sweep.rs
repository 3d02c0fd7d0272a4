//! Removes uploads that have expired, finishes complete ones, and looks whether the directory is still there.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::append::finish;
use super::files::Directory;
use super::server::UploadServer;

/// The longest time between two sweeps.
const LONGEST: Duration = Duration::from_mins(1);
const SHORTEST: Duration = Duration::from_millis(250);
/// The longest time between two records of the time. A boot makes uploads younger by at most that.
const TIME_KEPT: Duration = Duration::from_mins(10);
/// The time between two looks at the directory.
const LOOK: Duration = Duration::from_secs(5);

/// Runs without end. Reports a directory that was removed, also if no client comes.
pub(crate) async fn watch(server: Rc<UploadServer>) {
    loop {
        let _ = server.store.blocking(|_| Ok(())).await; // it checks the directory
        tokio::time::sleep(LOOK).await;
    }
}

/// Runs without end. Removes expired uploads, and finishes complete uploads whose file has not been moved yet.
pub(crate) async fn sweep(server: Rc<UploadServer>) {
    let expire_after: Duration = server.config.limits.expire_after.into();
    let pause = (expire_after / 4).clamp(SHORTEST, LONGEST);
    let mut kept = Instant::now();
    loop {
        if kept.elapsed() >= (expire_after / 8).clamp(LONGEST, TIME_KEPT) {
            kept = Instant::now();
            let _ = server.store.blocking(|files| files.journal.keep_time()).await;
        }
        let entries: Vec<_> = server.store.entries.borrow().values().cloned().collect();
        for entry in entries {
            // An upload that a request holds has not expired.
            let Some(mut state) = entry.try_hold() else { continue };
            if state.is_removed {
                continue;
            }
            if server.store.left_ms(&state) == 0 {
                let is_finished = state.is_finished;
                if server.store.remove(&entry, &mut state).await.is_ok() && !is_finished {
                    server.counters.expired.one();
                }
            } else if state.upload.is_complete() && !state.is_finished {
                let _ = finish(&server, &entry, &mut state).await;
            }
        }
        server.forget_pacers();
        if server.config.metrics.is_some() {
            server.disk_free.set(server.store.blocking(Directory::free).await.ok());
        }
        tokio::time::sleep(pause).await;
    }
}
