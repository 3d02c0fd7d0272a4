//! Results of the lab as further points.

use std::collections::BTreeMap;
use std::path::Path;

use wakeai_results::result::{Report, Run};

use super::point::Point;
use crate::files;
use crate::law::Setting;

/// The conditions of a report of `wakeai lab --json`, with `lab: ` before each name. The report
/// belongs to the setting that has the name of its scenario.
pub(super) struct LabReport {
    setting: String,
    runs: Vec<Run>,
    world: String,
}

impl LabReport {
    /// Reads a file with the output of `wakeai lab --json` (or of `wakeai sim --json`).
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has other content.
    pub(super) fn load(path: &Path) -> anyhow::Result<Self> {
        let report: Report = files::load(path, "a result of `wakeai lab --json`")?;
        Ok(Self { setting: report.scenario, runs: report.runs, world: report.world })
    }

    /// The points of `setting`, by condition.
    pub(super) fn points(&self, setting: &Setting) -> BTreeMap<String, Point> {
        let mut by_condition = BTreeMap::<String, Vec<&Run>>::new();
        for run in self.runs.iter().filter(|_| self.setting == setting.name) {
            by_condition.entry(format!("{}: {}", self.world, run.condition)).or_default().push(run);
        }
        let points = by_condition.into_iter();
        points.map(|(name, runs)| (name, Point::of_reported(&setting.scenario, &runs))).collect()
    }
}
