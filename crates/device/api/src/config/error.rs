//! The problems of a configuration, with their positions in the file.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// The reason why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}: {source}; name another file with --config")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A required key is missing.
    #[error("{}: missing field `{key}`", .file.as_deref().unwrap_or(Path::new("configuration")).display())]
    Missing {
        /// The file, if the configuration comes from one.
        file: Option<PathBuf>,
        /// The key.
        key: &'static str,
    },
    /// A value cannot be written as TOML.
    #[error("the configuration cannot be written as TOML: {0}")]
    Write(#[from] toml::ser::Error),
    /// A value is invalid.
    #[error("{}:{line}: {}{problem}", .file.as_deref().unwrap_or(Path::new("configuration")).display(), in_key(.key))]
    Invalid {
        /// The file, if the configuration comes from one.
        file: Option<PathBuf>,
        /// The line, counted from 1.
        line: usize,
        /// The dotted key, such as `law.ceiling`. It is empty if the text is not TOML.
        key: String,
        /// The value that was found, and the values that are allowed.
        problem: String,
    },
}

fn in_key(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

impl ConfigError {
    pub(super) fn in_file(mut self, path: &Path) -> Self {
        if let Self::Invalid { file, .. } | Self::Missing { file, .. } = &mut self {
            *file = Some(path.to_owned());
        }
        self
    }

    /// The line number that problems are sorted by. Missing keys come after the last line.
    pub(super) fn line(&self) -> usize {
        match self {
            Self::Read { .. } | Self::Write(_) => 0,
            Self::Invalid { line, .. } => *line,
            Self::Missing { .. } => usize::MAX,
        }
    }

    pub(super) fn from_toml(text: &str, error: &toml::de::Error) -> Self {
        Self::at(text, error.span(), error.message().trim().replace('\n', "; "))
    }

    /// The error for a problem in `text`, at the byte range `span`.
    pub(super) fn at(text: &str, span: Option<Range<usize>>, problem: String) -> Self {
        let start = span.map_or(0, |span| span.start).min(text.len());
        let before = text.get(..start).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_text = text.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or("");
        Self::Invalid {
            file: None,
            line: before.matches('\n').count() + 1,
            key: key_at(before, line_text),
            problem,
        }
    }
}

/// The dotted key that `line` sets. The key belongs to the last table that opens in the text
/// `before` the line.
fn key_at(before: &str, line: &str) -> String {
    let Some((name, _)) = line.split_once('=') else { return String::new() };
    let table = before
        .lines()
        .rev()
        .filter_map(|line| line.trim().strip_prefix('[')?.split_once(']'))
        .map(|(table, _)| table.trim())
        .next();
    let name = name.trim().trim_matches('"');
    table.map_or_else(|| name.to_owned(), |table| format!("{table}.{name}"))
}
