//! The settings beside the frontier as one table, in text and in Markdown.

use std::fmt::Write as _;

use super::point::Point;
use super::report::{DEFAULT, FrontierRow, Window};
use super::verdict::{Judged, summary};

/// The papers' table that is shown.
const PAPERS: &str = "shimada-after";

/// What the figures are.
const EXPLAINED: &str = "Three figures are the goodput in Mbit/s, the 95th percentile of the queueing \
                         delay in ms, and the timeouts of a run. Before a colon stand the fixed windows in \
                         segments.\n";

/// The columns: what each shows, and its value in a row.
type Column = (&'static str, fn(&FrontierRow, &Judged) -> String);

const COLUMNS: &[Column] = &[
    ("setting", |row, _| row.setting.clone()),
    ("default", |row, _| other(row, DEFAULT)),
    (PAPERS, |row, _| other(row, PAPERS)),
    ("law", |row, _| figures(&row.law)),
    ("index", |row, _| format!("{:.3}", row.law.index)),
    ("shortest at .99", |row, _| window(row.shortest())),
    ("p95 /", |_, judged| part(judged.queue)),
    ("best at 1.1", |row, _| window(row.best())),
    ("goodput /", |_, judged| part(judged.beside_best)),
    ("/ default", |_, judged| part(judged.beside_default)),
    ("/ earlier", |_, judged| part(judged.beside_earlier.map(|earlier| earlier.0))),
    ("verdict", |_, judged| judged.words()),
];

fn other(row: &FrontierRow, name: &str) -> String {
    row.others.get(name).map_or_else(|| "-".to_owned(), figures)
}

fn figures(point: &Point) -> String {
    format!("{:.1}, {:.0}, {:.1}", point.goodput, point.p95_ms, point.timeouts)
}

fn window(window: Option<&Window>) -> String {
    window.map_or_else(|| "-".to_owned(), |of| format!("{}: {}", of.label, figures(&of.point)))
}

fn part(part: Option<f64>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| format!("{part:.2}"))
}

/// The table in text, with a summary. Three figures are the goodput in Mbit/s, the 95th percentile
/// of the queueing delay in ms, and the timeouts of a run.
pub fn text(rows: &[(&FrontierRow, Judged)]) -> String {
    lines_in_text(&lines(rows)) + "\n" + &summary(rows)
}

/// The table in Markdown, with a summary.
pub fn markdown(rows: &[(&FrontierRow, Judged)]) -> String {
    lines_in_markdown(&lines(rows)) + "\n" + &summary(rows)
}

/// The table in Markdown for a page beside the pictures: each setting's name leads to its picture.
pub fn page(rows: &[(&FrontierRow, Judged)]) -> String {
    let mut lines = lines(rows);
    for line in &mut lines[1..] {
        let name = std::mem::take(&mut line[0]);
        line[0] = format!("[{name}]({name}.svg)");
    }
    format!("{EXPLAINED}\n{}\n{}", lines_in_markdown(&lines), summary(rows))
}

/// Lines of cells in Markdown; the first is the heading.
pub(super) fn lines_in_markdown(lines: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let _ = writeln!(text, "| {} |", line.join(" | "));
        if number == 0 {
            text.push_str(&"|---".repeat(line.len()));
            text.push_str("|\n");
        }
    }
    text
}

/// Lines of cells in text, in columns.
pub(super) fn lines_in_text(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths);
        let cells: Vec<String> = cells.map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The heading and the rows, as cells.
fn lines(rows: &[(&FrontierRow, Judged)]) -> Vec<Vec<String>> {
    let heading = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let cells = |(row, judged): &(&FrontierRow, Judged)| {
        COLUMNS.iter().map(|(_, value)| value(row, judged)).collect()
    };
    std::iter::once(heading).chain(rows.iter().map(cells)).collect()
}
