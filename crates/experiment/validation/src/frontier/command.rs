//! The command `wakeai-validation frontier`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use wakeai_results::result::Report;
use wakeai_scenario::{Direction, Scenario, SoloRun, solo_plan};
use wakeai_world::Silent;

use super::kept::KeptRuns;
use super::point::{self, Point};
use super::report::{DEFAULT, FrontierReport, FrontierRow, Window};
use super::senders::Senders;
use super::sweep::sweep;
use super::terms::{self, Terms};
use super::{table, verdict};
use crate::law::verdict::receiving_bounds;
use crate::law::{self, Promise, Setting};
use crate::{files, pool, processors, say};

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
pub struct FrontierOptions {
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
    /// Write the figures into this directory, as `frontier.json`, from which `validation/frontier.py`
    /// draws a picture of each setting, and the table of all settings in Markdown, as `frontier.md`
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

/// One run: a setting, the keys of the condition, and the seed.
type Job<'a> = (&'a Setting, String, u64);
/// The name of a group and a direction.
type GroupDirection = (String, Direction);

/// Runs what is needed and prints the frontier.
///
/// # Errors
///
/// No setting is meant, a file cannot be read or written, or a run fails.
pub fn run(options: &FrontierOptions) -> anyhow::Result<()> {
    let settings = chosen(&options.settings)?;
    if options.terms {
        return terms(&settings, options);
    }
    let is_report = "an output of `frontier --json`";
    let earlier =
        options.baseline.as_deref().map(|path| files::load::<FrontierReport>(path, is_report));
    let earlier = earlier.transpose()?;
    let lab = options.lab.iter().map(|path| files::load(path, "a result of `wakeai lab --json`"));
    let lab = lab.collect::<anyhow::Result<Vec<_>>>()?;
    let kept = options.keep.as_deref().map(KeptRuns::load).transpose()?.unwrap_or_default();
    let mut frontier = Frontier { settings: &settings, kept, options, written: Instant::now() };
    frontier.run_solos()?;
    if !options.law_only {
        frontier.run_others()?;
    }
    let laws = frontier.run_law()?;
    let rows = settings.iter().zip(laws).map(|(setting, law)| frontier.row(setting, law, &lab));
    let settings = rows.collect::<anyhow::Result<Vec<_>>>()?;
    let report = FrontierReport { seeds: options.seeds, settings };
    let judged = verdict::judge(&report, earlier.as_ref());
    if let Some(directory) = &options.write {
        write(directory, &report, &table::page(&judged))?;
    }
    say(&match options {
        FrontierOptions { json: true, .. } => serde_json::to_string_pretty(&report)? + "\n",
        FrontierOptions { markdown: true, .. } => table::markdown(&judged),
        _ => table::text(&judged),
    })
}

/// Counts the terms of the law in each setting.
fn terms(settings: &[Setting], options: &FrontierOptions) -> anyhow::Result<()> {
    let jobs = jobs_of_the_law(settings, options);
    let count = |(setting, keys, seed): &Job<'_>| {
        let scenario = with_condition(setting, LAW, keys)?;
        terms::run(&scenario, *seed).with_context(|| setting.name)
    };
    let counted = pool::each("terms", (&jobs, options.jobs), count, |_, _| Ok(()))?;
    let sums =
        counted.chunks(options.seeds as usize).map(|of_setting| Terms::sum(of_setting.iter()));
    let sums: Vec<Terms> = sums.collect();
    let rows: Vec<_> = settings.iter().map(|setting| setting.name).zip(&sums).collect();
    say(&terms::table(&rows, options.markdown))
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<Setting>> {
    let mut all = law::matrix();
    all.retain(Setting::has_frontier);
    for name in names {
        let known = all.iter().any(|setting| setting.name.contains(name.as_str()));
        let every = || all.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
        ensure!(known, "{name} is no setting with a frontier; there are {}", every());
    }
    let is_whole = |name: &String| all.iter().any(|one| one.name == name);
    let names: Vec<_> = names.iter().map(|name| (name, is_whole(name))).collect();
    let meant = |name: &str, setting: &str, whole| {
        if whole { name == setting } else { setting.contains(name) }
    };
    all.retain(|one| {
        names.is_empty() || names.iter().any(|(name, whole)| meant(name, one.name, *whole))
    });
    Ok(all)
}

