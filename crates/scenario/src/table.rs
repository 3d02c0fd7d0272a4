//! The report as a table for a terminal.

use crate::result::Report;

/// The report as lines of text, with a newline at the end.
pub fn render(report: &Report) -> String {
    format!("{}\n", report.scenario)
}
