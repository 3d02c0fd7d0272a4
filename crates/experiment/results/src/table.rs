//! Renders the report as tables for a terminal.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, presets};
use textwrap::WordSplitter;

use crate::aggregate::by_condition;
use crate::air::between_conditions;
use crate::figures::{Interval, mean};
use crate::result::{FieldStation, FlowReservation, FlowResult, GroupResult, Report, Run};

/// The width of the tables, and the figures that they show.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The number of columns of the terminal. At least [`Layout::MIN_COLUMNS`] are used.
    pub columns: usize,
    /// Whether the tables show all figures and are as wide as these need.
    pub wide: bool,
}

impl Layout {
    /// The smallest width. Every line of the tables fits into it.
    pub const MIN_COLUMNS: usize = 80;
}

impl Default for Layout {
    fn default() -> Self {
        Self { columns: Self::MIN_COLUMNS, wide: false }
    }
}

/// The report as text; every line ends in a newline. Each condition has a row with the means over
/// the repeats and, if there are several repeats, half the widths of their 95 % confidence intervals.
pub fn render(report: &Report, layout: Layout) -> String {
    let Report { scenario, world, version, seed, runs, .. } = report;
    let sheet = Sheet {
        conditions: by_condition(runs),
        unit: RateUnit::of(runs),
        layout: Layout { columns: layout.columns.max(Layout::MIN_COLUMNS), ..layout },
    };
    let kernel = report.guest.as_ref().map(|guest| format!(" on Linux {}", guest.kernel));
    let kernel = kernel.unwrap_or_default();
    let title = format!("{scenario} in the {world}{kernel}, seed {seed}, wakeai {version}");
    let mut text = sheet.folded(&title);
    if sheet.conditions.is_empty() {
        text.push_str(if runs.is_empty() { "no runs\n" } else { "no run counts\n" });
        for line in field_lines(runs) {
            text.push_str(&sheet.folded(&line));
        }
        return text;
    }
    let tables = [Some(sheet.totals()), sheet.groups(), sheet.targets()];
    let tables: Vec<String> = tables.iter().flatten().map(Table::trim_fmt).collect();
    text.push_str(&tables.join("\n\n"));
    text.push('\n');
    for line in sheet.legend(report) {
        text.push_str(&sheet.folded(&line));
    }
    text
}

/// The unit of all goodputs of a report.
#[derive(Clone, Copy)]
struct RateUnit {
    name: &'static str,
    per_mbps: f64,
}

impl RateUnit {
    /// The unit in which the largest goodput has one to four digits before the point.
    fn of(runs: &[Run]) -> Self {
        let largest = runs.iter().map(|run| run.total_goodput_mbps).fold(0.0, f64::max);
        let (name, per_mbps) = match largest {
            mbps if mbps >= 10_000.0 => ("Gbit/s", 1e-3),
            mbps if mbps > 0.0 && mbps < 1.0 => ("kbit/s", 1e3),
            _ => ("Mbit/s", 1.0),
        };
        Self { name, per_mbps }
    }
}

/// A figure of one run; `None` if the run does not have it.
type Figure = fn(&Run) -> Option<f64>;

/// The data of the tables.
struct Sheet<'a> {
    /// The runs of each condition; the first condition is the baseline.
    conditions: Vec<Vec<&'a Run>>,
    unit: RateUnit,
    layout: Layout,
}

