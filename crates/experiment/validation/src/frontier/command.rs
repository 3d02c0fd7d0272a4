//! The command `wakeai-validation frontier`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use wakeai_scenario::{Scenario, SoloRun, solo_plan};
use wakeai_world::{KnownSolos, SoloKey};

use super::kept::Kept;
use super::lab::LabReport;
use super::point::{self, Point};
use super::report::{DEFAULT, Report, Row, Window};
use super::senders::Senders;
use super::settings::{Kind, settings};
use super::sweep::Sweep;
use super::terms::{self, Terms};
use super::{picture, pool, table, verdict};
use crate::law::Setting;

/// The time between two writes of the file of `--keep`.
const BETWEEN_WRITES: Duration = Duration::from_secs(15);
/// The conditions beside the law, with the keys of each.
const OTHERS: [(&str, &str); 3] = [
    (DEFAULT, ""),
    ("shimada-before", "law = 'shimada-before'\n"),
    ("shimada-after", "law = 'shimada-after'\n"),
];
/// The name of the law's condition.
const LAW: &str = "airtime";

/// The options of the command.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Options {
    /// The settings: names, or parts of names. Without any, all that have a frontier
    #[arg(value_name = "SETTING")]
    settings: Vec<String>,
    /// The number of seeds of each run
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seeds: u32,
    /// The number of runs at once
    #[arg(long, default_value_t = processors())]
    jobs: usize,
    /// Keep the runs that do not depend on the law in this file. What it lacks is run and added
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Run only the law, and each station alone where the file of --keep lacks that. Other runs that
    /// the file lacks are left out of the comparison
    #[arg(long)]
    law_only: bool,
    /// The law as in a scenario's condition, such as `{ name = "airtime", queue_min = "5ms" }`
    #[arg(long, value_name = "TOML", default_value = "\"airtime\"")]
    law: String,
    /// Compare with an earlier law: a file that --json wrote
    #[arg(long)]
    baseline: Option<PathBuf>,
    /// Add the conditions of a result of `wakeai lab --json` for one of the settings
    #[arg(long)]
    lab: Vec<PathBuf>,
    /// Write a picture of each setting into this directory, and the table of all settings in Markdown,
    /// as `frontier.md`
    #[arg(long)]
    write: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print the table in Markdown
    #[arg(long)]
    markdown: bool,
    /// Run only the law, and count how often each of its terms begins to act although nothing is wrong
    #[arg(long, conflicts_with_all = ["keep", "law_only", "baseline", "lab", "write", "json"])]
    terms: bool,
}

/// The number of processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// One run: a condition of a setting with a seed.
struct Job<'a> {
    setting: &'a Setting,
    /// The keys of the condition; `None` stands for the law.
    condition: Option<String>,
    seed: u64,
}

/// Runs what is needed and prints the frontier.
///
/// # Errors
///
/// No setting is meant, a file cannot be read or written, or a run fails.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let settings = chosen(&options.settings)?;
    if options.terms {
        return terms(&settings, options);
    }
    let mut kept = options.keep.as_deref().map(Kept::load).transpose()?.unwrap_or_default();
    let earlier = options.baseline.as_deref().map(report_of).transpose()?;
    let lab = options.lab.iter().map(|path| LabReport::load(path));
    let lab = lab.collect::<anyhow::Result<Vec<_>>>()?;
    solos(&settings, &mut kept, options)?;
    if !options.law_only {
        others(&settings, &mut kept, options)?;
    }
    let law = laws(&settings, &kept, options)?;
    let rows = settings.iter().map(|setting| row(setting, &kept, &law, &lab, options.seeds));
    let settings = rows.collect::<anyhow::Result<Vec<_>>>()?;
    let report = Report { seeds: options.seeds, settings };
    let judged = verdict::judge(&report, earlier.as_ref());
    if let Some(directory) = &options.write {
        write(directory, &report, &table::page(&judged))?;
    }
    let text = match options {
        Options { json: true, .. } => serde_json::to_string_pretty(&report)? + "\n",
        Options { markdown: true, .. } => table::markdown(&judged),
        _ => table::text(&judged),
    };
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

