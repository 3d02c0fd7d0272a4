//! The arguments of `wakeai man`.

use std::path::PathBuf;

use clap::Args;

/// Print a manual page, as roff(7)
///
/// There is a page for each command and subcommand, for the agent's configuration and for scenarios. Debian's package
/// installs them all.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai man lab | man -l -              read the page of `wakeai lab`
  wakeai man probe-buffer | man -l -     that of `wakeai probe buffer`
  wakeai man agent.toml | man -l -       the agent's configuration
  wakeai man --list                      the names of all pages
  wakeai man --all DIR                   write all pages into DIR, as man1/wakeai.1 and so on")]
pub(crate) struct ManArguments {
    /// The page, without `wakeai-` and the section [default: that of wakeai itself]
    #[arg(value_name = "PAGE")]
    pub(crate) page: Option<String>,
    /// List the names of all pages, with their sections
    #[arg(long, conflicts_with = "page")]
    pub(crate) list: bool,
    /// Write all pages below this directory, which is made where it does not exist
    #[arg(long, value_name = "DIR", conflicts_with_all = ["page", "list"])]
    pub(crate) all: Option<PathBuf>,
}