/// The scenario of a setting without conditions.
fn base(setting: &Setting) -> &str {
    setting.toml.split("\n[[conditions]]").next().unwrap_or(&setting.toml)
}

fn with_condition(setting: &Setting, name: &str, keys: &str) -> anyhow::Result<Scenario> {
    let has_agents = setting.agents.filter(|_| keys.contains("law = "));
    let agents = has_agents.map(|group| format!("agents = '{group}'\n")).unwrap_or_default();
    let text = format!("{}\n[[conditions]]\nname = '{name}'\n{agents}{keys}", base(setting));
    Scenario::parse(&text).with_context(|| setting.name)
}

/// The runs of the law, ordered by setting.
fn jobs_of_the_law<'a>(settings: &'a [Setting], options: &FrontierOptions) -> Vec<Job<'a>> {
    let keys = format!("law = {}\n", options.law);
    let of = |setting: &'a Setting| {
        let keys = keys.clone();
        (1..=u64::from(options.seeds)).map(move |seed| (setting, keys.clone(), seed))
    };
    settings.iter().flat_map(of).collect()
}

/// The solo runs of the groups, each with the groups and directions for which it counts.
fn solo_runs(setting: &Setting) -> anyhow::Result<Vec<(SoloRun, Vec<GroupDirection>)>> {
    let scenario = with_condition(setting, DEFAULT, "")?;
    let stations = scenario.expand_stations();
    let plan = solo_plan(&scenario.conditions()[0]).into_iter();
    Ok(plan
        .map(|solo| {
            let of = solo.applies_to.iter().map(|of| {
                let group = stations[of.station].group;
                (scenario.stations[group].name.clone(), of.direction)
            });
            let groups = of.collect();
            (solo, groups)
        })
        .collect())
}

/// The settings with the runs that are known.
struct Frontier<'a> {
    settings: &'a [Setting],
    kept: KeptRuns,
    options: &'a FrontierOptions,
    /// The last time at which the file of `--keep` was written.
    written: Instant,
}

