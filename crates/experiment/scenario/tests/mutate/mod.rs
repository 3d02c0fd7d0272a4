//! Mutates scenario files. The same number always gives the same file.

mod exercise;

pub(crate) use exercise::exercise;
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// A file with nearly every key, in addition to the files in `scenarios`.
const EVERYTHING: &str = include_str!("everything.toml");

/// Keys and values of scenarios, and numbers at the limits of their ranges.
const WORDS: [&str; 46] = [
    "name",
    "duration",
    "warmup",
    "access_point",
    "standard",
    "802.11n",
    "802.11ax",
    "802.11g",
    "stations",
    "count",
    "10000",
    "9999",
    "rate",
    "54Mbit/s",
    "0Mbit/s",
    "1Gbit/s",
    "wired_delay",
    "60s",
    "0s",
    "18446744073709551615s",
    "584y",
    "flows",
    "from",
    "to",
    "server",
    "tablet1",
    "tablet12",
    "jitter",
    "host_queue",
    "mac80211",
    "chunks",
    "auto",
    "events",
    "conditions",
    "law",
    "fixed",
    "bounds",
    "set",
    "-1",
    "9223372036854775807",
    "99999999999999999999",
    "1e999",
    "nan",
    "0.5",
    "true",
    "1979-05-27",
];

/// Characters with a meaning in TOML, and a few others.
const CHARACTERS: [&str; 16] =
    ["\"", "'", "[", "]", "[[", "]]", "{", "}", "=", ".", ",", "#", "\n", "\0", "\u{feff}", "é"];

/// The files that are mutated.
pub(crate) fn seeds() -> Vec<String> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let entries = std::fs::read_dir(directory).expect("the scenarios are there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let shipped = paths.iter().map(|path| std::fs::read_to_string(path).expect("readable"));
    shipped.chain([EVERYTHING.to_owned()]).collect()
}

/// Mutation number `number` of one of `seeds`.
pub(crate) fn mutated(seeds: &[String], number: u64) -> String {
    let mut rng = Pcg64Mcg::seed_from_u64(number);
    let mut text = seeds[below(&mut rng, seeds.len())].clone();
    for _ in 0..=below(&mut rng, 6) {
        text = match below(&mut rng, 3) {
            0 => bytes(&mut rng, text),
            1 => tokens(&mut rng, &text),
            _ => lines(&mut rng, &text),
        };
    }
    text
}

fn below(rng: &mut Pcg64Mcg, limit: usize) -> usize {
    (rng.next_u64() % limit.max(1) as u64) as usize
}

/// Flips a bit, removes or doubles a run of bytes, cuts the text off, or adds characters.
fn bytes(rng: &mut Pcg64Mcg, text: String) -> String {
    let mut bytes = text.into_bytes();
    let at = below(rng, bytes.len());
    let end = (at + 1 + below(rng, 16)).min(bytes.len());
    match below(rng, 5) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << below(rng, 8),
        1 if !bytes.is_empty() => drop(bytes.drain(at..end)),
        2 if !bytes.is_empty() => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        3 => bytes.truncate(at),
        _ => {
            let added = CHARACTERS[below(rng, CHARACTERS.len())];
            let times = if below(rng, 50) == 0 { 300 } else { 1 };
            bytes.splice(at..at, added.repeat(times).into_bytes());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Replaces a word or number by another one from the file or from [`WORDS`].
fn tokens(rng: &mut Pcg64Mcg, text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (start, is_word(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                words.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    if words.is_empty() {
        return text.to_owned();
    }
    let replaced = words[below(rng, words.len())].clone();
    let other = match below(rng, 3) {
        0 => &text[words[below(rng, words.len())].clone()],
        _ => WORDS[below(rng, WORDS.len())],
    };
    format!("{}{other}{}", &text[..replaced.start], &text[replaced.end..])
}

/// Removes a line, copies a line to another place, or swaps two lines.
fn lines(rng: &mut Pcg64Mcg, text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return String::new();
    }
    let (one, other) = (below(rng, lines.len()), below(rng, lines.len()));
    match below(rng, 3) {
        0 => drop(lines.remove(one)),
        1 => lines.insert(other, lines[one]),
        _ => lines.swap(one, other),
    }
    lines.join("\n")
}
