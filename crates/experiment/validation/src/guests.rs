//! Runs of the lab in guests. They need neither root nor a quiet machine, but many minutes, so they are made only on
//! request, and files keep their reports.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use wakeai_results::result::Report;

/// How many runs a command makes: with seeds 1 to `seeds`, in `jobs` guests at once.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// The number of seeds.
    pub seeds: u32,
    /// The number of guests at once.
    pub jobs: usize,
}

/// The report of `program lab`, of the scenario and with the options in `words`, on `kernel` (a version or `latest`).
///
/// # Errors
///
/// The program cannot be run, or gives no report of guests.
pub fn report(
    root: &Path,
    program: &Path,
    (words, kernel): (&[String], &str),
    amount: Amount,
) -> anyhow::Result<Report> {
    let mut lab = Command::new(program);
    lab.arg("lab").args(words).args(["--json", "--kernel", kernel]);
    lab.args(["--repeat", &amount.seeds.to_string(), "--jobs", &amount.jobs.to_string()]);
    let output = lab.current_dir(root).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| program.display().to_string())?;
    // The status of a report with a run that was not faithful is 1, too.
    ensure!(!output.stdout.is_empty(), "Linux {kernel}: {}, and no report", output.status);
    let report: Report = serde_json::from_slice(&output.stdout)?;
    ensure!(report.guest.is_some(), "the report names no guest's kernel");
    Ok(report)
}
