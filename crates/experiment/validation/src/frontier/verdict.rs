//! The criteria of the law beside the frontier.

use std::fmt::Write as _;

use super::report::{DEFAULT, FrontierReport, FrontierRow};
use crate::verdict::Measures;

/// A queueing delay below this is short enough in any case, ms.
const SHORT_MS: f64 = 15.0;
/// The queueing delay of the law, as a multiple of the shortest one that its goodput needs, in nine
/// tenths of the settings.
const USUAL_RATIO: f64 = 1.3;
/// The same, in every setting.
const LARGEST_RATIO: f64 = 2.0;
/// The part of the settings that must keep the usual bounds.
const NINE_TENTHS: f64 = 0.9;
/// From this number of stations on, the least index is lower.
const MANY_STATIONS: u32 = 61;

/// The comparison of one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The law's queueing delay beside the shortest one of a fixed window with .99 of its goodput;
    /// `None` where no fixed window has that goodput.
    pub queue: Option<f64>,
    /// The law's goodput beside `default`'s; `None` where that was not run.
    pub beside_default: Option<f64>,
    /// The law's goodput beside that of the best fixed window with at most 1.1 times its queueing
    /// delay; `None` where no fixed window has so short a delay.
    pub beside_best: Option<f64>,
    /// The same for an earlier law: its goodput, and the difference of the indices.
    pub beside_earlier: Option<(f64, f64)>,
    /// The figures that each setting must keep.
    pub measures: Measures,
    /// Whether the queue is within the bound that nine tenths of the settings keep.
    pub usual_queue: bool,
}

impl Judged {
    /// Compares the law with the frontier of `row`, and with an earlier law.
    pub fn new(row: &FrontierRow, earlier: Option<&FrontierRow>) -> Self {
        let law = &row.law;
        let queue = row.shortest().map(|window| law.p95_ms / window.point.p95_ms);
        let beside_default = row.others.get(DEFAULT).map(|point| law.goodput / point.goodput);
        let beside_best = row.best().map(|window| law.goodput / window.point.goodput);
        let earlier = earlier.map(|one| one.law);
        let beside_earlier = earlier.map(|one| (law.goodput / one.goodput, law.index - one.index));
        let is_short = law.p95_ms < SHORT_MS;
        let mut measures = Measures::default();
        if let Some(ratio) = queue.filter(|_| !is_short) {
            measures.at_most("p95 / shortest", ratio, LARGEST_RATIO);
        }
        if let Some(part) = beside_default {
            // With stock CUBIC and single frames the access point drops ACKs, and their airtime carries data.
            let least = if row.single_frames { 0.91 } else { 0.98 };
            let least = row.receiving.map_or(least, |(goodput, _)| goodput);
            measures.at_least("goodput / default's", part, least);
        }
        if let Some(part) = beside_best {
            measures.at_least("goodput / best window's", part, 0.98);
        }
        let timeouts = row.best().map_or(0.0, |window| window.point.timeouts);
        measures.at_most("timeouts", law.timeouts, timeouts + 1.0);
        let least = if row.stations < MANY_STATIONS { 0.98 } else { 0.95 };
        let least = row.receiving.map_or(least, |(_, index)| index);
        measures.at_least("index", law.index, least);
        if let Some((goodput, index)) = beside_earlier {
            measures.at_least("goodput / the earlier law's", goodput, 0.97);
            measures.at_least("index - the earlier law's", index, -0.02);
        }
        let usual_queue = is_short || queue.is_none_or(|ratio| ratio <= USUAL_RATIO);
        Self { queue, beside_default, beside_best, beside_earlier, measures, usual_queue }
    }

    /// The verdict: `held`, `queue` where only the usual bound of the queue is exceeded, or the
    /// figures that are outside of their bounds.
    pub fn words(&self) -> String {
        match self.measures.broken() {
            broken if !broken.is_empty() => broken.join("; "),
            _ if !self.usual_queue => format!("queue above {USUAL_RATIO}"),
            _ => "held".to_owned(),
        }
    }
}

/// The rows of a report, each with its comparison.
pub fn judge<'a>(
    report: &'a FrontierReport,
    earlier: Option<&FrontierReport>,
) -> Vec<(&'a FrontierRow, Judged)> {
    let of = |row: &'a FrontierRow| {
        (row, Judged::new(row, earlier.and_then(|earlier| earlier.same(row))))
    };
    report.settings.iter().map(of).collect()
}

