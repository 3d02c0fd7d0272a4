//! The problems of a text, and their places.

use std::fmt;
use std::path::PathBuf;

/// The place of a problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A place in the file. Line and column count from 1.
    File {
        /// Line.
        line: usize,
        /// Column, in characters.
        column: usize,
    },
    /// An override `--set KEY=VALUE`, by its key.
    Override(String),
}

/// One problem of a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem<P = Place> {
    /// The place of the value.
    pub place: P,
    /// The key, in the form that `--set` takes; empty for a syntax error.
    pub key: String,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub allowed: String,
    /// The condition whose `set` caused the problem, if one did.
    pub condition: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File { line, column } => write!(f, "line {line}, column {column}: ")?,
            Place::Override(key) => write!(f, "--set {key}: ")?,
        }
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        write!(f, "found {}; allowed: {}", self.found, self.allowed)?;
        match &self.condition {
            Some(condition) => write!(f, " (with the `set` of condition \"{condition}\" applied)"),
            None => Ok(()),
        }
    }
}

/// A text that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What the text is, such as "scenario".
    pub what: &'static str,
    /// The file, if the text comes from one.
    pub file: Option<PathBuf>,
    /// The problems in the order of the text; never empty.
    pub problems: Vec<Problem>,
    /// The number of further problems that are not listed.
    pub more: usize,
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{} is refused:", file.display())?,
            None => write!(f, "{} is refused:", self.what)?,
        }
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))?;
        if self.more > 0 {
            write!(f, "\n  and {} more", self.more)?;
        }
        Ok(())
    }
}
