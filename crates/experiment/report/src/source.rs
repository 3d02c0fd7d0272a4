//! A result that a report shows, read from a file or a directory of `--out`.

use std::io;
use std::path::{Path, PathBuf};

use wakeai_results::document::NotAReport;
use wakeai_results::result::Report;
use wakeai_tables::TableError;

use crate::curves::{self, Curves};

/// The file of the result in a directory of `--out`.
const RESULT: &str = "result.json";

/// A result, with the scenario, the command and the records if its directory has them.
#[derive(Debug)]
pub struct Source {
    /// The name that the user gave.
    pub name: String,
    /// The result.
    pub report: Report,
    /// The scenario's text, from the directory.
    pub scenario: Option<String>,
    /// The command that makes the same runs again, from the directory.
    pub command: Option<String>,
    /// The records over time; empty without a directory.
    pub curves: Curves,
}

/// The reason why a result cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file does not contain a result.
    #[error("cannot use {}: {source}", path.display())]
    Result {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: NotAReport,
    },
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Source {
    /// Reads a file with a result, or a directory of `--out` with its records. Records that are not there are left out.
    ///
    /// # Errors
    ///
    /// [`SourceError`].
    pub fn read(path: &Path) -> Result<Self, SourceError> {
        let directory = path.is_dir().then_some(path);
        let file = directory.map_or(path.to_owned(), |directory| directory.join(RESULT));
        let text = std::fs::read_to_string(&file)
            .map_err(|source| SourceError::Read { path: file.clone(), source })?;
        let report = Report::from_json(text.strip_prefix('\u{feff}').unwrap_or(&text))
            .map_err(|source| SourceError::Result { path: file.clone(), source })?;
        let beside = |name: &str| std::fs::read_to_string(directory?.join(name)).ok();
        let manifest = beside("run.json").and_then(|text| serde_json::from_str(&text).ok());
        let manifest: serde_json::Value = manifest.unwrap_or_default();
        let curves = match directory {
            Some(directory) => curves::read(directory, &report)?,
            None => Curves::default(),
        };
        Ok(Self {
            name: path.display().to_string(),
            report,
            scenario: beside("scenario.toml"),
            command: manifest["command"].as_str().map(str::to_owned),
            curves,
        })
    }
}
