//! Runs many jobs at once and shows the progress.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The time between two lines of progress where standard error is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(20);

/// Runs `work` on each of `items`, `jobs` at once, and shows each result to `done` as soon as it is
/// there. Returns the results in the order of the items. The first error ends the work.
///
/// # Errors
///
/// The first error of `work` or `done`.
pub(crate) fn each<T: Sync, R: Send>(
    what: &str,
    (items, jobs): (&[T], usize),
    work: impl Fn(&T) -> anyhow::Result<R> + Sync,
    mut done: impl FnMut(&T, &R) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let mut progress = PoolProgress::new(what, items.len());
    let (sender, made) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                {
                    let _ = sender.send((at, work(item))); // nobody receives it after an error
                }
            });
        }
        drop(sender);
        let mut results = BTreeMap::new();
        for (at, result) in made {
            let result = result.and_then(|result| done(&items[at], &result).map(|()| result));
            results.insert(at, result.inspect_err(|_| next.store(items.len(), Ordering::Relaxed))?);
            progress.step();
        }
        progress.end();
        Ok(results.into_values().collect())
    })
}

struct PoolProgress {
    what: String,
    of: usize,
    made: usize,
    began: Instant,
    said: Instant,
    in_place: bool,
}

impl PoolProgress {
    fn new(what: &str, of: usize) -> Self {
        let now = Instant::now();
        let in_place = std::io::stderr().is_terminal();
        Self { what: what.to_owned(), of, made: 0, began: now, said: now, in_place }
    }

    fn step(&mut self) {
        self.made += 1;
        if self.in_place || self.said.elapsed() >= BETWEEN_LINES {
            self.said = Instant::now();
            self.say(if self.in_place { "\r" } else { "" }, if self.in_place { "" } else { "\n" });
        }
    }

    fn end(&self) {
        if self.of > 0 {
            self.say(if self.in_place { "\r" } else { "" }, "\n");
        }
    }

    fn say(&self, before: &str, after: &str) {
        let took = self.began.elapsed().as_secs_f64();
        let left = took / self.made.max(1) as f64 * (self.of - self.made) as f64;
        // Progress that cannot be shown is no reason to end the runs.
        let _ = write!(
            std::io::stderr(),
            "{before}{}: {} of {} runs, {took:.0} s, {left:.0} s left {after}",
            self.what,
            self.made,
            self.of,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_and_an_error_ends_the_work() {
        let items: Vec<u32> = (0..100).collect();
        let mut sum = 0;
        let add = |_: &u32, item: &u32| {
            sum += item;
            Ok(())
        };
        assert_eq!(each("x", (&items, 3), |item| Ok(*item), add).unwrap(), items);
        assert_eq!(sum, 4950);
        let fails = |item: &u32| if *item == 5 { anyhow::bail!("five") } else { Ok(()) };
        let error = each("x", (&items, 3), fails, |_, ()| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "five");
    }
}
