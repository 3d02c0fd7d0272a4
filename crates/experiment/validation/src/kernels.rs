//! The lab's runs on other kernels, in guests. They are stored in `validation/kernels.json`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use wakeai_results::result::{Report, Run};

use crate::files;
use crate::guests::{Amount, report};
use crate::job::Job;
use crate::lab::usable;

/// The path of the file, from the project's root.
pub const FILE: &str = "validation/kernels.json";

/// The scenario of the runs, from the project's root.
pub const SCENARIO: &str = "validation/scenarios/kernels.toml";

/// The runs on each kernel, by its release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KernelData {
    reports: BTreeMap<String, Report>,
}

impl KernelData {
    /// Reads the file; the data are empty if it does not exist.
    ///
    /// # Errors
    ///
    /// The file is not as [`KernelData::store`] writes it.
    pub fn load(root: &Path) -> anyhow::Result<Self> {
        files::load_if_any(&root.join(FILE), "a file of runs on other kernels")
    }

    /// Writes the file, with one report per line.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn store(&self, root: &Path) -> anyhow::Result<()> {
        files::store_reports(&root.join(FILE), &self.reports)
    }

    /// The releases, the lowest first.
    pub fn releases(&self) -> Vec<String> {
        let mut releases: Vec<String> = self.reports.keys().cloned().collect();
        releases.sort_by_key(|release| numbers(release));
        releases
    }

    /// The largest number of runs that a condition has on a kernel.
    pub fn repeats(&self) -> u32 {
        let runs = self.reports.values().flat_map(|report| &report.runs);
        runs.map(|run| run.repeat + 1).max().unwrap_or(0)
    }

    /// The runs of `job` on the kernel `release` that can be used ([`usable`]).
    pub fn runs(&self, release: &str, job: &Job) -> Vec<Run> {
        self.reports.get(release).map(|report| usable(report, job)).unwrap_or_default()
    }

    /// Runs the scenario with `program` on `kernel`, a version or `latest`, and adds the report.
    /// It replaces the report of the same release.
    ///
    /// # Errors
    ///
    /// The program cannot be run, or gives no report.
    pub fn run(
        &mut self,
        root: &Path,
        program: &Path,
        kernel: &str,
        amount: Amount,
    ) -> anyhow::Result<()> {
        self.add(report(root, program, (&[SCENARIO.to_owned()], kernel), amount)?)
    }

    /// Adds a report of runs in guests. It replaces the report of the same release.
    ///
    /// # Errors
    ///
    /// The report is not of guests.
    fn add(&mut self, report: Report) -> anyhow::Result<()> {
        let guest = report.guest.as_ref().context("the report names no guest's kernel")?;
        self.reports.insert(guest.kernel.clone(), report);
        Ok(())
    }
}

/// The numbers in a release, such as 6, 12, 117, 12 in `6.12.117+deb12-amd64`.
fn numbers(release: &str) -> Vec<u64> {
    let parts = release.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use wakeai_results::result::GuestMachine;

    use super::*;

    fn report(kernel: &str) -> Report {
        let guest = GuestMachine {
            kernel: kernel.to_owned(),
            kernel_digest: "1".to_owned(),
            image_digest: "2".to_owned(),
            emulator: "qemu 7.2.22".to_owned(),
            clock: "1 ns per instruction".to_owned(),
            memory_mb: 1024,
        };
        files::empty_report(Some(guest))
    }

    #[test]
    fn kernels_are_stored_by_release_and_sorted_by_number() {
        let root = std::env::temp_dir().join(format!("wakeai-kernels-{}", std::process::id()));
        std::fs::create_dir_all(root.join("validation")).unwrap();
        let mut data = KernelData::default();
        for kernel in ["6.12.9-amd64", "6.1.0-56-amd64", "6.9.1-amd64", "6.1.0-56-amd64"] {
            data.add(report(kernel)).unwrap();
        }
        data.store(&root).unwrap();
        let read = KernelData::load(&root).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(read, data);
        assert_eq!(read.releases(), ["6.1.0-56-amd64", "6.9.1-amd64", "6.12.9-amd64"]);
        assert!(data.add(Report { guest: None, ..report("") }).is_err());
    }
}
