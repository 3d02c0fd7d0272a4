//! Compares the runs of two conditions, or of one condition in two reports.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Table, presets};
use serde::Serialize;

use crate::aggregate::{FIGURES, Figure, MAIN_FIGURES, Spread, by_condition};
use crate::document::to_json;
use crate::figures::Interval;
use crate::result::{GuestMachine, Report, Run};
use wakeai_scenario::repeat_seed;

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The scenario's name.
    pub scenario: String,
    /// `sim`, `lab` or `field`.
    pub world: String,
    /// The version of Wakeai.
    pub version: String,
    /// The seed of the first repeat.
    pub seed: u64,
    /// The guests of the lab, if it ran in guests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestMachine>,
}

impl Side {
    fn of(report: &Report) -> Self {
        let Report { scenario, world, version, seed, guest, .. } = report.clone();
        Self { scenario, world, version, seed, guest }
    }

    /// What differs between the guests of the two sides, in words; `None` where nothing does, or where a side has no
    /// guests.
    fn other_guest(&self, other: &Self) -> Option<String> {
        let (a, b) = (self.guest.as_ref()?, other.guest.as_ref()?);
        let differing = [
            ("the kernel", a.kernel_digest != b.kernel_digest),
            ("the programs and modules", a.image_digest != b.image_digest),
            ("the emulator", a.emulator != b.emulator),
            ("the clock", a.clock != b.clock),
            ("the memory", a.memory_mb != b.memory_mb),
        ];
        let differing: Vec<&str> =
            differing.into_iter().filter_map(|(what, differs)| differs.then_some(what)).collect();
        (!differing.is_empty()).then(|| {
            format!(
                "the guests differ in {}: runs of the same seed are not the same runs",
                differing.join(", ")
            )
        })
    }

    /// What makes two runs a pair.
    fn pairs_by(&self) -> &'static str {
        if self.world == FIELD { "block" } else { "seed" }
    }
}

/// The world whose runs depend on the hour: only those of one block, in one result, are pairs.
const FIELD: &str = "field";

/// Whether runs of two reports may be pairs.
fn may_pair(a: &Report, b: &Report) -> bool {
    a == b || (a.world != FIELD && b.world != FIELD)
}

/// A comparison of two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The first side.
    pub a: Side,
    /// The second side.
    pub b: Side,
    /// A row for each pair of conditions.
    pub conditions: Vec<Row>,
}

/// The comparison of two conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The condition of the first side.
    pub a: String,
    /// The condition of the second side.
    pub b: String,
    /// Whether the figures are those of pairs of runs with the same seed ([`Row::PAIRS`]), on real machines of the same
    /// block. Otherwise the runs count as independent, and the intervals are Welch's.
    pub paired: bool,
    /// The number of runs of each side that have no partner and are left out.
    pub left_out: LeftOut,
    /// Each of [`FIGURES`] that both sides have, by name.
    pub figures: BTreeMap<&'static str, Difference>,
}

/// The number of runs of each side that a comparison by pairs leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Runs of the first side.
    pub a: usize,
    /// Runs of the second side.
    pub b: usize,
}

/// The difference of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The figure of the first side.
    pub a: Spread,
    /// The figure of the second side.
    pub b: Spread,
    /// The second less the first, with half the width of its 95 % confidence interval.
    pub difference: Interval,
    /// The difference of the means as a part of the first one; `None` where that is 0.
    pub relative: Option<f64>,
}

impl Difference {
    /// Whether the runs tell the two sides apart: 0 is not in the interval. `None` where a side has a single run.
    pub fn is_told_apart(&self) -> Option<bool> {
        self.difference.half.map(|_| !self.difference.contains(0.0))
    }
}

/// The reason why nothing can be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The two reports have no condition in common.
    #[error("the two have no condition in common: the first has {}, the second {}", .a.join(", "), .b.join(", "))]
    NothingInCommon {
        /// The conditions of the first report.
        a: Vec<String>,
        /// The conditions of the second report.
        b: Vec<String>,
    },
    /// A condition does not exist.
    #[error("there is no condition {name:?}; there are {}", .known.join(", "))]
    NoSuchCondition {
        /// The name.
        name: String,
        /// The conditions of the report.
        known: Vec<String>,
    },
}