/// What holds for all settings together, in a few lines.
pub fn summary(rows: &[(&FrontierRow, Judged)]) -> String {
    let mut text = String::new();
    let held = rows.iter().filter(|(_, judged)| judged.measures.broken().is_empty()).count();
    let _ = writeln!(text, "{held} of {} settings hold.", rows.len());
    let usual = rows.iter().filter(|(_, judged)| judged.usual_queue).count();
    let long = rows.iter().filter(|(row, _)| row.law.p95_ms >= SHORT_MS);
    let ratios = long.filter_map(|(row, judged)| Some((judged.queue?, row.setting.as_str())));
    let mut ratios: Vec<(f64, &str)> = ratios.collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let _ = writeln!(
        text,
        "Queue: {} in {usual} of {} (nine tenths: {}){}.",
        format_args!("at most {USUAL_RATIO} times the shortest, or below {SHORT_MS} ms,"),
        rows.len(),
        verdict(usual as f64 >= NINE_TENTHS * rows.len() as f64),
        match (ratios.get(ratios.len() / 2), ratios.last()) {
            (Some(median), Some(worst)) =>
                format!("; median {:.2}, worst {:.2} ({})", median.0, worst.0, worst.1),
            _ => String::new(),
        },
    );
    let earlier = rows.iter().filter_map(|(row, judged)| {
        judged.beside_earlier.map(|(goodput, index)| (goodput, index, row.setting.as_str()))
    });
    let earlier: Vec<(f64, f64, &str)> = earlier.collect();
    let kept = earlier.iter().filter(|one| one.0 >= 0.99).count();
    if let (Some(least), Some(index)) = (
        earlier.iter().min_by(|a, b| a.0.total_cmp(&b.0)),
        earlier.iter().min_by(|a, b| a.1.total_cmp(&b.1)),
    ) {
        let _ = writeln!(
            text,
            "Beside the earlier law: goodput at least .99 in {kept} of {} (nine tenths: {}); least \
             {:.3} ({}); index at worst {:+.3} ({}).",
            earlier.len(),
            verdict(kept as f64 >= NINE_TENTHS * earlier.len() as f64),
            least.0,
            least.2,
            index.1,
            index.2,
        );
    }
    text
}

fn verdict(holds: bool) -> &'static str {
    if holds { "held" } else { "BROKEN" }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::point::Point;
    use super::super::report::Window;
    use super::*;

    fn point(goodput: f64, p95_ms: f64, timeouts: f64) -> Point {
        Point { goodput, index: 0.99, p95_ms, timeouts }
    }

    /// A setting whose fixed windows reach 40, 46 and 48 Mbit/s at 10, 20 and 100 ms.
    fn row(law: Point) -> FrontierRow {
        let window = |label: &str, point| Window { label: label.to_owned(), point };
        FrontierRow {
            setting: "n-6".to_owned(),
            stations: 6,
            single_frames: false,
            receiving: None,
            scenario: String::new(),
            law,
            others: BTreeMap::from([(DEFAULT.to_owned(), point(46.0, 2000.0, 9.0))]),
            windows: vec![
                window("14", point(40.0, 10.0, 0.0)),
                window("28", point(46.0, 20.0, 0.0)),
                window("84", point(48.0, 100.0, 3.0)),
            ],
        }
    }

    #[test]
    fn a_law_is_compared_with_the_shortest_window_of_its_goodput() {
        let judged = Judged::new(&row(point(46.4, 130.0, 3.0)), None);
        assert!((judged.queue.unwrap() - 6.5).abs() < 1e-9);
        assert_eq!(judged.measures.broken()[0], "p95 / shortest 6.500 > 2.000");
        let judged = Judged::new(&row(point(46.0, 30.0, 0.0)), None);
        assert!(judged.measures.broken().is_empty() && !judged.usual_queue);
        assert_eq!(judged.words(), "queue above 1.3");
    }

    #[test]
    fn a_queue_below_15_ms_is_short_whatever_a_fixed_window_needs() {
        let mut row = row(point(46.0, 14.0, 0.0));
        row.windows[1].point.p95_ms = 2.0;
        let judged = Judged::new(&row, None);
        assert!(
            judged.usual_queue && judged.measures.broken().is_empty(),
            "{:?}",
            judged.measures.broken()
        );
    }

    #[test]
    fn the_best_window_within_1_1_of_the_delay_bounds_goodput_and_timeouts() {
        let judged = Judged::new(&row(point(46.0, 95.0, 4.5)), None);
        assert!((judged.beside_best.unwrap() - 46.0 / 48.0).abs() < 1e-9);
        let broken = judged.measures.broken().join("; ");
        assert!(broken.contains("goodput / best window's 0.958 < 0.980"), "{broken}");
        assert!(broken.contains("timeouts 4.500 > 4.000"), "{broken}");
    }

    #[test]
    fn a_setting_without_a_window_of_that_goodput_is_beyond_the_frontier() {
        let judged = Judged::new(&row(point(50.0, 130.0, 0.0)), None);
        assert!(judged.queue.is_none() && judged.usual_queue);
    }

    #[test]
    fn an_earlier_law_bounds_goodput_and_index() {
        let (now, before) = (row(point(44.0, 20.0, 0.0)), row(point(46.0, 20.0, 0.0)));
        let judged = Judged::new(&now, Some(&before));
        assert!(judged.words().contains("earlier law's 0.957 < 0.970"), "{}", judged.words());
        let text = summary(&[(&now, judged)]);
        assert!(text.contains("goodput at least .99 in 0 of 1 (nine tenths: BROKEN)"), "{text}");
    }

    #[test]
    fn single_frames_may_carry_less_than_stock_that_loses_its_acks() {
        let mut row = row(point(43.0, 10.0, 0.0));
        assert!(Judged::new(&row, None).words().contains("default's"));
        row.single_frames = true;
        assert!(!Judged::new(&row, None).words().contains("default's"));
    }

    #[test]
    fn a_setting_with_downloads_has_its_own_bounds_of_goodput_and_index() {
        let mut row = row(point(44.0, 10.0, 0.0));
        row.law.index = 0.975;
        let words = Judged::new(&row, None).words();
        assert!(words.contains("default's 0.957 < 0.980; index 0.975 < 0.980"), "{words}");
        row.receiving = Some((0.95, 0.97));
        assert_eq!(Judged::new(&row, None).words(), "held");
    }
}
