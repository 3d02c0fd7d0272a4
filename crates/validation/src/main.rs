//! Writes `docs/reference/validation.md` from runs, and measures the speed beside ns-3's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::{Parser, Subcommand, ValueEnum};
use wakeai_validation::context::Context;
use wakeai_validation::lab::{LabData, wakeai};
use wakeai_validation::reference::Reference;
use wakeai_validation::{bench, page};

/// Runs of each condition in the lab.
const LAB_REPEATS: u32 = 2;

/// What can be believed, from runs
#[derive(Debug, Parser)]
struct Arguments {
    /// The project's root
    #[arg(long, default_value = ".")]
    root: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything, and write docs/reference/validation.md and its pictures
    Page {
        /// Seeds of each comparison
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        seeds: u32,
        /// Runs at once
        #[arg(long, default_value_t = processors())]
        jobs: usize,
        /// Run the lab too, or read what it gave last: auto runs it where this is root
        #[arg(long, value_enum, default_value = "auto")]
        lab: Lab,
        /// Only this section, to standard output
        #[arg(long)]
        only: Option<String>,
    },
    /// Run in the lab what the page wants of these scenarios, and keep it for `page --lab no`
    Lab {
        /// Files, from the project's root, such as scenarios/kozu-competing.toml
        #[arg(required = true)]
        files: Vec<String>,
    },
    /// One run of the same case in ns-3 and in wakeai, one thread each
    Bench {
        /// Simulated seconds of the case with 40 stations; ns-3 takes about three times as long
        #[arg(long, default_value_t = 30)]
        seconds: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lab {
    Auto,
    Yes,
    No,
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let root = arguments.root;
    match arguments.command {
        Command::Page { seeds, jobs, lab, only } => {
            let context = Context { root: root.clone(), seeds, jobs };
            let mut data = LabData::load(&root)?;
            if lab == Lab::Yes || (lab == Lab::Auto && root_user()? && only.is_none()) {
                run_lab(&root, &mut data, &page::lab_files())?;
            }
            let reference = Reference::load(&root.join("validation/ns3/reference.json"))?;
            page::write(&context, &reference, &data, only.as_deref())
        }
        Command::Lab { files } => {
            let mut wanted = page::lab_files();
            let known = |file: &String| wanted.contains_key(file);
            let strange: Vec<&String> = files.iter().filter(|file| !known(file)).collect();
            ensure!(strange.is_empty(), "the page wants nothing from the lab of {strange:?}");
            wanted.retain(|file, _| files.contains(file));
            run_lab(&root, &mut LabData::load(&root)?, &wanted)
        }
        Command::Bench { seconds } => {
            let ns3 = root.join("target/ns3/wakeai-ns3");
            ensure!(ns3.exists(), "{} does not exist: `make bench-ns3` builds it", ns3.display());
            bench::run(&root, &wakeai()?, &ns3, seconds)
        }
    }
}

/// Whether this is root.
fn root_user() -> anyhow::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(std::fs::metadata("/proc/self")?.uid() == 0)
}

/// Runs these conditions of these files, and keeps each report at once.
fn run_lab(
    root: &Path,
    data: &mut LabData,
    files: &BTreeMap<String, Vec<String>>,
) -> anyhow::Result<()> {
    let program = wakeai()?;
    for (file, conditions) in files {
        data.run(root, &program, (file, conditions), LAB_REPEATS)?;
        data.store(root)?;
    }
    Ok(())
}
