//! The lab's runs over the 802.11 stack of Linux, and beside them over TUN devices, in guests. They are stored in
//! `validation/stack.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use wakeai_results::result::{Report, Run};

use crate::files;
use crate::guests::{Amount, report};
use crate::job::Job;
use crate::lab::usable;

/// The path of the file, from the project's root.
pub const FILE: &str = "validation/stack.json";

/// The kernel of the guests.
pub const KERNEL: &str = "6.12";

/// The runs of each job, by the command that makes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StackData {
    reports: BTreeMap<String, Report>,
}

impl StackData {
    /// Reads the file; the data are empty if it does not exist.
    ///
    /// # Errors
    ///
    /// The file is not as [`StackData::store`] writes it.
    pub fn load(root: &Path) -> anyhow::Result<Self> {
        files::load_if_any(&root.join(FILE), "a file of runs over the 802.11 stack")
    }

    /// Writes the file, with one report per line.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn store(&self, root: &Path) -> anyhow::Result<()> {
        files::store_reports(&root.join(FILE), &self.reports)
    }

    /// Whether there are runs.
    pub fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// The runs of `job` that can be used ([`usable`]).
    pub fn runs(&self, job: &Job) -> Vec<Run> {
        self.reports.get(&command(job)).map(|report| usable(report, job)).unwrap_or_default()
    }

    /// Makes the runs of `job` with `program`, and adds their report in place of an earlier one.
    ///
    /// # Errors
    ///
    /// The program cannot be run, or gives no report.
    pub fn run(
        &mut self,
        root: &Path,
        program: &Path,
        job: &Job,
        amount: Amount,
    ) -> anyhow::Result<()> {
        let report = report(root, program, (&job.words(), KERNEL), amount)?;
        self.reports.insert(command(job), report);
        Ok(())
    }
}

/// The command that makes a job's runs.
pub fn command(job: &Job) -> String {
    format!("{} --kernel {KERNEL}", job.command_in("lab"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_kept_by_their_commands() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("validation")).unwrap();
        let report = files::empty_report(None);
        let job = Job::new("a.toml").set("x", 1);
        let reports = BTreeMap::from([(command(&job), report)]);
        let data = StackData { reports };
        data.store(root.path()).unwrap();
        let read = StackData::load(root.path()).unwrap();
        assert_eq!(read, data);
        assert!(read.reports.contains_key("wakeai lab a.toml --set x=1 --kernel 6.12"));
        assert!(StackData::load(Path::new("/nonexistent")).unwrap().is_empty());
    }
}
