//! Scripts: segments go into one end of a connection at virtual times, and exactly the segments
//! that the script names must come out, at the times in the script.
//!
//! Data is counted in full segments: segment 0 has the first [`MSS`] bytes. A script that fails
//! shows all segments that went in and came out until then.

mod link;
mod receiver;
mod sender;

use std::fmt::Write;
use std::ops::Range;

use wakeai_tcp::Segment;
use wakeai_units::{Duration, Instant};

pub(crate) use link::{Link, Loss, Pair};
pub(crate) use receiver::ReceiverScript;
pub(crate) use sender::SenderScript;

/// Payload of a full segment.
pub(crate) const MSS: u64 = 1448;

/// The position at which a segment begins. It is also the number that acknowledges everything
/// before it.
pub(crate) fn position(segment: u64) -> u64 {
    1 + segment * MSS
}

/// The number of lines of a transcript that a failure shows.
const SHOWN: usize = 60;

/// The positions at which `segments` begin and end.
pub(crate) fn positions(segments: &Range<u64>) -> (u64, u64) {
    (position(segments.start), position(segments.end))
}

/// `micros` after the epoch.
pub(crate) fn at_us(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

/// `millis` after the epoch.
pub(crate) fn at_ms(millis: u64) -> Instant {
    at_us(1000 * millis)
}

/// A span of `millis`.
pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The clock of the timestamps at `now`.
pub(crate) fn clock_ms(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000 + 1) as u32
}

/// The segments that went in and came out, to explain a failure.
#[derive(Debug, Default)]
pub(crate) struct Transcript(String);

impl Transcript {
    pub(crate) fn note(&mut self, now: Instant, what: &str) {
        let _ = writeln!(self.0, "{:>10.3} ms  {what}", now.as_nanos() as f64 / 1e6);
    }

    pub(crate) fn segment(&mut self, now: Instant, direction: char, segment: &Segment) {
        self.note(now, &format!("{direction} {}", describe(segment)));
    }

    #[track_caller]
    pub(crate) fn fail(&self, now: Instant, complaint: &str) -> ! {
        let lines: Vec<&str> = self.0.lines().collect();
        let end = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
        panic!("{complaint}\nat {:.3} ms; the end was\n{end}", now.as_nanos() as f64 / 1e6);
    }
}

/// A segment as one line. A position is given as a segment number where it is the edge of a
/// segment.
pub(crate) fn describe(segment: &Segment) -> String {
    let flags = segment.flags;
    let mut text = String::new();
    let letters =
        [(flags.syn, 'S'), (flags.fin, 'F'), (flags.rst, 'R'), (flags.psh, 'P'), (flags.ack, '.')];
    for (set, letter) in letters {
        if set {
            text.push(letter);
        }
    }
    let end = segment.seq + u64::from(segment.len);
    let _ = write!(text, " {}..{}", place(segment.seq), place(end));
    if flags.ack {
        let _ = write!(text, " ack {} win {}", place(segment.ack), segment.window);
    }
    for &(start, end) in &*segment.sack {
        let _ = write!(text, " sack {}..{}", place(start), place(end));
    }
    if let Some(timestamp) = segment.timestamp {
        let _ = write!(text, " ts {} echo {}", timestamp.value, timestamp.echo);
    }
    text
}

fn place(position: u64) -> String {
    match position.checked_sub(1) {
        Some(bytes) if bytes % MSS == 0 => format!("#{}", bytes / MSS),
        _ => position.to_string(),
    }
}
