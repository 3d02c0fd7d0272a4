//! Files in JSON: loads and stores them, with errors that name the file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wakeai_results::result::Report;

/// Reads a file.
///
/// # Errors
///
/// The file cannot be read, or is not `what`.
pub fn load<T: DeserializeOwned>(path: &Path, what: &str) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| format!("{} is not {what}", path.display()))
}

/// Reads a file. The value is the default if there is no such file.
///
/// # Errors
///
/// Those of [`load`].
pub fn load_if_any<T: DeserializeOwned + Default>(path: &Path, what: &str) -> anyhow::Result<T> {
    if path.exists() { load(path, what) } else { Ok(T::default()) }
}

/// The reports by their keys, as the members of an object in JSON, one per line.
pub fn report_lines(reports: &BTreeMap<String, Report>) -> String {
    let lines = reports.iter().map(|(key, report)| {
        format!("{}:{}", serde_json::Value::from(key.as_str()), report.to_json())
    });
    lines.collect::<Vec<_>>().join(",\n")
}

/// Writes a file of reports by their keys.
///
/// # Errors
///
/// The file cannot be written.
pub fn store_reports(path: &Path, reports: &BTreeMap<String, Report>) -> anyhow::Result<()> {
    let text = format!("{{\n{}\n}}\n", report_lines(reports));
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// Writes a file. It is replaced as a whole.
///
/// # Errors
///
/// The file cannot be written.
pub fn store(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let named = || path.display().to_string();
    std::fs::write(&beside, serde_json::to_string(value)?).with_context(named)?;
    std::fs::rename(&beside, path).with_context(named)
}

/// A report without runs, for tests.
#[cfg(test)]
pub(crate) fn empty_report(guest: Option<wakeai_results::result::GuestMachine>) -> Report {
    Report {
        scenario: "a".to_owned(),
        world: "lab".to_owned(),
        version: "0".to_owned(),
        seed: 1,
        runs: Vec::new(),
        guest,
        failed: None,
    }
}
