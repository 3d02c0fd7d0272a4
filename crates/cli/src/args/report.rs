//! The arguments of `wakeai report`.

use std::path::PathBuf;

use clap::Args;

/// Write results into one HTML file: the verdict, tables that sort, plots that zoom
///
/// The file has everything in itself and asks nothing of the network. A directory of --out also gives the plots over
/// time, the scenario and the command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai sim scenarios/quickstart.toml --repeat 5 --out results/one && wakeai report results/one
  wakeai report results/one results/two -o both.html
  wakeai report result.json -o - > report.html")]
pub(crate) struct ReportArguments {
    /// Results: directories of --out, or files with what --json has printed
    #[arg(required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// The file to write; - is standard output. Another file than an earlier report is not replaced
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Replace the file, whatever it is
    #[arg(long)]
    pub(crate) force: bool,
}