impl Comparison {
    /// Compares the conditions that both reports have, by name.
    ///
    /// # Errors
    ///
    /// [`CompareError::NothingInCommon`].
    pub fn of_reports(a: &Report, b: &Report) -> Result<Self, CompareError> {
        let (of_a, of_b) = (by_condition(&a.runs), by_condition(&b.runs));
        let mut conditions = Vec::new();
        for runs in &of_a {
            let same = |other: &&Vec<&Run>| other[0].condition == runs[0].condition;
            if let Some(other) = of_b.iter().find(same) {
                conditions.push(Row::of((a.seed, runs), (b.seed, other), may_pair(a, b)));
            }
        }
        if conditions.is_empty() {
            return Err(CompareError::NothingInCommon { a: names(&of_a), b: names(&of_b) });
        }
        Ok(Self { a: Side::of(a), b: Side::of(b), conditions })
    }

    /// Compares two conditions, the first of `a` and the second of `b`, which may be the same report.
    ///
    /// # Errors
    ///
    /// [`CompareError::NoSuchCondition`].
    pub fn of_conditions(
        (a, first): (&Report, &str),
        (b, second): (&Report, &str),
    ) -> Result<Self, CompareError> {
        let (of_a, of_b) = (by_condition(&a.runs), by_condition(&b.runs));
        let (runs, others) = (find(&of_a, first)?, find(&of_b, second)?);
        let row = Row::of((a.seed, runs), (b.seed, others), may_pair(a, b));
        Ok(Self { a: Side::of(a), b: Side::of(b), conditions: vec![row] })
    }

    /// The comparison as one line of JSON.
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    /// The comparison as a table; with `wide` all figures. Every line ends in a newline.
    pub fn render(&self, wide: bool) -> String {
        let side = |side: &Side| {
            let Side { scenario, world, version, seed, guest } = side;
            let kernel = guest.as_ref().map(|guest| format!(" on Linux {}", guest.kernel));
            let kernel = kernel.unwrap_or_default();
            format!("{scenario} in the {world}{kernel}, seed {seed}, wakeai {version}")
        };
        let mut text = format!("a: {}\nb: {}\n", side(&self.a), side(&self.b));
        if self.a.scenario != self.b.scenario {
            text.push_str("these are different scenarios\n");
        }
        if self.a.world != self.b.world {
            text.push_str("they are of different worlds\n");
        }
        if let Some(words) = self.a.other_guest(&self.b) {
            text.push_str(&words);
            text.push('\n');
        }
        for row in &self.conditions {
            let name =
                if row.a == row.b { row.a.clone() } else { format!("{} and {}", row.a, row.b) };
            let (runs_a, runs_b) = row.runs();
            let how = match (row.paired, runs_a.min(runs_b)) {
                (_, 0 | 1) => "a single run has no interval".to_owned(),
                (true, runs) => format!("{runs} runs each, paired by {}", self.a.pairs_by()),
                (false, _) => format!("{runs_a} and {runs_b} runs, independent (Welch)"),
            };
            let how = how + &row.left_out.words(self.a.pairs_by());
            let _ = write!(text, "\n{name}: {how}\n{}\n", row.table(wide).trim_fmt());
        }
        text.push_str("b - a with its 95 % confidence interval; * where 0 is outside of it\n");
        if !wide {
            text.push_str("more figures with --wide\n");
        }
        text
    }
}

impl LeftOut {
    fn words(self, by: &str) -> String {
        let of = |runs: usize, side: &str| (runs > 0).then(|| format!("{runs} of {side}"));
        let sides: Vec<String> = [of(self.a, "a"), of(self.b, "b")].into_iter().flatten().collect();
        if sides.is_empty() {
            return String::new();
        }
        format!("; left out without a partner of the same {by}: {}", sides.join(" and "))
    }
}

/// The runs of two sides that are compared.
enum Compared<'a> {
    Pairs(Vec<(&'a Run, &'a Run)>),
    Independent(&'a [&'a Run], &'a [&'a Run]),
}

