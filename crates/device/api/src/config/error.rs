//! The reasons why a configuration cannot be used.

use std::path::PathBuf;

use wakeai_settings::Refused;

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
    /// A path cannot be written as TOML, because it is not UTF-8.
    #[error("the path {} cannot be written as TOML: it is not UTF-8", .0.display())]
    Path(PathBuf),
    /// The text is not a configuration.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl ConfigError {
    /// The problems, each in one line that names the file.
    pub fn lines(&self) -> Vec<String> {
        let Self::Refused(Refused { what, file, problems, .. }) = self else {
            return vec![self.to_string()];
        };
        let file = file.as_ref().map_or((*what).to_owned(), |file| file.display().to_string());
        problems.iter().map(|problem| format!("{file}: {problem}")).collect()
    }
}
