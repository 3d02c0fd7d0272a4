//! The frontier of one setting as SVG: goodput over queueing delay.

use super::report::Row;
use crate::svg::{Marks, Scatter};

/// The picture of a setting: a line through the fixed windows, and a mark for each condition.
pub fn render(row: &Row) -> String {
    let windows =
        row.windows.iter().map(|of| (of.label.clone(), of.point.p95_ms, of.point.goodput));
    let named = std::iter::once(("law", &row.law));
    let named = named.chain(row.others.iter().map(|(name, point)| (name.as_str(), point)));
    let named = named.map(|(name, point)| (name.to_owned(), point.p95_ms, point.goodput));
    Scatter {
        title: format!("{}: fixed windows (segments), the law and others", row.setting),
        horizontal: "queueing delay, 95th percentile, ms".to_owned(),
        vertical: "Mbit/s".to_owned(),
        line: Marks(windows.collect()),
        marks: Marks(named.collect()),
    }
    .render()
}