impl Frontier<'_> {
    /// Runs each station alone, as far as that is not known.
    fn run_solos(&mut self) -> anyhow::Result<()> {
        let mut jobs = BTreeMap::new();
        for setting in self.settings {
            for (run, _) in solo_runs(setting)? {
                let missing =
                    self.seeds().filter(|seed| self.kept.solo(&run.key(), *seed).is_none());
                jobs.extend(missing.map(|seed| ((run.key(), seed), run.clone())));
            }
        }
        let jobs: Vec<_> = jobs.into_iter().collect();
        let alone = |((_, seed), run): &((String, u64), SoloRun)| {
            Ok(wakeai_sim::alone(&run.condition, *seed, &Silent)?)
        };
        let at_once = self.options.jobs;
        let done = |((key, seed), _): &((String, u64), SoloRun), mbps: &f64| {
            self.kept.add_solo(key.clone(), *seed, *mbps);
            self.store_now_and_then()
        };
        pool::each("alone", (&jobs, at_once), alone, done)?;
        self.store()
    }

    /// Runs all conditions that do not depend on the law, as far as their figures are not known.
    fn run_others(&mut self) -> anyhow::Result<()> {
        let mut jobs = Vec::new();
        for setting in self.settings {
            for (_, keys) in self.conditions(setting)? {
                let is_missing = |seed: &u64| self.kept.run(base(setting), &keys, *seed).is_none();
                jobs.extend(
                    self.seeds().filter(is_missing).map(|seed| (setting, keys.clone(), seed)),
                );
            }
        }
        let (at_once, simulate) = (self.options.jobs, simulator(&self.kept));
        let done = |(setting, keys, seed): &Job<'_>, point: &Point| {
            self.kept.add_run(base(setting), keys, *seed, *point);
            self.store_now_and_then()
        };
        pool::each("default, tables, windows", (&jobs, at_once), simulate, done)?;
        self.store()
    }

    /// Runs the law. Returns the means of each setting.
    fn run_law(&self) -> anyhow::Result<Vec<Point>> {
        let jobs = jobs_of_the_law(self.settings, self.options);
        let simulate = simulator(&self.kept);
        let points = pool::each("law", (&jobs, self.options.jobs), simulate, |_, _| Ok(()))?;
        Ok(points.chunks(self.options.seeds as usize).map(Point::mean).collect())
    }

    fn row(&self, setting: &Setting, law: Point, lab: &[Report]) -> anyhow::Result<FrontierRow> {
        let (mut others, mut windows) = (BTreeMap::new(), Vec::new());
        for (label, keys) in self.conditions(setting)? {
            let point = self.kept.mean(base(setting), &keys, self.options.seeds);
            let Some(point) = point else { continue };
            if OTHERS.iter().any(|(name, _)| *name == label) {
                others.insert(label, point);
            } else {
                windows.push(Window { label, point });
            }
        }
        let before_ms = others.get(DEFAULT).map_or(f64::NAN, |point| point.p95_ms);
        let receiving = match setting.promise {
            Promise::Receives(receiving) => {
                Some(receiving_bounds(setting, receiving, (law.p95_ms, before_ms)))
            }
            _ => None,
        };
        others.extend(lab.iter().flat_map(|report| point::of_report(report, setting)));
        Ok(FrontierRow {
            setting: setting.name.to_owned(),
            stations: setting.scenario.station_count(),
            single_frames: setting.has_single_frames(),
            receiving,
            scenario: base(setting).to_owned(),
            law,
            others,
            windows,
        })
    }

    fn seeds(&self) -> std::ops::RangeInclusive<u64> {
        1..=u64::from(self.options.seeds)
    }

    /// The conditions of a setting that do not depend on the law: for each its label and its keys.
    /// The fixed windows depend on what each station reaches alone with seed 1, so that they are the
    /// same for each number of seeds.
    fn conditions(&self, setting: &Setting) -> anyhow::Result<Vec<(String, String)>> {
        let mut alone = BTreeMap::new();
        for (run, groups) in solo_runs(setting)? {
            let mbps = self.kept.solo(&run.key(), 1).unwrap_or(f64::NAN);
            alone.extend(groups.into_iter().map(|group| (group, mbps)));
        }
        let (buffer, _) = setting.access_point_queue();
        let sweep = sweep(&Senders::new(&setting.scenario, &alone), buffer);
        let others = OTHERS.iter().map(|(name, keys)| ((*name).to_owned(), (*keys).to_owned()));
        let windows = sweep.iter().map(|windows| (windows.label(), windows.keys()));
        Ok(others.chain(windows).collect())
    }

    /// Writes the file of `--keep` if that was long ago, so that an interruption loses little.
    fn store_now_and_then(&mut self) -> anyhow::Result<()> {
        if self.written.elapsed() < BETWEEN_WRITES {
            return Ok(());
        }
        self.written = Instant::now();
        self.store()
    }

    fn store(&self) -> anyhow::Result<()> {
        self.options.keep.as_deref().map_or(Ok(()), |path| files::store(path, &self.kept))
    }
}

/// What makes a run, with the goodputs of single stations that are known by now.
fn simulator(kept: &KeptRuns) -> impl Fn(&Job<'_>) -> anyhow::Result<Point> + Sync + use<> {
    let known = kept.known_solos();
    move |(setting, keys, seed)| {
        let scenario = with_condition(setting, LAW, keys)?;
        point::run(&scenario, *seed, known.clone()).with_context(|| setting.name)
    }
}

/// Writes the figures, from which the pictures are drawn, and the table of all settings.
fn write(directory: &Path, report: &FrontierReport, table: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    files::store(&directory.join("frontier.json"), report)?;
    let path = directory.join("frontier.md");
    std::fs::write(&path, table).with_context(|| path.display().to_string())?;
    let (script, directory) =
        ("target/venv-python/bin/python validation/frontier.py", directory.display());
    let hint =
        format!("`{script} {directory}` draws the pictures (`scripts/python-env` installs it)\n");
    std::io::stderr().write_all(hint.as_bytes()).context("standard error")
}
