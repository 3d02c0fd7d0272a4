//! No Debug output reaches a user: a test reads the sources of every crate, and finds each text of an
//! error, a message or a log line that formats a value with `{:?}`. Debug of a *text* quotes it, which
//! is meant, and stands in the list below.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The macros and attributes whose text a user reads.
const SPEAK: [&str; 17] = [
    "error",
    "format",
    "format_args",
    "write",
    "writeln",
    "print",
    "println",
    "eprint",
    "eprintln",
    "anyhow",
    "bail",
    "ensure",
    "info",
    "warn",
    "note",
    "context",
    "custom",
];

/// Names that stand for a text that somebody has written, everywhere in the sources.
const TEXTS: [&str; 3] = ["name:?", "text:?", "found:?"];

/// The other texts that are quoted with `{:?}`: the file below `crates`, and the placeholder.
const QUOTED: &[(&str, &str)] = &[
    ("device/api/src/messages.rs", "NO_RATE:?"),
    ("device/assign/src/lib.rs", "algorithm:?"),
    ("cli/src/args/use_algorithm.rs", "port:?"),
    ("cli/src/commands/agent.rs", "level:?"),
    ("cli/src/commands/probe/air/text.rs", "ssid:?"),
    ("cli/src/commands/put.rs", ":?"),
    ("core/control/src/presence/fleet/figures.rs", ":?"),
    ("device/host/src/cgroup.rs", "0:?"),
    ("device/host/src/cgroup.rs", "unit:?"),
    ("device/host/src/network.rs", "0:?"),
    ("device/host/src/route.rs", "0:?"),
    ("device/kernel/src/assign/assignment.rs", ":?"),
    ("device/net/src/zone.rs", "zone:?"),
    ("device/proxy/src/config.rs", "0:?"),
    ("experiment/python/src/scenario.rs", ":?"),
    ("experiment/scenario/src/solo.rs", ":?"), // a key, for comparisons
    ("core/settings/src/tree.rs", "number:?"),
    ("experiment/tables/src/reader.rs", "column:?"),
    ("experiment/tables/src/reader.rs", "expected:?"),
    ("device/put/src/certificate.rs", "alert:?"), // the name of a TLS alert (RFC 8446 section 6)
    ("core/units/src/parse.rs", ":?"),
    ("experiment/validation/src/main.rs", "only:?"),
    ("experiment/validation/src/main.rs", "strange:?"),
    ("device/agent/src/error.rs", "0:?"),
    ("device/host/src/apart.rs", "0:?"),
    ("device/net/src/local.rs", "0:?"),
    ("device/net/src/lookup.rs", "0:?"),
];

/// A string literal: the macro or the attribute that it is an argument of, and its text.
#[derive(Debug)]
struct Literal {
    within: String,
    text: String,
}

