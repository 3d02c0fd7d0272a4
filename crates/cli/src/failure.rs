//! The failure of a command, with its exit status.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// The reason why a command did not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    /// Exit status 1: the command failed, or its run was not faithful.
    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self { code: 1, error: error.into() }
    }

    /// Exit status 2: bad usage, a bad configuration or a bad scenario.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { code: 2, error: error.into() }
    }

    /// Exit status 77 if a privilege or a kernel feature is missing, otherwise 1.
    pub(crate) fn missing_if(missing: bool, error: impl Into<anyhow::Error>) -> Self {
        Self { code: if missing { 77 } else { 1 }, error: error.into() }
    }

    /// Exit status 3: another program has changed what the command holds on the host, and it is not put back.
    pub(crate) fn lost(error: impl Into<anyhow::Error>) -> Self {
        Self { code: wakeai_host::LOST_STATUS, error: error.into() }
    }

    /// The same failure with exit status 77: a privilege or a kernel feature is missing.
    pub(crate) fn missing(self) -> Self {
        Self { code: 77, ..self }
    }

    /// The exit status that the error itself names.
    pub(crate) fn with_status(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into() }
    }

    /// The exit status.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut said = self.error.to_string();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            // Some errors name their cause in their own text.
            if !said.contains(&cause) {
                said = format!("{said}: {cause}");
            }
        }
        f.write_str(&said)
    }
}

impl From<wakeai_kernel::Error> for Failure {
    fn from(error: wakeai_kernel::Error) -> Self {
        Self::missing_if(error.is_missing(), error)
    }
}

/// Prints a note for the user on standard error, separate from the command's output. A note that cannot be
/// written is lost: there is no other place for it, and the exit status still tells how the command ended.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "wakeai: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_named_once() {
        let cause = || io::Error::from_raw_os_error(2);
        let silent = anyhow::Error::new(cause()).context("cannot start");
        let expected = "cannot start: No such file or directory (os error 2)";
        assert_eq!(Failure::failed(silent).to_string(), expected);
        let telling = anyhow::Error::new(cause()).context(format!("cannot start: {}", cause()));
        assert_eq!(Failure::failed(telling).to_string(), expected);
    }
}
