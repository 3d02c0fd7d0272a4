//! The text that settings were read from. Problems name places in it.

use std::path::PathBuf;
use std::sync::Arc;

use toml::de::DeTable;

use crate::error::{Place, Problem, Refused};
use crate::problems::{Finding, Problems};
use crate::tree::{self, Origin, Table};

/// The largest text that is read, in bytes.
const LARGEST: usize = 1 << 20;
/// The largest number of problems that an error lists.
const LISTED: usize = 20;

/// The text that settings were read from.
#[derive(Clone, Debug)]
pub struct Source {
    /// What the text is, such as "scenario".
    what: &'static str,
    text: Arc<str>,
    /// The file, if the text comes from one.
    pub file: Option<PathBuf>,
    /// The keys of the overrides, in their order.
    pub overrides: Vec<String>,
}

impl Source {
    /// The largest text that is read, in bytes.
    pub const LARGEST: usize = LARGEST;

    /// The text of a `what`, such as a "scenario".
    pub fn new(what: &'static str, text: &str, file: Option<PathBuf>) -> Self {
        Self { what, text: Arc::from(text), file, overrides: Vec::new() }
    }

    /// The tree of the text.
    ///
    /// # Errors
    ///
    /// The text is too long or no TOML.
    pub fn parse(&self) -> Result<Table, Refused> {
        let problems = Problems::default();
        if self.text.len() > LARGEST {
            let allowed = format!("at most {LARGEST} bytes");
            problems.add(Origin::START, "", "a larger file", allowed);
            problems.check().map_err(|findings| self.refuse(findings))?;
        }
        let (document, errors) = DeTable::parse_recoverable(&self.text);
        let problems = Problems::default();
        for error in &errors {
            let start = error.span().map_or(0, |span| span.start);
            problems.add(Origin::File(start), "", tree::beginning(error.message(), 200), "TOML");
        }
        problems.check().map_err(|findings| self.refuse(findings))?;
        Ok(tree::of_document(document.get_ref()))
    }

    /// The error for these problems.
    pub fn refuse(&self, mut findings: Vec<Finding>) -> Refused {
        findings.sort();
        let more = findings.len().saturating_sub(LISTED);
        let problems = findings.into_iter().take(LISTED).map(|finding| {
            let Finding { place, key, found, allowed, condition } = finding;
            Problem { place: self.place(place), key, found, allowed, condition }
        });
        let (what, file) = (self.what, self.file.clone());
        Refused { what, file, problems: problems.collect(), more }
    }

    fn place(&self, origin: Origin) -> Place {
        match origin {
            Origin::File(offset) => place_in(&self.text, offset),
            Origin::Override(index) => Place::Override(self.overrides[index].clone()),
        }
    }
}

/// The line and the column, from 1, of a byte offset in `text`.
fn place_in(text: &str, offset: usize) -> Place {
    let offset = text.floor_char_boundary(offset);
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    Place::File { line, column: before[start..].chars().count() + 1 }
}
