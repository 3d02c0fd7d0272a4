//! The rows as readable text.

use std::fmt::Write as _;

use super::figures::{Figures, Row};
use super::verdict::broken;

/// One line for each row: `default` absolutely, the others beside it.
pub fn render(rows: &[Row]) -> String {
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
        let broken = broken(row);
        let verdict = if broken.is_empty() { "held".to_owned() } else { broken.join("; ") };
        let _ = writeln!(text, "   {verdict}");
    }
    text
}

fn beside(ours: &Figures, default: &Figures) -> String {
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