impl<'a> Compared<'a> {
    /// The seeds that both have are pairs. A single pair beside other runs of both sides is no use, because
    /// it has no interval: the runs count as independent then.
    fn of(
        (seed_a, a): (u64, &'a [&'a Run]),
        (seed_b, b): (u64, &'a [&'a Run]),
        may_pair: bool,
    ) -> Self {
        if !may_pair {
            return Self::Independent(a, b);
        }
        let by_seed = |seed, runs: &[&'a Run]| -> BTreeMap<u64, &'a Run> {
            runs.iter().map(|run| (repeat_seed(seed, run.repeat), *run)).collect()
        };
        let (of_a, of_b) = (by_seed(seed_a, a), by_seed(seed_b, b));
        let pairs: Vec<(&Run, &Run)> =
            of_a.iter().filter_map(|(seed, run)| Some((*run, *of_b.get(seed)?))).collect();
        let enough = Row::PAIRS.min(of_a.len()).min(of_b.len());
        if pairs.len() >= enough { Self::Pairs(pairs) } else { Self::Independent(a, b) }
    }

    /// The comparison of a figure; `None` where a side does not have it.
    fn difference(&self, of: fn(&Run) -> Option<f64>) -> Option<Difference> {
        let values =
            |runs: &[&Run]| -> Vec<f64> { runs.iter().filter_map(|run| of(run)).collect() };
        let (of_a, of_b, difference) = match self {
            Self::Pairs(pairs) => {
                // A pair counts only if both of its runs have the figure.
                let both = pairs.iter().filter_map(|(a, b)| of(a).zip(of(b)));
                let (of_a, of_b): (Vec<f64>, Vec<f64>) = both.unzip();
                let differences = of_a.iter().zip(&of_b).map(|(a, b)| b - a).collect::<Vec<_>>();
                (of_a, of_b, Interval::of(&differences)?)
            }
            Self::Independent(a, b) => {
                let (of_a, of_b) = (values(a), values(b));
                let difference = Interval::of_difference(&of_a, &of_b)?;
                (of_a, of_b, difference)
            }
        };
        let (a, b) = (Spread::of(&of_a)?, Spread::of(&of_b)?);
        let base = Some(a.interval.mean).filter(|mean| *mean != 0.0);
        let relative = base.map(|base| difference.mean / base);
        Some(Difference { a, b, difference, relative })
    }
}

impl Row {
    /// The number of pairs from which on runs are compared by pairs, although there are others. Where one side
    /// has fewer runs and each of them has a partner, they are enough, too.
    pub const PAIRS: usize = 2;

    fn of(a: (u64, &[&Run]), b: (u64, &[&Run]), may_pair: bool) -> Self {
        let compared = Compared::of(a, b, may_pair);
        let left_out = match &compared {
            Compared::Pairs(pairs) => {
                LeftOut { a: a.1.len() - pairs.len(), b: b.1.len() - pairs.len() }
            }
            Compared::Independent(..) => LeftOut::default(),
        };
        let difference = |figure: &Figure| Some((figure.name, compared.difference(figure.of)?));
        Self {
            a: a.1[0].condition.clone(),
            b: b.1[0].condition.clone(),
            paired: matches!(compared, Compared::Pairs(_)),
            left_out,
            figures: FIGURES.iter().filter_map(difference).collect(),
        }
    }

    /// For each side, the largest number of runs that have the same figure.
    fn runs(&self) -> (usize, usize) {
        let most = |of: fn(&Difference) -> usize| self.figures.values().map(of).max().unwrap_or(0);
        (most(|one| one.a.runs), most(|one| one.b.runs))
    }

    fn table(&self, wide: bool) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
        table.set_header(["", "a", "b", "b - a", "±", "", "change"]);
        for figure in FIGURES.iter().filter(|figure| wide || MAIN_FIGURES.contains(&figure.name)) {
            let Some(found) = self.figures.get(figure.name) else { continue };
            let decimals = figure.decimals;
            let number = |value: f64| format!("{:.decimals$}", value + 0.0);
            let relative = found.relative.map(|part| format!("{:+.1} %", part * 100.0));
            table.add_row([
                figure.title.to_owned(),
                number(found.a.interval.mean),
                number(found.b.interval.mean),
                format!("{:+.decimals$}", found.difference.mean + 0.0),
                found.difference.half.map_or("-".to_owned(), number),
                if found.is_told_apart() == Some(true) { "*".to_owned() } else { String::new() },
                relative.unwrap_or("-".to_owned()),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

fn names(conditions: &[Vec<&Run>]) -> Vec<String> {
    conditions.iter().map(|runs| runs[0].condition.clone()).collect()
}

fn find<'a, 'b>(
    conditions: &'a [Vec<&'b Run>],
    name: &str,
) -> Result<&'a Vec<&'b Run>, CompareError> {
    let found = conditions.iter().find(|runs| runs[0].condition == name);
    found.ok_or_else(|| CompareError::NoSuchCondition {
        name: name.to_owned(),
        known: names(conditions),
    })
}
