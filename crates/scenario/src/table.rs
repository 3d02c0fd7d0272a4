//! The report as a table for a terminal.

mod targets;

use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Row, Table, TableStyle, presets};

use crate::figures::mean;
use crate::result::{ErrorCounts, GroupResult, Report, Run};

/// The report as lines of text, with a newline at the end: a row per condition, with means over
/// the repeats and, where there are several, their standard deviations.
pub fn render(report: &Report) -> String {
    let mut text = title(report);
    let conditions = by_condition(&report.runs);
    let Some(baseline) = conditions.first() else { return text + "no runs\n" };
    let mut table = Table::new();
    table.load_style(style());
    table.set_header(HEADER);
    for runs in &conditions {
        table.add_row(row(runs, baseline));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let _ = writeln!(text, "{}", table.trim_fmt()); // to a String: never fails
    if baseline[0].groups.len() > 1 {
        let _ = writeln!(text, "\n{}", groups(&conditions).trim_fmt());
    }
    if let Some(targets) = targets::targets(&conditions) {
        let _ = writeln!(text, "\n{}", targets.trim_fmt());
    }
    let _ = writeln!(text, "{}", legend(report, baseline));
    text
}

/// A row per condition and group of stations.
fn groups(conditions: &[Vec<&Run>]) -> Table {
    let mut table = Table::new();
    table.load_style(style());
    table.set_header(GROUPS);
    let baseline = &conditions[0];
    for runs in conditions {
        for (index, group) in runs[0].groups.iter().enumerate() {
            let figure = |decimals, value: fn(&GroupResult) -> Option<f64>| {
                let values = runs.iter().map(|run| run.groups.get(index).and_then(value));
                let values: Option<Vec<f64>> = values.collect();
                values.map_or_else(|| "-".to_owned(), |values| spread(&values, decimals))
            };
            let goodput = |runs: &[&Run]| {
                let values = runs.iter().filter_map(|run| run.groups.get(index));
                mean(&values.map(|group| group.goodput_mbps).collect::<Vec<_>>())
            };
            table.add_row(vec![
                runs[0].condition.clone(),
                group.group.clone(),
                figure(2, |group| Some(group.goodput_mbps)),
                change(runs, baseline, goodput),
                figure(3, |group| group.jain),
                figure(1, |group| group.rtt_ms.p50),
                figure(1, |group| group.rtt_ms.p95),
                figure(1, |group| group.rtt_ms.p99),
            ]);
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

const GROUPS: [&str; 8] = [
    "\ncondition",
    "\ngroup",
    "goodput\nMbit/s",
    "\nchange",
    "\nJain",
    "RTT ms\np50",
    "\np95",
    "\np99",
];

const HEADER: [&str; 13] = [
    "\ncondition",
    "goodput\nMbit/s",
    "\nchange",
    "\nJain",
    "capacity\nnormal.",
    "utili-\nsation",
    "RTT ms\np50",
    "\np95",
    "\np99",
    "re-\norder",
    "local\nqueue",
    "dup.\nACK",
    "time-\nout",
];

/// Lines above and below the table and below its header, nowhere else.
fn style() -> TableStyle {
    presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none())
}

fn title(report: &Report) -> String {
    let Report { scenario, world, version, seed, .. } = report;
    format!("{scenario} in the {world}, seed {seed}, wakeai {version}\n")
}

/// The runs of each condition, in the order in which conditions first occur.
fn by_condition(runs: &[Run]) -> Vec<Vec<&Run>> {
    let mut conditions: Vec<Vec<&Run>> = Vec::new();
    for run in runs {
        match conditions.iter_mut().find(|of| of[0].condition == run.condition) {
            Some(of) => of.push(run),
            None => conditions.push(vec![run]),
        }
    }
    conditions
}

fn row(runs: &[&Run], baseline: &[&Run]) -> Row {
    let figure = |decimals, value: fn(&Run) -> Option<f64>| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| value(run)).collect();
        values.map_or_else(|| "-".to_owned(), |values| spread(&values, decimals))
    };
    let errors = |count: fn(&ErrorCounts) -> u64| {
        spread(&runs.iter().map(|run| count(&run.errors) as f64).collect::<Vec<_>>(), 0)
    };
    Row::from(vec![
        runs[0].condition.clone(),
        figure(2, |run| Some(run.total_goodput_mbps)),
        change(runs, baseline, total),
        figure(3, |run| run.jain),
        figure(3, |run| run.capacity_normalised),
        figure(3, |run| run.mean_utilisation),
        figure(1, |run| run.rtt_ms.p50),
        figure(1, |run| run.rtt_ms.p95),
        figure(1, |run| run.rtt_ms.p99),
        errors(|errors| errors.reordering),
        errors(|errors| errors.local_overflow),
        errors(|errors| errors.duplicate_ack),
        errors(|errors| errors.timeout),
    ])
}

/// The mean, and below it the standard deviation where there are several values.
fn spread(values: &[f64], decimals: usize) -> String {
    let Some(mean) = mean(values) else { return "-".to_owned() };
    if values.len() < 2 {
        return format!("{mean:.decimals$}");
    }
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let deviation = (squares / (values.len() - 1) as f64).sqrt();
    format!("{mean:.decimals$}\n± {deviation:.decimals$}")
}

/// The change of a mean against the baseline's.
fn change(runs: &[&Run], baseline: &[&Run], mean: impl Fn(&[&Run]) -> Option<f64>) -> String {
    if runs[0].condition == baseline[0].condition {
        return "baseline".to_owned();
    }
    match (mean(runs), mean(baseline)) {
        (Some(own), Some(base)) if base > 0.0 => format!("{:+.1} %", (own / base - 1.0) * 100.0),
        _ => "-".to_owned(),
    }
}

fn total(runs: &[&Run]) -> Option<f64> {
    mean(&runs.iter().map(|run| run.total_goodput_mbps).collect::<Vec<_>>())
}

/// What the columns leave unsaid.
fn legend(report: &Report, baseline: &[&Run]) -> String {
    let mut lines = Vec::new();
    let repeats = baseline.len();
    if repeats > 1 {
        lines.push(format!("mean ± standard deviation of {repeats} repeats"));
    }
    let late = report.runs.iter().filter_map(|run| run.lateness.map(|late| (run, late)));
    let worst = late.max_by(|a, b| a.1.p99_ms.total_cmp(&b.1.p99_ms));
    if let Some((run, late)) = worst {
        lines.push(format!(
            "packets were released at most {:.2} ms late, 99 % within {:.2} ms ({}, repeat {}{})",
            late.max_ms,
            late.p99_ms,
            run.condition,
            run.repeat,
            if late.faithful { "" } else { ", NOT FAITHFUL" },
        ));
    }
    if report.runs.iter().any(|run| run.lateness.is_some_and(|late| !late.faithful)) {
        lines
            .push("a run that is not faithful says nothing: repeat it on a quieter machine".into());
    }
    let maxima = baseline[0].stations.iter().any(|station| station.max_mbps.is_some());
    if maxima {
        lines.push(
            "capacity-normalised and utilisation: against what each station reaches alone".into(),
        );
    }
    lines.join("\n")
}
