//! The arguments of `wakeai field`, and of the helpers that it starts.

use std::path::PathBuf;

use clap::Args;
use wakeai_units::Duration;

use super::{ExperimentArguments, time_within};

/// Run an experiment on real machines over ssh, adb or locally
///
/// A machines file says which machine is which station, and which is the server. On each a helper is started, which runs agent,
/// traffic and monitor at agreed times, goes on when its connection is lost, and undoes everything by itself. Each repeat is
/// a block that has every condition once. It prints a table, or with --json one object and nothing else.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai field scenarios/quickstart.toml --machines lab.toml --check
  wakeai field scenarios/quickstart.toml --machines lab.toml --repeat 6 --out results/real
  wakeai field FILE --machines lab.toml --programs target/dist      bring the program along

The machines file has an entry for the server and one for each station:
  [[machines]]
  station = \"server\"
  machine = \"server.lan\"       # a name of OpenSSH, adb:SERIAL, or local
  address = \"192.0.2.1\"
  [[machines]]
  station = \"tablet1\"
  machine = \"root@laptop-1\"
  interface = \"wlan0\"

With --out the same command goes on where it was cut. Exit status 1: a run does not count, because a machine failed in it, or
because others used too much of the channel.
77: a machine is not ready.")]
pub(crate) struct FieldArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// The machines, as TOML
    #[arg(long, value_name = "FILE")]
    pub(crate) machines: PathBuf,
    /// Look at all machines and make no run: a table, and each problem with what to do
    #[arg(long, conflicts_with_all = ["repeat", "wide", "out", "solo"])]
    pub(crate) check: bool,
    /// The length of the run of each station alone, which measures what it reaches; 0s makes none
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time_within(Duration::ZERO, Duration::from_secs(600)))]
    pub(crate) solo: Duration,
    /// The time after the end of a run, and after the last word of this command, at which each machine undoes everything by
    /// itself
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time_within(Duration::from_secs(2), Duration::from_secs(3600)))]
    pub(crate) grace: Duration,
    /// Bring the static program of a release from this directory to the machines, verified by its SHA256SUMS, and
    /// remove it after
    #[arg(long, value_name = "DIR")]
    pub(crate) programs: Option<PathBuf>,
    /// The share of the channel, in per cent, that others may use, where the driver tells it: with more no run is begun, and a
    /// run with more does not count
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) max_load: u32,
}

/// The helper of a machine, which `wakeai field` starts
#[derive(Debug, Args)]
pub(crate) struct FieldStationArguments {
    /// Serve as the helper of this session, apart from any connection
    #[arg(long, value_name = "SESSION")]
    pub(crate) serve: Option<String>,
    /// This program was brought along for the experiment: the helper removes it at its end
    #[arg(long)]
    pub(crate) brought: bool,
    /// The address of this machine through which ssh came [default: what ssh says]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) ssh_address: Option<String>,
}
