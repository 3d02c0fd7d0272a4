//! The curves of a result: goodput, RTT and windows over time from the records, and distributions.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use wakeai_results::aggregate::by_condition;
use wakeai_results::records::SCHEMA;
use wakeai_results::result::Report;
use wakeai_tables::{Group, TableError, TableReader};

/// The most points of a line over time. More cannot be told apart on a screen.
const MOST_POINTS: u64 = 600;
/// The shortest step, nanoseconds. Over shorter steps the goodput shows single bursts.
const SHORTEST_NS: u64 = 500_000_000;
/// The number of points of a distribution.
const QUANTILES: usize = 200;
/// The largest number of samples of a condition from which a distribution is made. If there are
/// more, every second one is dropped.
const MOST_SAMPLES: usize = 400_000;

/// A line of a plot: for each place on the horizontal axis a value, or `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The name in the legend.
    pub name: String,
    /// The values.
    pub values: Vec<Option<f64>>,
}

/// A plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The horizontal axis, with its unit.
    pub x: &'static str,
    /// The vertical axis, with its unit.
    pub y: &'static str,
    /// Whether the lines are drawn as steps, as those of distributions are.
    pub steps: bool,
    /// The places on the horizontal axis, ascending.
    pub at: Vec<f64>,
    /// The lines.
    pub lines: Vec<Line>,
}

/// The plots of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// For each condition, the plots over time of its first repeat.
    pub over_time: Vec<(String, Vec<Plot>)>,
    /// The distribution of the RTT by condition, over all repeats.
    pub rtt: Option<Plot>,
    /// The length of the steps of the plots over time, seconds.
    pub step_s: f64,
}

/// The sum and the number of values in each step, by line.
type Steps = BTreeMap<String, Vec<(f64, u32)>>;

/// Reads the records of the directory. Tables that are not there give no plots.
///
/// # Errors
///
/// A table is there and cannot be read.
pub(crate) fn read(directory: &Path, report: &Report) -> Result<Curves, TableError> {
    let longest = report.runs.iter().map(|run| run.simulated_s).fold(0.0, f64::max);
    let step_ns = ((longest * 1e9) as u64 / MOST_POINTS).div_ceil(SHORTEST_NS).max(1) * SHORTEST_NS;
    let step_s = step_ns as f64 * 1e-9;
    let names: Vec<&str> =
        by_condition(&report.runs).iter().map(|runs| runs[0].condition.as_str()).collect();
    let mut goodput = BTreeMap::<String, Steps>::new();
    each_row(directory, "goodput.parquet", |group, row, condition, repeat| {
        if repeat == 0 {
            let at = (integer(group, "at_ns", row)? / step_ns) as usize;
            let bytes = integer(group, "bytes", row)? as f64;
            add(&mut goodput, condition, &station(group, row)?, at, bytes);
        }
        Ok(())
    })?;
    let (mut rtt, mut cwnd) = (BTreeMap::new(), BTreeMap::new());
    let mut samples = BTreeMap::<String, Thinned>::new();
    each_row(directory, "samples.parquet", |group, row, condition, repeat| {
        let us = group.u64("rtt_us", row)?;
        if let Some(us) = us {
            samples.entry(condition.to_owned()).or_default().add(us);
        }
        if repeat == 0 {
            let at = (integer(group, "at_ns", row)? / step_ns) as usize;
            let station = station(group, row)?;
            add(&mut cwnd, condition, &station, at, integer(group, "cwnd", row)? as f64);
            if let Some(us) = us {
                add(&mut rtt, condition, &station, at, us as f64 * 1e-3);
            }
        }
        Ok(())
    })?;
    let over_time = names.iter().map(|name| {
        let per_second = 8e-6 / step_s;
        let plots = [
            ("Goodput of each station", "goodput, Mbit/s", goodput.remove(*name), Some(per_second)),
            ("Round-trip time, means of the steps", "RTT, ms", rtt.remove(*name), None),
            ("Congestion window, means of the steps", "window, segments", cwnd.remove(*name), None),
        ];
        let plots = plots.into_iter().filter_map(|(title, y, steps, scale)| {
            Some(over_time(title, y, &steps?, step_s, scale))
        });
        ((*name).to_owned(), plots.collect())
    });
    let over_time: Vec<(String, Vec<Plot>)> = over_time.collect();
    let over_time = over_time.into_iter().filter(|(_, plots)| !plots.is_empty()).collect();
    Ok(Curves { over_time, rtt: distribution(&names, samples), step_s })
}

/// Calls `work` with each row, its condition and its repeat.
fn each_row(
    directory: &Path,
    name: &str,
    mut work: impl FnMut(&Group, usize, &str, u64) -> Result<(), TableError>,
) -> Result<(), TableError> {
    let path = directory.join(name);
    if !path.exists() {
        return Ok(());
    }
    let mut table = TableReader::open(&path)?.expect(SCHEMA)?;
    while let Some(group) = table.next_group()? {
        for row in 0..group.rows() {
            let condition = group.text("condition", row)?.unwrap_or_default();
            work(&group, row, condition, integer(&group, "repeat", row)?)?;
        }
    }
    Ok(())
}

