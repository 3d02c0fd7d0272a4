//! The verdict in sentences: what the other conditions changed.

use std::fmt::Write as _;

use wakeai_results::aggregate::{Aggregate, by_condition};
use wakeai_results::compare::{Comparison, Difference};
use wakeai_results::result::Report;

/// A sentence for each condition against the first one.
pub(crate) fn sentences(report: &Report) -> Vec<String> {
    let conditions = by_condition(&report.runs);
    let Some(base) = conditions.first().map(|runs| runs[0].condition.clone()) else {
        return vec!["There are no runs.".to_owned()];
    };
    if conditions.len() == 1 {
        return vec![alone(report, &base)];
    }
    let others = conditions.iter().skip(1).map(|runs| runs[0].condition.as_str());
    let sentence = |name: &str| {
        let compared = Comparison::of_conditions((report, &base), (report, name)).ok()?;
        let row = compared.conditions.first()?;
        let figure = |key: &str| row.figures.get(key);
        let parts: Vec<String> = [
            figure("total_goodput_mbps").map(|found| relative("the aggregate goodput", found)),
            figure("rtt_ms.p95").map(|found| relative("the 95th percentile of the RTT", found)),
            figure("jain").map(|found| {
                let (a, b) = (found.a.interval.mean, found.b.interval.mean);
                format!("Jain's index is {b:.3} instead of {a:.3}{}", doubt(found))
            }),
        ]
        .into_iter()
        .flatten()
        .collect();
        Some(format!("With “{name}” instead of “{base}”: {}.", parts.join("; ")))
    };
    others.filter_map(sentence).collect()
}

fn alone(report: &Report, name: &str) -> String {
    let aggregates = Aggregate::of(&report.runs);
    let mean = |key: &str| {
        let found = aggregates.first().and_then(|one| one.figures.get(key).copied().flatten());
        found.map(|spread| spread.interval.mean)
    };
    let goodput = mean("total_goodput_mbps").unwrap_or(0.0);
    let mut text = format!("With “{name}” the stations get {goodput:.1} Mbit/s together");
    if let Some(rtt) = mean("rtt_ms.p95") {
        let _ = write!(text, ", the 95th percentile of the RTT is {rtt:.0} ms"); // never fails
    }
    if let Some(jain) = mean("jain") {
        let _ = write!(text, ", and Jain's index is {jain:.3}");
    }
    text + "."
}

fn relative(what: &str, found: &Difference) -> String {
    match found.relative {
        Some(part) if part.abs() < 0.0005 => format!("{what} is the same"),
        Some(part) => {
            let way = if part > 0.0 { "higher" } else { "lower" };
            format!("{what} is {:.1} % {way}{}", part.abs() * 100.0, doubt(found))
        }
        None => format!("{what} is {:.1} instead of 0", found.b.interval.mean),
    }
}

/// A remark if chance may explain the difference; empty if it does not.
fn doubt(found: &Difference) -> &'static str {
    match found.is_told_apart() {
        Some(true) => "",
        Some(false) => " (within what chance explains)",
        None => " (one run, so chance is not excluded)",
    }
}
