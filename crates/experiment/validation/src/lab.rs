//! The lab's runs, which are stored in `validation/lab.json`. They need root and a quiet machine,
//! so they are made only on request. Unfaithful runs are left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use wakeai_results::result::{Report, Run};

use crate::files;
use crate::job::Job;

/// The path of the file, from the project's root.
pub const FILE: &str = "validation/lab.json";

/// Ordinary processes wait for a processor. The bound on the 99th percentile of these waits, ms. A
/// run with longer waits is not used, because its agents decided late. `validation/papers/runs.py` has the same bound.
const WAITS_MS: f64 = 50.0;

/// The lab's runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabData {
    /// The kernel on which they were made.
    pub kernel: String,
    /// The reports by scenario file.
    pub reports: BTreeMap<String, Report>,
}

impl LabData {
    /// Reads the file; the data are empty if it does not exist.
    ///
    /// # Errors
    ///
    /// The file is not as [`LabData::store`] writes it.
    pub fn load(root: &Path) -> anyhow::Result<Self> {
        files::load_if_any(&root.join(FILE), "a file of the lab's runs")
    }

    /// Writes the file, with one report per line.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn store(&self, root: &Path) -> anyhow::Result<()> {
        let kernel = serde_json::Value::from(self.kernel.as_str());
        let text = format!(
            "{{\"kernel\":{kernel},\"reports\":{{\n{}\n}}}}\n",
            files::report_lines(&self.reports)
        );
        std::fs::write(root.join(FILE), text)?;
        Ok(())
    }

    /// The runs of `job` that were faithful, with short waits for a processor; empty if there are
    /// none.
    pub fn runs(&self, job: &Job) -> Vec<Run> {
        self.reports.get(&job.file).map(|report| usable(report, job)).unwrap_or_default()
    }

    /// Runs these conditions of a file with `program`, and adds the report. The report also has the
    /// unfaithful runs; [`LabData::runs`] leaves them out.
    ///
    /// # Errors
    ///
    /// The program cannot be run, or gives no report.
    pub fn run(
        &mut self,
        root: &Path,
        program: &Path,
        (file, conditions): (&str, &[String]),
        repeat: u32,
    ) -> anyhow::Result<()> {
        let mut command = Command::new(program);
        command.args(["lab", file, "--json", "--repeat", &repeat.to_string()]);
        if !conditions.is_empty() {
            command.args(["--conditions", &conditions.join(",")]);
        }
        let output = command
            .current_dir(root)
            .stderr(std::process::Stdio::inherit())
            .output()
            .with_context(|| program.display().to_string())?;
        ensure!(!output.stdout.is_empty(), "{file}: {}, and no report", output.status);
        let report = serde_json::from_slice(&output.stdout).with_context(|| file.to_owned())?;
        self.reports.insert(file.to_owned(), report);
        self.kernel = kernel()?;
        Ok(())
    }
}

/// The runs of `job` in a report that were faithful, with short waits for a processor.
pub(crate) fn usable(report: &Report, job: &Job) -> Vec<Run> {
    let wanted = |run: &&Run| {
        job.condition.as_ref().is_none_or(|name| *name == run.condition)
            && run.lateness.is_some_and(|late| late.faithful && late.waits_p99_ms <= WAITS_MS)
    };
    report.runs.iter().filter(wanted).cloned().collect()
}

fn kernel() -> anyhow::Result<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let parts: Vec<&str> = release.trim().split(['.', '-']).take(2).collect();
    Ok(parts.join("."))
}

/// The path of `wakeai`, which is beside this program.
///
/// # Errors
///
/// There is no such program.
pub fn wakeai() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("wakeai");
    ensure!(path.exists(), "{} does not exist: `make build` makes it", path.display());
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_reads_back() {
        let root = std::env::temp_dir().join(format!("wakeai-validation-{}", std::process::id()));
        std::fs::create_dir_all(root.join("validation")).unwrap();
        let report = files::empty_report(None);
        let job = Job::new("a.toml");
        let reports = BTreeMap::from([(job.file.clone(), report)]);
        let data = LabData { kernel: "6.18".to_owned(), reports };
        data.store(&root).unwrap();
        assert_eq!(LabData::load(&root).unwrap(), data);
        assert!(data.runs(&job).is_empty());
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(LabData::load(&root).unwrap(), LabData::default());
    }
}
