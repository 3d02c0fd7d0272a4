//! One sync of a directory for all threads that wait for it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Shares the syncs of one directory. A sync that runs may have missed what a thread has just changed. So all threads that
/// ask during a sync wait for the next one, which one of them runs.
#[derive(Debug, Default)]
pub(crate) struct CommitGroup {
    asked: AtomicU64,
    last: Mutex<Last>,
}

/// The results so far. Requests have numbers in the order in which they asked.
#[derive(Debug, Default)]
struct Last {
    /// The last request that a successful sync covers.
    synced: u64,
    /// The last request that a failed sync covers.
    failed: u64,
}

impl CommitGroup {
    /// Returns after a sync that began after this call. The kernel reports an error to one sync only, so a sync that fails
    /// fails for all requests that it covers.
    pub(crate) fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let own = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.failed >= own {
            return Err(io::Error::other("a sync of the directory failed"));
        }
        if last.synced >= own {
            return Ok(());
        }
        let all = self.asked.load(Ordering::SeqCst);
        let done = sync();
        match done {
            Ok(()) => last.synced = all,
            Err(_) => last.failed = all,
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Lets ten threads ask while a first sync runs. Returns their results, and the number of further syncs.
    fn ten_at_once(fails: bool) -> (Vec<bool>, usize) {
        let (group, syncs) = (CommitGroup::default(), AtomicUsize::new(0));
        let gate = Barrier::new(2);
        let outcomes = std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                group.sync(|| {
                    gate.wait();
                    gate.wait();
                    Ok(())
                })
            });
            gate.wait();
            let ask = || {
                let synced = group.sync(|| {
                    syncs.fetch_add(1, Ordering::SeqCst);
                    if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
                });
                synced.is_ok()
            };
            let others: Vec<_> = (0..10).map(|_| scope.spawn(ask)).collect();
            while group.asked.load(Ordering::SeqCst) < 11 {
                std::thread::yield_now();
            }
            gate.wait();
            first.join().unwrap().unwrap();
            others.into_iter().map(|other| other.join().unwrap()).collect()
        });
        (outcomes, syncs.into_inner())
    }

    #[test]
    fn requests_during_a_sync_share_the_next_one() {
        assert_eq!(ten_at_once(false), (vec![true; 10], 1));
    }

    #[test]
    fn a_sync_that_fails_fails_for_all_requests_that_share_it() {
        assert_eq!(ten_at_once(true), (vec![false; 10], 1));
    }

    #[test]
    fn a_request_after_a_sync_gets_another_one() {
        let group = CommitGroup::default();
        assert!(group.sync(|| Err(io::ErrorKind::StorageFull.into())).is_err());
        group.sync(|| Ok(())).unwrap();
        assert!(group.sync(|| Err(io::ErrorKind::StorageFull.into())).is_err());
    }
}
