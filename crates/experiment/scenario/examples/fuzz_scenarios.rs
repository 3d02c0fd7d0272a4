//! Reads mutated scenario files, by default a million: `fuzz_scenarios [COUNT [FIRST]]`.
//!
//! If a file breaks the reader, it prints the file's number and text and exits with status 1. It
//! also exits with status 1 if memory grows.

#[path = "../tests/mutate/mod.rs"]
mod mutate;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

/// The growth of resident memory, in KiB, that is tolerated after the first tenth of the files.
const SLACK_KIB: u64 = 16 * 1024;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let mut number = |default| arguments.next().unwrap_or(Ok(default));
    let (Ok(count), Ok(first)) = (number(1_000_000), number(0)) else {
        return finish("usage: fuzz_scenarios [COUNT [FIRST]]", 2);
    };
    let early = read(first, count / 10);
    let before = resident_kib();
    let late = read(first + count / 10, count - count / 10);
    let after = resident_kib();
    let (Some(early), Some(late)) = (early, late) else { return ExitCode::FAILURE };
    let accepted = early + late;
    let text = format!(
        "{count} files from number {first}: {accepted} accepted, {} refused; resident memory \
         {before} KiB after a tenth, {after} KiB at the end",
        count - accepted
    );
    finish(&text, u8::from(after > before + SLACK_KIB))
}

fn finish(text: &str, status: u8) -> ExitCode {
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::from(status)
}

/// Reads files on all cores. Returns how many were accepted, or `None` if a file broke the reader.
fn read(first: u64, count: u64) -> Option<u64> {
    let seeds = mutate::seeds();
    let next = AtomicU64::new(first);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || {
            let mut accepted = 0;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= first + count {
                    return Some(accepted);
                }
                let text = mutate::mutated(&seeds, number);
                let Ok(read) = std::panic::catch_unwind(|| mutate::exercise(&text)) else {
                    finish(&format!("file {number} breaks the reader:\n{text}"), 1);
                    return None;
                };
                accepted += u64::from(read);
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().ok().flatten()).sum()
    })
}

/// The resident memory of this process, from `/proc/self/status`.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
