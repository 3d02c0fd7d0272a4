//! The problems of a scenario, and their places.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

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

/// One problem of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place of the value.
    pub place: Place,
    /// The key, in the form that `--set` takes; empty for a syntax error.
    pub key: String,
    /// The condition whose `set` caused the problem, if one did.
    pub condition: Option<String>,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub allowed: String,
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

/// A scenario that was refused.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The scenario file could not be read.
    #[error("cannot read the scenario {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The content is not a scenario.
    #[error("{}", refusal(file.as_deref(), problems, *more))]
    Refused {
        /// The file, if the scenario came from one.
        file: Option<PathBuf>,
        /// The problems in the order of the file; never empty.
        problems: Vec<Problem>,
        /// The number of further problems that are not listed.
        more: usize,
    },
}

fn refusal(file: Option<&Path>, problems: &[Problem], more: usize) -> String {
    let name = file.map_or_else(|| "scenario".to_owned(), |file| file.display().to_string());
    let mut text = format!("{name} is refused:");
    for problem in problems {
        let _ = write!(text, "\n  {problem}"); // writing to a String never fails
    }
    if more > 0 {
        let _ = write!(text, "\n  and {more} more");
    }
    text
}

impl ScenarioError {
    /// The problems of the content; empty if the file could not be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Unreadable { .. } => &[],
            Self::Refused { problems, .. } => problems,
        }
    }
}