fn integer(group: &Group, column: &str, row: usize) -> Result<u64, TableError> {
    group.u64(column, row)?.ok_or_else(|| group.lacks(column))
}

fn station(group: &Group, row: usize) -> Result<String, TableError> {
    Ok(group.text("station", row)?.unwrap_or_default().to_owned())
}

fn add(all: &mut BTreeMap<String, Steps>, condition: &str, line: &str, at: usize, value: f64) {
    let lines = all.entry(condition.to_owned()).or_default();
    let steps = lines.entry(line.to_owned()).or_default();
    // A run has about `MOST_POINTS` steps at most. Much later times, which only damaged records
    // have, are left out.
    if at > 2 * MOST_POINTS as usize {
        return;
    }
    if steps.len() <= at {
        steps.resize(at + 1, (0.0, 0));
    }
    steps[at] = (steps[at].0 + value, steps[at].1 + 1);
}

/// A plot of the sums of the steps times `scale`, or of their means if `scale` is `None`.
fn over_time(title: &str, y: &'static str, steps: &Steps, step_s: f64, scale: Option<f64>) -> Plot {
    let length = steps.values().map(Vec::len).max().unwrap_or(0);
    let value = |(sum, count): &(f64, u32)| {
        let value = scale.map_or(sum / f64::from((*count).max(1)), |scale| sum * scale);
        (*count > 0).then(|| rounded(value))
    };
    let lines = steps.iter().map(|(name, steps)| {
        let mut values: Vec<_> = steps.iter().map(value).collect();
        values.resize(length, None);
        Line { name: name.clone(), values }
    });
    Plot {
        title: title.to_owned(),
        x: "time, s",
        y,
        steps: false,
        at: (0..length).map(|at| rounded((at as f64 + 0.5) * step_s)).collect(),
        lines: lines.collect(),
    }
}

/// Samples. If there are too many, a part of them is kept, spread evenly over the run.
#[derive(Debug, Default)]
struct Thinned {
    kept: Vec<u64>,
    halvings: u32,
    seen: usize,
}

impl Thinned {
    fn add(&mut self, value: u64) {
        if self.seen.is_multiple_of(1 << self.halvings) {
            self.kept.push(value);
        }
        self.seen += 1;
        if self.kept.len() > MOST_SAMPLES {
            self.kept = self.kept.iter().copied().step_by(2).collect();
            self.halvings += 1;
        }
    }
}

/// The distribution of the samples of each condition.
fn distribution(names: &[&str], mut samples: BTreeMap<String, Thinned>) -> Option<Plot> {
    let (mut at, mut conditions) = (Vec::new(), Vec::new());
    for name in names {
        let Some(mut kept) = samples.remove(*name).map(|thinned| thinned.kept) else { continue };
        kept.sort_unstable();
        let kept: Vec<f64> = kept.into_iter().map(|us| us as f64 * 1e-3).collect();
        let place = |part: usize| part * (kept.len() - 1) / QUANTILES;
        at.extend((0..=QUANTILES).map(|part| kept[place(part)]));
        let count = kept.len();
        conditions.push(((*name).to_owned(), kept, count));
    }
    let title = "Distribution of the round-trip time";
    shares(title, ("RTT, ms", "share of the samples"), at, conditions)
}

/// The distribution of the completions by condition, if there are any.
pub(crate) fn completions(report: &Report) -> Option<Plot> {
    let (mut at, mut conditions) = (Vec::new(), Vec::new());
    for runs in by_condition(&report.runs) {
        let flows = || runs.iter().flat_map(|run| &run.flows);
        let mut done: Vec<f64> = flows().filter_map(|flow| flow.completion_s).collect();
        done.sort_by(f64::total_cmp);
        at.extend(done.iter().copied());
        conditions.push((runs[0].condition.clone(), done, flows().count()));
    }
    let title = "Distribution of the completions";
    shares(title, ("completion, s", "share of the flows"), at, conditions)
}

/// For each condition the share of its values up to each of the places `at`. A condition has a name, its values in
/// ascending order, and their number; `completions` that did not happen count, too.
fn shares(
    title: &str,
    (x, y): (&'static str, &'static str),
    mut at: Vec<f64>,
    conditions: Vec<(String, Vec<f64>, usize)>,
) -> Option<Plot> {
    at.sort_by(f64::total_cmp);
    at.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let lines = conditions.into_iter().map(|(name, values, count)| {
        let share = |at: &f64| values.partition_point(|value| value <= at) as f64 / count as f64;
        Line { name, values: at.iter().map(|at| Some(rounded(share(at)))).collect() }
    });
    let lines = lines.collect();
    (!at.is_empty()).then(|| Plot {
        title: title.to_owned(),
        x,
        y,
        steps: true,
        at: at.iter().map(|at| rounded(*at)).collect(),
        lines,
    })
}

/// Rounds to four digits after the point; a plot cannot show more.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
