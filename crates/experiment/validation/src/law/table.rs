//! The rows of the matrix as a table in text.

use std::fmt::Write as _;

use super::figures::{LawFigures, LawRow};
use super::verdict::measures;
use crate::verdict::{Measure, Measures};

/// One line for each row: first the rows that compare the law with other conditions, then those
/// about the law alone.
pub fn render(rows: &[LawRow]) -> String {
    let of_the_law = |row: &&LawRow| row.setting.promise.is_of_the_law_alone();
    let (alone, beside): (Vec<&LawRow>, Vec<&LawRow>) = rows.iter().partition(of_the_law);
    let tables = [(&beside, comparison(&beside)), (&alone, measured(&alone))];
    let tables = tables.into_iter().filter(|(rows, _)| !rows.is_empty());
    tables.map(|(_, table)| table).collect::<Vec<_>>().join("\n")
}

/// The table of measured figures with their promised bounds.
fn measured(rows: &[&LawRow]) -> String {
    let mut text = format!("{:22} {:>10}   what was measured\n", "setting", "Mbit/s");
    for row in rows {
        let _ = write!(text, "{:22} {:10.1}", row.setting.name, row.of("airtime").goodput);
        let Measures(measures) = measures(row);
        for Measure { what, value, bound, is_least } in &measures {
            let sign = if *is_least { ">=" } else { "<=" };
            let _ = write!(text, "   {what}: {value:.2} ({sign} {bound:.2})");
        }
        let held = measures.iter().all(Measure::holds);
        let _ = writeln!(text, "   {}", if held { "held" } else { "BROKEN" });
    }
    text
}

/// The table that compares conditions: the figures of `default`, and those of the others relative
/// to it.
fn comparison(rows: &[&LawRow]) -> String {
    let mut text = format!(
        "{:18} {:>31}   {:>27}   {:>27}\n",
        "setting", "default: Mbit/s index p95 tmo", "shimada-after", "airtime"
    );
    for row in rows {
        let default = row.of("default");
        let _ = write!(
            text,
            "{:18} {:11.1}  {:.3} {:7.0} {:5.1}",
            row.setting.name, default.goodput, default.index, default.growth_ms, default.timeouts
        );
        for condition in ["shimada-after", "airtime"] {
            let _ = write!(text, "   {}", beside(&row.of(condition), &default));
        }
        let broken = measures(row).broken();
        let verdict = if broken.is_empty() { "held".to_owned() } else { broken.join("; ") };
        let _ = writeln!(text, "   {verdict}");
    }
    text
}

fn beside(ours: &LawFigures, default: &LawFigures) -> String {
    let mut text = format!(
        "{:.3}  {:.3} {:7.0} {:5.1}",
        ours.goodput / default.goodput,
        ours.index,
        ours.growth_ms,
        ours.timeouts
    );
    if let (Some((mean, last)), Some(before)) = (ours.completion, default.completion) {
        let _ = write!(text, " {:.2}/{:.2}", mean / before.0, last / before.1);
    }
    text
}