impl Sheet<'_> {
    /// The table with a row for each condition.
    fn totals(&self) -> Table {
        let goodput: Figure = |run| Some(run.total_goodput_mbps);
        let jain: Figure = |run| run.jain;
        let p95: Figure = |run| run.rtt_ms.p95;
        let more: [(&str, usize, Figure); 8] = [
            ("RTT p50\nms", 1, |run| run.rtt_ms.p50),
            ("RTT p99\nms", 1, |run| run.rtt_ms.p99),
            ("Jain of\nshares of\nsolo goodput", 3, |run| run.capacity_normalised),
            ("mean\nshare of\nsolo goodput", 3, |run| run.mean_utilisation),
            ("reorder-\ning (1)", 0, |run| run.errors.map(|all| all.reordering as f64)),
            ("local\ndrop (2)", 0, |run| run.errors.map(|all| all.local_overflow as f64)),
            ("fast re-\ncovery (3)", 0, |run| run.errors.map(|all| all.duplicate_ack as f64)),
            ("timeout\n(4)", 0, |run| run.errors.map(|all| all.timeout as f64)),
        ];
        let more = if self.layout.wide { &more[..] } else { &[] };
        let rate = format!("goodput\n{}", self.unit.name);
        let mut header = vec!["condition", &rate, "change", "Jain", "change"];
        header.extend(["RTT p95\nms", "change"]);
        header.extend(more.iter().map(|(name, ..)| name));
        let rows = self.conditions.iter().map(|runs| {
            let values = |figure: Figure| over(runs, figure);
            let change =
                |figure: Figure, words: fn(f64, f64) -> String| self.change(runs, figure, words);
            let mut row = vec![
                runs[0].condition.clone(),
                spread(self.scaled(values(goodput)), 2),
                change(goodput, percent),
                spread(values(jain), 3),
                change(jain, difference),
                spread(values(p95), 1),
                change(p95, percent),
            ];
            row.extend(more.iter().map(|(_, decimals, of)| spread(values(*of), *decimals)));
            row
        });
        self.table(&[0], &header, rows)
    }

    /// The table with a row for each condition and group of stations; `None` if there is only one
    /// group.
    fn groups(&self) -> Option<Table> {
        let baseline = self.conditions[0][0];
        if baseline.groups.len() < 2 {
            return None;
        }
        let wide = self.layout.wide;
        let rate = format!("goodput\n{}", self.unit.name);
        let mut header = vec!["condition", "group", &rate, "change", "Jain"];
        header.extend(["RTT p95\nms", "change"]);
        header.extend(["RTT p50\nms", "RTT p99\nms"].iter().filter(|_| wide));
        let cells = self
            .conditions
            .iter()
            .flat_map(|runs| runs[0].groups.iter().enumerate().map(move |group| (runs, group)));
        let rows = cells.map(|(runs, (index, group))| {
            let of = |figure: fn(&GroupResult) -> Option<f64>| {
                move |run: &Run| run.groups.get(index).and_then(figure)
            };
            let (goodput, p95) =
                (of(|group| Some(group.goodput_mbps)), of(|group| group.rtt_ms.p95));
            let mut row = vec![
                runs[0].condition.clone(),
                group.group.clone(),
                spread(self.scaled(over(runs, goodput)), 2),
                self.change(runs, goodput, percent),
                spread(over(runs, of(|group| group.jain)), 3),
                spread(over(runs, p95), 1),
                self.change(runs, p95, percent),
            ];
            if wide {
                row.push(spread(over(runs, of(|group| group.rtt_ms.p50)), 1));
                row.push(spread(over(runs, of(|group| group.rtt_ms.p99)), 1));
            }
            row
        });
        Some(self.table(&[0, 1], &header, rows))
    }

    /// The table with a row for each condition and flow with a target rate; `None` if there are no
    /// such flows, or too many for a terminal.
    fn targets(&self) -> Option<Table> {
        let rate = format!("goodput\n{}", self.unit.name);
        let header = ["condition", "station", &rate, "AVR", "others'\nJain", "reserved"];
        let mut rows = Vec::new();
        for runs in &self.conditions {
            let flows = runs[0].flows.iter().enumerate();
            let with_target: Vec<_> = flows.filter(|(_, flow)| flow.avr.is_some()).collect();
            if with_target.len() > MAX_TARGETS {
                return None;
            }
            let others = spread(over(runs, jain_of_the_others), 3);
            rows.extend(with_target.into_iter().map(|(index, flow)| {
                let of = |figure: fn(&FlowResult) -> Option<f64>| {
                    over(runs, move |run| run.flows.get(index).and_then(figure))
                };
                vec![
                    runs[0].condition.clone(),
                    flow.station.clone(),
                    spread(self.scaled(of(|flow| Some(flow.goodput_mbps))), 2),
                    spread(of(|flow| flow.avr), 3),
                    others.clone(),
                    reserved(runs, index),
                ]
            }));
        }
        (!rows.is_empty()).then(|| self.table(&[0, 1, 5], &header, rows.into_iter()))
    }

    /// A table. The columns at `texts` are folded if the layout limits the width; all others hold
    /// numbers.
    fn table(
        &self,
        texts: &[usize],
        header: &[&str],
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Table {
        let mut table = Table::new();
        // Lines are drawn only above and below the table, and below its header.
        table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
        // Shorter headers are padded above, so that the last lines of all headers are in one row.
        let lines = |header: &&str| header.lines().count();
        let height = header.iter().map(lines).max().unwrap_or(0);
        let header = header.iter().map(|name| "\n".repeat(height - lines(name)) + name);
        table.set_header(header).add_rows(rows);
        if !self.layout.wide {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(self.layout.columns).unwrap_or(u16::MAX));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            if !texts.contains(&index) {
                column.set_constraint(ColumnConstraint::ContentWidth);
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    fn scaled(&self, values: Option<Vec<f64>>) -> Option<Vec<f64>> {
        let scaled = |mbps| mbps * self.unit.per_mbps;
        values.map(|values| values.into_iter().map(scaled).collect())
    }

    /// The change of a mean against the baseline's.
    fn change(
        &self,
        runs: &[&Run],
        figure: impl Fn(&Run) -> Option<f64> + Copy,
        words: fn(f64, f64) -> String,
    ) -> String {
        let baseline = &self.conditions[0];
        if runs[0].condition == baseline[0].condition {
            return "baseline".to_owned();
        }
        let mean_of = |runs: &[&Run]| over(runs, figure).and_then(|values| mean(&values));
        match (mean_of(runs), mean_of(baseline)) {
            (Some(own), Some(base)) if base > 0.0 => words(own, base),
            _ => UNKNOWN.to_owned(),
        }
    }

    /// Explanations of the columns. Each entry is a paragraph.
    fn legend(&self, report: &Report) -> Vec<String> {
        let baseline = &self.conditions[0];
        let mut lines = Vec::new();
        let repeats = self.conditions.iter().map(Vec::len);
        let most = repeats.clone().max().unwrap_or(0);
        if most > 1 {
            let which = if repeats.clone().all(|all| all == most) { "" } else { "up to " };
            lines.push(format!(
                "mean of {which}{most} repeats ± half of its 95 % confidence interval"
            ));
        }
        if let Some(failed) = &report.failed {
            lines.push(format!(
                "INCOMPLETE: {} of {} runs; the run {} failed: {}",
                report.runs.len(),
                failed.asked,
                failed.run,
                failed.reason
            ));
        }
        let late = report.runs.iter().filter_map(|run| run.lateness.map(|late| (run, late)));
        let worst = late.max_by(|a, b| a.1.p99_ms.total_cmp(&b.1.p99_ms));
        if let Some((Run { condition, repeat, .. }, late)) = worst {
            let faithful = if late.faithful { "" } else { ", NOT FAITHFUL" };
            let all_without =
                report.runs.iter().all(|run| run.lateness.is_none_or(|late| late.releases == 0));
            lines.push(if all_without {
                "no packet was released, so the lateness says nothing".to_owned()
            } else { format!(
                "packets were released at most {:.2} ms late, 99 % within {:.2} ms ({condition}, \
                 repeat {repeat}{faithful})",
                late.max_ms, late.p99_ms,
            )});
        }
        if report.runs.iter().any(|run| run.lateness.is_some_and(|late| !late.faithful)) {
            let advice = "a run that is not faithful says nothing: repeat it on a quieter machine";
            lines.push(advice.to_owned());
        }
        lines.extend(field_lines(&report.runs));
        if self.layout.wide {
            let events = "(1) to (4): congestion events, by the codes of Matsuno et al., table 2";
            lines.push(events.to_owned());
            if baseline[0].mean_utilisation.is_some() {
                lines.push(
                    "a share of solo goodput: a station's goodput over its goodput alone"
                        .to_owned(),
                );
            }
        } else {
            lines.push("more figures with --wide".to_owned());
        }
        lines
    }

    /// `text` in lines that fit the layout, broken between words where that is possible.
    fn folded(&self, text: &str) -> String {
        let width = textwrap::Options::new(self.layout.columns);
        textwrap::fill(text, width.word_splitter(WordSplitter::NoHyphenation)) + "\n"
    }
}

/// What there is to say of runs on real machines: how exact their starts were, which do not count, and what else may explain
/// the figures.
pub fn field_lines(runs: &[Run]) -> Vec<String> {
    let of = |run: &Run| format!("{} of block {}", run.condition, run.repeat + 1);
    let field = || runs.iter().filter_map(|run| Some((run, run.field.as_ref()?)));
    let mut lines = Vec::new();
    let skew = field().filter_map(|(_, field)| field.start_skew_ms).reduce(f64::max);
    let error = field().map(|(_, field)| field.clock_error_ms).reduce(f64::max);
    if let Some((skew, error)) = skew.zip(error) {
        lines.push(format!(
            "flows began at most {skew:.1} ms apart (clocks compared within {error:.1} ms)"
        ));
    }
    for (run, field) in field().filter(|(_, field)| !field.counts) {
        for station in field.stations.iter().filter(|station| !station.counts) {
            let reason = station.reason.as_deref().unwrap_or("the reason is not known");
            lines.push(format!("DOES NOT COUNT: {}: {}: {reason}", of(run), station.station));
        }
        lines.push(format!("delivered in {}: {}", of(run), delivered(&field.stations)));
    }
    for (run, field) in field().filter(|(_, field)| field.counts) {
        lines.extend(field.verdict.iter().map(|said| format!("{}: {said}", of(run))));
    }
    lines.extend(between_conditions(runs));
    lines
}

/// What each station delivered in a run that does not count.
fn delivered(stations: &[FieldStation]) -> String {
    let words = |station: &FieldStation| {
        let megabytes = station.delivered_bytes as f64 / 1e6;
        let counts = if station.counts { "" } else { " (does not count)" };
        format!("{} {megabytes:.1} MB{counts}", station.station)
    };
    let all: Vec<String> = stations.iter().skip(1).map(words).collect(); // the first is the server
    all.join(", ")
}

const UNKNOWN: &str = "-";
/// The largest number of flows with a target that the terminal's table shows.
const MAX_TARGETS: usize = 20;

/// The figure of each run; `None` if one of the runs does not have it.
fn over(runs: &[&Run], figure: impl Fn(&Run) -> Option<f64>) -> Option<Vec<f64>> {
    runs.iter().map(|run| figure(run)).collect()
}

/// The mean and, if there are several values, half the width of its confidence interval below it.
fn spread(values: Option<Vec<f64>>, decimals: usize) -> String {
    let Some(Interval { mean, half }) = Interval::of(&values.unwrap_or_default()) else {
        return UNKNOWN.to_owned();
    };
    // The sum of no goodputs is -0.0; adding 0.0 removes its sign.
    let mut text = format!("{:.decimals$}", mean + 0.0);
    if let Some(half) = half {
        let _ = write!(text, "\n± {half:.decimals$}"); // writing to a String never fails
    }
    text
}

/// A change relative to the baseline.
fn percent(own: f64, base: f64) -> String {
    match (own / base - 1.0) * 100.0 {
        percent if percent > 99_999.0 => "> 99999 %".to_owned(),
        percent if percent >= 1_000.0 => format!("{percent:+.0} %"),
        percent => format!("{percent:+.1} %"),
    }
}

/// The change of an index between 0 and 1.
fn difference(own: f64, base: f64) -> String {
    format!("{:+.3}", own - base)
}

/// Jain's index over the goodputs of the flows without a target.
fn jain_of_the_others(run: &Run) -> Option<f64> {
    let others = run.flows.iter().filter(|flow| flow.avr.is_none());
    crate::figures::jain(&others.map(|flow| flow.goodput_mbps).collect::<Vec<_>>())
}

/// The description of the first repeat's outcome, with the mean admitted time of all repeats.
fn reserved(runs: &[&Run], flow: usize) -> String {
    let of = |run: &&Run| run.flows.get(flow)?.reservation;
    let all: Vec<FlowReservation> = runs.iter().filter_map(of).collect();
    let Some(first) = all.first() else { return UNKNOWN.to_owned() };
    let times: Vec<f64> = all.iter().map(|one| one.admitted_s).collect();
    FlowReservation { admitted_s: mean(&times).unwrap_or(0.0), ..*first }.words()
}
