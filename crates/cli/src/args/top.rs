//! The arguments of `wakeai top`.

use std::path::PathBuf;

use clap::Args;
use wakeai_host::Network;
use wakeai_top::Column;
use wakeai_units::Duration;

use super::{one_of, time_within};

/// Show the TCP connections of this machine as a live screen
///
/// One row per connection: its process, its window and the bounds that an agent has set, RTT, rate, what limits it,
/// and its congestion events. Without root or without BPF it shows what the kernel tells every user, and names what
/// is missing. On the screen, ? lists the keys.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai top                                        all connections; q quits
  wakeai top --network 10.0.0.0/8 --port 443,8443   those with one end there
  wakeai top --record /tmp/watch                    also keep what is seen, as Parquet
  wakeai top --replay /tmp/watch --speed 4          show it again, four times as fast
  wakeai top --replay results --condition airtime   what sim or lab wrote with --out results
  wakeai top --once --json | jq .connections        one reading for a script

docs/reference/cli.md explains the columns and the fields.")]
pub(crate) struct TopArguments {
    /// The time between two readings
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time_within(SHORTEST, LONGEST))]
    pub(crate) interval: Duration,
    /// Only connections with one end in this network; may be repeated
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    pub(crate) network: Vec<Network>,
    /// Only connections with one of these ports at either end
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub(crate) port: Vec<u16>,
    /// Only this network namespace: a name of `ip netns`, or an inode; may be repeated
    #[arg(long, value_name = "NAME|INODE")]
    pub(crate) netns: Vec<String>,
    /// Sort by this column
    #[arg(long, value_name = "COLUMN", default_value = "sent", value_parser = one_of::<Column>())]
    pub(crate) sort: Column,
    /// Sort in the opposite order
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Print one reading as a table and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON object per reading instead of the screen
    #[arg(long)]
    pub(crate) json: bool,
    /// End after this time, such as 10s
    #[arg(long, value_name = "TIME", conflicts_with = "replay")]
    pub(crate) duration: Option<Duration>,
    /// Keep all readings in this directory, which must be empty or absent
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Show a recording, or a run of the simulator or lab that was kept with --out
    #[arg(long, value_name = "DIR")]
    pub(crate) replay: Option<PathBuf>,
    /// The speed of the replay: 1 is the original one
    #[arg(long, value_name = "FACTOR", default_value = "1", requires = "replay", value_parser = speed)]
    pub(crate) speed: f64,
    /// The condition of the run that is replayed [default: the first]
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub(crate) condition: Option<String>,
    /// The repeat of the run that is replayed, counted from 0 [default: the first]
    #[arg(long, value_name = "N", requires = "replay")]
    pub(crate) repeat: Option<u32>,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed| (0.0625..=64.0).contains(speed));
    speed.ok_or_else(|| format!("found {text:?}, expected a number from 0.0625 to 64"))
}

/// The shortest interval. With a shorter one the readings themselves would load the machine.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest interval. It is limited because the screen shows the last minute.
const LONGEST: Duration = Duration::from_secs(60);
