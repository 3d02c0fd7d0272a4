//! Writes `docs/reference/validation.md` from runs, and compares the speed with that of ns-3.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::{Args, Parser, Subcommand, ValueEnum};
use wakeai_validation::context::Context;
use wakeai_validation::guests::Amount;
use wakeai_validation::kernels::KernelData;
use wakeai_validation::lab::{LabData, wakeai};
use wakeai_validation::law::figures::is_of_the_law;
use wakeai_validation::reference::Reference;
use wakeai_validation::sections::lab::lab_files;
use wakeai_validation::sections::stack::jobs;
use wakeai_validation::sections::{NAMES, Results, Stored};
use wakeai_validation::stack::{self, StackData};
use wakeai_validation::{bench, files, frontier, law, page, processors, say};

/// The number of runs of each condition in the lab.
const LAB_REPEATS: u32 = 2;

/// Compare the simulator with ns-3, models and the lab, and judge the law
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
    /// Run everything, and write docs/reference/validation.md
    Page {
        /// The number of seeds of each comparison
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        seeds: u32,
        /// The number of runs at once
        #[arg(long, default_value_t = processors())]
        jobs: usize,
        /// Run the lab too (`yes`), or use its stored runs (`no`); `auto` runs it as root
        #[arg(long, value_enum, default_value = "auto")]
        lab: Lab,
        /// Make only this section, and print it
        #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(NAMES))]
        only: Option<String>,
        /// Write the figures of the runs into this file as JSON
        #[arg(long)]
        json: Option<PathBuf>,
        /// Run nothing; write the page from a file that --json wrote
        #[arg(long, conflicts_with_all = ["seeds", "jobs", "lab", "only", "json"])]
        from: Option<PathBuf>,
    },
    /// In the lab, run those conditions of the given scenarios that this page and the guide to the
    /// papers use, and store the runs for `page --lab no` and `make figures`
    Lab {
        /// Files, from the project's root, such as scenarios/kozu-competing.toml
        #[arg(required = true)]
        files: Vec<String>,
    },
    /// In guests, run the scenario of the table of kernels on the given kernels, and store the runs for `page`
    Kernels {
        /// Versions, such as 6.12, or `latest`
        #[arg(required = true)]
        kernels: Vec<String>,
        #[command(flatten)]
        amount: GuestOptions,
    },
    /// In guests, run uploads over the 802.11 stack of Linux and over TUN devices, and store the runs for `page`
    Stack {
        #[command(flatten)]
        amount: GuestOptions,
        /// Make only those runs whose command contains this text
        #[arg(long, default_value = "")]
        only: String,
    },
    /// Judge the law `airtime` over the matrix of settings
    Law {
        /// The number of seeds of each setting and condition
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        seeds: u32,
        /// The number of settings that run at once
        #[arg(long, default_value_t = processors())]
        jobs: usize,
        /// Run only settings whose names contain one of these texts
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
        /// Run only `airtime`; take the figures of the other conditions, which a change of the law
        /// does not affect, from this file. What the file lacks is run and added to it
        #[arg(long)]
        keep: Option<PathBuf>,
        /// Run nothing; write the scenarios into this directory
        #[arg(long)]
        write: Option<PathBuf>,
    },
    /// Compare the law `airtime` with fixed windows: the goodput that each queueing delay allows
    Frontier(frontier::command::FrontierOptions),
    /// Compare the speed and the memory of ns-3 and wakeai on the same cases, with one thread each
    Bench {
        /// Simulated seconds of the case with 40 stations; ns-3 takes about three times as long
        #[arg(long, default_value_t = 30)]
        seconds: u32,
    },
}

#[derive(Clone, Copy, Debug, Args)]
struct GuestOptions {
    /// The number of seeds of each run
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// The number of guests at once
    #[arg(long, default_value_t = processors())]
    jobs: usize,
}