/// The string literals of a source text, up to its tests.
fn literals(source: &str) -> Vec<Literal> {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let letters: Vec<char> = source.chars().collect();
    let at = |place: usize| letters.get(place).copied().unwrap_or('\0');
    let (mut found, mut open, mut place) = (Vec::new(), Vec::<String>::new(), 0);
    while place < letters.len() {
        match (at(place), at(place + 1)) {
            ('/', '/') => {
                while place < letters.len() && at(place) != '\n' {
                    place += 1;
                }
            }
            ('\'', '\\') => place += 3,
            ('\'', _) if at(place + 2) == '\'' => place += 2,
            ('r', '#' | '"') if !is_word(at(place.wrapping_sub(1))) => {
                let hashes = (place + 1..letters.len()).take_while(|here| at(*here) == '#').count();
                if at(place + 1 + hashes) == '"' {
                    let start = place + 2 + hashes;
                    let end = format!("\"{}", "#".repeat(hashes));
                    let rest: String = letters[start..].iter().collect();
                    let length = rest.find(&end).unwrap_or(rest.len());
                    let text = rest[..length].to_owned();
                    place = start + text.chars().count() + hashes;
                    found.push(Literal { within: open.last().cloned().unwrap_or_default(), text });
                }
            }
            ('"', _) => {
                let start = place + 1;
                place = start;
                while place < letters.len() && at(place) != '"' {
                    place += if at(place) == '\\' { 2 } else { 1 };
                }
                let text = letters[start..place].iter().collect();
                found.push(Literal { within: open.last().cloned().unwrap_or_default(), text });
            }
            ('(' | '[' | '{', _) => {
                let name = called(&letters[..place]);
                open.push(if name.is_empty() {
                    open.last().cloned().unwrap_or_default()
                } else {
                    name
                });
            }
            (')' | ']' | '}', _) => drop(open.pop()),
            _ => {}
        }
        place += 1;
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The name of the macro, function or attribute whose parenthesis follows.
fn called(before: &[char]) -> String {
    let is_macro = before.last() == Some(&'!');
    let before = if is_macro { &before[..before.len() - 1] } else { before };
    let name: String = before.iter().rev().take_while(|letter| is_word(**letter)).collect();
    name.chars().rev().collect()
}

/// The placeholders of a format string that show a value's Debug.
fn debugged(text: &str) -> Vec<String> {
    let inside = text.replace("{{", "").replace("}}", "");
    let places = inside.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let shown = places.map(|(inside, _)| inside);
    shown
        .filter(|inside| inside.ends_with('?') && inside.contains(':'))
        .map(str::to_owned)
        .collect()
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap();
        if path.is_dir() && !["tests", "benches", "target"].contains(&name.as_str()) {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

#[test]
fn no_message_shows_the_debug_output_of_a_value() {
    let crates = &wakeai_tests::root().join("crates");
    let mut files = Vec::new();
    sources(crates, &mut files);
    assert!(files.len() > 300, "the sources are found");
    let allowed: BTreeSet<(String, String)> =
        QUOTED.iter().map(|(file, shown)| ((*file).to_owned(), (*shown).to_owned())).collect();
    let (mut found, mut literals_seen) = (BTreeSet::new(), 0);
    for path in files {
        let file = path.strip_prefix(crates).unwrap().display().to_string();
        if file.starts_with("experiment/guest/") {
            continue; // it speaks to developers
        }
        for literal in literals(&std::fs::read_to_string(&path).unwrap()) {
            literals_seen += 1;
            if SPEAK.contains(&literal.within.as_str()) {
                let shown = debugged(&literal.text).into_iter();
                let shown = shown.filter(|shown| !TEXTS.contains(&shown.as_str()));
                found.extend(shown.map(|shown| (file.clone(), shown)));
            }
        }
    }
    assert!(literals_seen > 3000, "the literals are found: {literals_seen}");
    let new: Vec<_> = found.difference(&allowed).collect();
    assert!(
        new.is_empty(),
        "Debug output in messages. Where the value is a text that is quoted, add it to QUOTED; otherwise write \
         what a user understands: {new:#?}"
    );
}

#[test]
fn debug_output_is_found_in_attributes_macros_and_raw_strings() {
    let source = r##"
        #[error("cannot {asked}: {source:?}")]
        // warn!("{comment:?}")
        fn f() { let c = '"'; let t = format!("{}", x.map(|y| format!(r#"{y:#?}"#))); warn!(a = 1, "{0:?} {{z:?}}"); }
        assert!(ok, "{kept:?}");
        #[cfg(test)]
mod tests { fn g() { format!("{:?}", 1); } }
    "##;
    let shown = |literal: &Literal| {
        let speaks = SPEAK.contains(&literal.within.as_str());
        if speaks { debugged(&literal.text) } else { Vec::new() }
    };
    let found: Vec<String> = literals(source).iter().flat_map(shown).collect();
    assert_eq!(found, ["source:?", "y:#?", "0:?"]);
}