/// Counts the terms of the law in each setting.
fn terms(settings: &[Setting], options: &Options) -> anyhow::Result<()> {
    let keys = format!("law = {}\n", options.law);
    let seeds = || 1..=u64::from(options.seeds);
    let jobs: Vec<_> =
        settings.iter().flat_map(|setting| seeds().map(move |seed| (setting, seed))).collect();
    let mut found = BTreeMap::<&str, Terms>::new();
    let count = |(setting, seed): &(&Setting, u64)| {
        let scenario = with_condition(setting, LAW, &keys)?;
        terms::run(&scenario, *seed).with_context(|| setting.name)
    };
    let done = |(setting, _): &(&Setting, u64), counted: Terms| {
        found.entry(setting.name).or_default().add(&counted);
        Ok(())
    };
    pool::each("terms", (&jobs, options.jobs), count, done)?;
    let rows = settings.iter().filter_map(|of| Some((of.name, found.get(of.name)?)));
    let rows: Vec<(&str, &Terms)> = rows.collect();
    let text = terms::table(&rows, options.markdown);
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<Setting>> {
    let mut all = settings();
    for name in names {
        let known = all.iter().any(|setting| setting.name.contains(name.as_str()));
        let every = || all.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
        ensure!(known, "{name} is no setting with a frontier; there are {}", every());
    }
    let whole: Vec<&str> = all.iter().map(|one| one.name).collect();
    let meant = |name: &str, setting: &str| {
        if whole.contains(&name) { name == setting } else { setting.contains(name) }
    };
    let keep: Vec<bool> = all
        .iter()
        .map(|setting| names.is_empty() || names.iter().any(|name| meant(name, setting.name)))
        .collect();
    let mut keep = keep.into_iter();
    all.retain(|_| keep.next().unwrap_or(false));
    Ok(all)
}

fn report_of(path: &Path) -> anyhow::Result<Report> {
    let named = || format!("{} is no output of `frontier --json`", path.display());
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(named)
}

/// The scenario of a setting without conditions.
fn base(setting: &Setting) -> &str {
    setting.toml.split("\n[[conditions]]").next().unwrap_or(&setting.toml)
}

fn with_condition(setting: &Setting, name: &str, keys: &str) -> anyhow::Result<Scenario> {
    let text = format!("{}\n[[conditions]]\nname = '{name}'\n{keys}", base(setting));
    Scenario::parse(&text).with_context(|| setting.name)
}

/// The solo runs of the groups that send, each with the names of its groups.
fn solo_runs(setting: &Setting) -> anyhow::Result<Vec<(SoloRun, Vec<String>)>> {
    let scenario = with_condition(setting, DEFAULT, "")?;
    let stations = scenario.expand_stations();
    let plan = solo_plan(&scenario.conditions()[0]).into_iter();
    Ok(plan
        .map(|solo| {
            let groups = solo.applies_to.iter().map(|of| stations[of.station].group);
            let names = groups.map(|group| scenario.stations[group].name.clone());
            let names = names.collect();
            (solo, names)
        })
        .collect())
}

/// Runs each station alone, as far as that is not known.
fn solos(settings: &[Setting], kept: &mut Kept, options: &Options) -> anyhow::Result<()> {
    let mut jobs = BTreeMap::new();
    for setting in settings {
        for (run, _) in solo_runs(setting)? {
            for seed in 1..=u64::from(options.seeds) {
                if kept.solo(&run.key(), seed).is_none() {
                    jobs.insert((run.key(), seed), run.clone());
                }
            }
        }
    }
    let jobs: Vec<_> = jobs.into_iter().collect();
    let mut file = File::new(options);
    let done = |((key, seed), _): &((String, u64), SoloRun), mbps| {
        kept.add_solo(key.clone(), *seed, mbps);
        file.store(kept)
    };
    pool::each("alone", (&jobs, options.jobs), |((_, seed), of)| point::solo(of, *seed), done)?;
    file.end(kept)
}

/// The conditions of a setting that do not depend on the law: for each its label and its keys.
fn conditions(setting: &Setting, kept: &Kept) -> anyhow::Result<Vec<(String, String)>> {
    let others = OTHERS.iter().map(|(name, keys)| ((*name).to_owned(), (*keys).to_owned()));
    let windows = sweep(setting, kept)?.0;
    let windows = windows.iter().map(|windows| (windows.label(), windows.keys()));
    Ok(others.chain(windows).collect())
}

/// The fixed windows of a setting. They depend on what each station reaches alone with seed 1, so
/// that they are the same for each number of seeds.
fn sweep(setting: &Setting, kept: &Kept) -> anyhow::Result<Sweep> {
    let mut by_group = BTreeMap::new();
    for (run, groups) in solo_runs(setting)? {
        let mbps = kept.solo(&run.key(), 1).unwrap_or(f64::NAN);
        by_group.extend(groups.into_iter().map(|group| (group, mbps)));
    }
    Ok(Sweep::new(&Senders::new(&setting.scenario, &by_group)))
}

/// Runs all conditions that do not depend on the law, as far as their figures are not known.
fn others(settings: &[Setting], kept: &mut Kept, options: &Options) -> anyhow::Result<()> {
    let mut jobs = Vec::new();
    for setting in settings {
        for (_, keys) in conditions(setting, kept)? {
            let seeds = 1..=u64::from(options.seeds);
            let missing = seeds.filter(|seed| kept.run(base(setting), &keys, *seed).is_none());
            jobs.extend(missing.map(|seed| (seed, keys.clone())).map(|(seed, keys)| Job {
                setting,
                condition: Some(keys),
                seed,
            }));
        }
    }
    let solos = known_solos(settings, kept, options.seeds)?;
    let mut file = File::new(options);
    let done = |job: &Job<'_>, point: Point| {
        let keys = job.condition.as_deref().unwrap_or_default();
        kept.add_run(base(job.setting), keys, job.seed, point);
        file.store(kept)
    };
    let simulate = |job: &Job<'_>| simulate(job, &solos, &options.law);
    pool::each("default, tables, windows", (&jobs, options.jobs), simulate, done)?;
    file.end(kept)
}