impl From<GuestOptions> for Amount {
    fn from(GuestOptions { seeds, jobs }: GuestOptions) -> Self {
        Self { seeds, jobs }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lab {
    Auto,
    Yes,
    No,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let root = arguments.root;
    match arguments.command {
        Command::Page { from: Some(file), .. } => {
            page::write(&root, &files::load(&file, "a file of `page --json`")?)
        }
        Command::Page { seeds, jobs, lab, only, json, from: None } => {
            let context = Context { root: root.clone(), seeds, jobs };
            let mut data = LabData::load(&root)?;
            if lab == Lab::Yes
                || (lab == Lab::Auto && nix::unistd::geteuid().is_root() && only.is_none())
            {
                run_lab(&root, &mut data, &lab_files())?;
            }
            let reference = Reference::load(&root.join("validation/ns3/reference.json"))?;
            let stored = Stored {
                lab: data,
                kernels: KernelData::load(&root)?,
                stack: StackData::load(&root)?,
            };
            let results = Results::run(&context, &reference, &stored, only.as_deref())?;
            if let Some(file) = json {
                files::store(&file, &results)?;
            }
            if only.is_none() {
                return page::write(&root, &results);
            }
            say(&page::render(&results)?)
        }
        Command::Lab { files } => {
            let mut wanted = lab_files();
            let known = |file: &String| wanted.contains_key(file);
            let strange: Vec<&String> = files.iter().filter(|file| !known(file)).collect();
            ensure!(strange.is_empty(), "the pages use no lab runs of {strange:?}");
            wanted.retain(|file, _| files.contains(file));
            run_lab(&root, &mut LabData::load(&root)?, &wanted)
        }
        Command::Kernels { kernels, amount } => run_kernels(&root, &kernels, amount.into()),
        Command::Stack { amount, only } => run_stack(&root, &only, amount.into()),
        Command::Law { seeds, jobs, only, keep, write } => {
            let mut settings = law::matrix();
            let wanted = |name: &str| only.iter().any(|part| name.contains(part.as_str()));
            settings.retain(|setting| only.is_empty() || wanted(setting.name));
            ensure!(!settings.is_empty(), "no setting's name contains any of {only:?}");
            if let Some(directory) = write {
                return write_scenarios(&directory, &settings);
            }
            let rows = match keep {
                Some(file) => beside_kept(&file, &settings, seeds, jobs)?,
                None => law::figures::run(&settings, |_| true, seeds, jobs)?,
            };
            say(&law::table::render(&rows))
        }
        Command::Frontier(options) => frontier::command::run(&options),
        Command::Bench { seconds } => {
            let ns3 = root.join("target/ns3/wakeai-ns3");
            ensure!(ns3.exists(), "{} does not exist: `make bench-ns3` builds it", ns3.display());
            bench::run(&root, &wakeai()?, &ns3, seconds)
        }
    }
}

/// The content of the file of `law --keep`: by seeds and scenario, the figures of each condition
/// except `airtime`.
type KeptFigures = BTreeMap<String, BTreeMap<String, law::LawFigures>>;

/// Runs the conditions that `file` does not have and stores them. `airtime` is run in any case.
fn beside_kept(
    file: &Path,
    settings: &[law::Setting],
    seeds: u32,
    jobs: usize,
) -> anyhow::Result<Vec<law::LawRow>> {
    let mut kept: KeptFigures = files::load_if_any(file, "a file of `law --keep`")?;
    // Figures of before the queueing delay was that above each station's own path have another key.
    let key = |setting: &law::Setting| format!("{seeds} own-paths {}", setting.toml);
    let missing = settings.iter().filter(|setting| !kept.contains_key(&key(setting)));
    let missing: Vec<law::Setting> = missing.cloned().collect();
    for row in law::figures::run(&missing, |one| !is_of_the_law(one), seeds, jobs)? {
        kept.insert(key(&row.setting), row.found);
    }
    files::store(file, &kept)?;
    let mut rows = law::figures::run(settings, is_of_the_law, seeds, jobs)?;
    for row in &mut rows {
        let known = kept.remove(&key(&row.setting)).unwrap_or_default();
        let own = std::mem::replace(&mut row.found, known);
        row.found.extend(own);
    }
    Ok(rows)
}

/// Writes each setting as a file that `wakeai sim` and `wakeai lab` run.
fn write_scenarios(directory: &Path, settings: &[law::Setting]) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    for setting in settings {
        let path = directory.join(format!("{}.toml", setting.name));
        std::fs::write(&path, &setting.toml).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Runs these conditions of these files in the lab, and stores each report as soon as it exists.
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

/// Runs the scenario of the table of kernels on each kernel, and stores each report as soon as it exists.
fn run_kernels(root: &Path, kernels: &[String], amount: Amount) -> anyhow::Result<()> {
    let mut data = KernelData::load(root)?;
    for kernel in kernels {
        data.run(root, &wakeai()?, kernel, amount)?;
        data.store(root)?;
    }
    Ok(())
}

/// Makes the runs of the section on the 802.11 stack, and stores each report as soon as it exists.
fn run_stack(root: &Path, only: &str, amount: Amount) -> anyhow::Result<()> {
    let mut data = StackData::load(root)?;
    let mut wanted = jobs();
    wanted.retain(|job| stack::command(job).contains(only));
    ensure!(!wanted.is_empty(), "no run's command contains {only:?}");
    for job in wanted {
        data.run(root, &wakeai()?, &job, amount)?;
        data.store(root)?;
    }
    Ok(())
}