/// Runs the law in each setting. Returns the means by setting.
fn laws(
    settings: &[Setting],
    kept: &Kept,
    options: &Options,
) -> anyhow::Result<BTreeMap<String, Point>> {
    let seeds = || 1..=u64::from(options.seeds);
    let of = |setting| seeds().map(move |seed| Job { setting, condition: None, seed });
    let jobs: Vec<Job<'_>> = settings.iter().flat_map(of).collect();
    let solos = known_solos(settings, kept, options.seeds)?;
    let mut found = BTreeMap::<String, Vec<Point>>::new();
    let done = |job: &Job<'_>, point| {
        found.entry(job.setting.name.to_owned()).or_default().push(point);
        Ok(())
    };
    let simulate = |job: &Job<'_>| simulate(job, &solos, &options.law);
    pool::each("law", (&jobs, options.jobs), simulate, done)?;
    Ok(found.into_iter().map(|(name, points)| (name, Point::mean(&points))).collect())
}

fn simulate(job: &Job<'_>, solos: &KnownSolos, law: &str) -> anyhow::Result<Point> {
    let of_law = format!("law = {law}\n");
    let keys = job.condition.as_deref().unwrap_or(&of_law);
    let scenario = with_condition(job.setting, LAW, keys)?;
    point::run(&scenario, job.seed, solos.clone()).with_context(|| job.setting.name)
}

/// The solo goodputs of all settings as a session takes them.
fn known_solos(settings: &[Setting], kept: &Kept, seeds: u32) -> anyhow::Result<KnownSolos> {
    let mut known = KnownSolos::new();
    for setting in settings {
        for (run, _) in solo_runs(setting)? {
            let run = run.key();
            for seed in 1..=u64::from(seeds) {
                if let Some(mbps) = kept.solo(&run, seed) {
                    known.insert(SoloKey { run: run.clone(), seed }, mbps);
                }
            }
        }
    }
    Ok(known)
}

fn row(
    setting: &Setting,
    kept: &Kept,
    law: &BTreeMap<String, Point>,
    lab: &[LabReport],
    seeds: u32,
) -> anyhow::Result<Row> {
    let (mut others, mut windows) = (BTreeMap::new(), Vec::new());
    for (label, keys) in conditions(setting, kept)? {
        let Some(point) = kept.mean(base(setting), &keys, seeds) else { continue };
        if OTHERS.iter().any(|(name, _)| *name == label) {
            others.insert(label, point);
        } else {
            windows.push(Window { label, point });
        }
    }
    others.extend(lab.iter().flat_map(|report| report.points(setting)));
    Ok(Row {
        setting: setting.name.to_owned(),
        stations: setting.scenario.station_count(),
        single_frames: Kind::of(setting) == Kind::SingleFrames,
        scenario: base(setting).to_owned(),
        law: law.get(setting.name).copied().unwrap_or_default(),
        others,
        windows,
    })
}

/// The file of the table of all settings, beside their pictures.
const TABLE: &str = "frontier.md";

/// Writes a picture of each setting, and the table of all.
fn write(directory: &Path, report: &Report, table: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    for row in &report.settings {
        let path = directory.join(format!("{}.svg", row.setting));
        std::fs::write(&path, picture::render(row)).with_context(|| path.display().to_string())?;
    }
    let path = directory.join(TABLE);
    std::fs::write(&path, table).with_context(|| path.display().to_string())
}

/// The file of `--keep`, which is written every now and then, so that an interruption loses little.
struct File<'a> {
    path: Option<&'a Path>,
    written: Instant,
}

impl<'a> File<'a> {
    fn new(options: &'a Options) -> Self {
        Self { path: options.keep.as_deref(), written: Instant::now() }
    }

    fn store(&mut self, kept: &Kept) -> anyhow::Result<()> {
        if self.written.elapsed() >= BETWEEN_WRITES {
            self.end(kept)?;
            self.written = Instant::now();
        }
        Ok(())
    }

    fn end(&self, kept: &Kept) -> anyhow::Result<()> {
        self.path.map_or(Ok(()), |path| kept.store(path))
    }
}
