//! Uploads split over connections (paper 003, section 4).

use crate::context::Context;
use crate::job::Job;
use crate::markdown::{Page, Table, number};
use crate::statistics::mean;
use crate::verdict::Verdict;

const CONDITIONS: [&str; 6] =
    ["whole", "chunks-2", "chunks-10", "chunks-20", "chunks-40", "chunks-80"];

fn job(condition: &str) -> Job {
    Job::new("scenarios/split-upload.toml").condition(condition)
}

/// Writes the section.
///
/// # Errors
///
/// Where a run fails.
pub fn write(context: &Context, page: &mut Page) -> anyhow::Result<Vec<Verdict>> {
    page.heading(2, "Split uploads (003, section 4)");
    page.paragraph(
        "40 stations send 10 MB each in so many pieces, each over a new connection. The paper's \
         figures 12 and 13, which are pictures: the more pieces, the narrower the distribution, and \
         its peak comes close to 160 s, the time of an even division (158 s).",
    );
    let mut table = Table::new(&[
        "condition",
        "least",
        "most",
        "mean",
        "most - least",
        "standard deviation",
        "within 20 s of 160",
    ]);
    let mut spreads = Vec::new();
    for condition in CONDITIONS {
        let mut rows = Vec::new();
        for run in context.all(&job(condition))? {
            let mut all: Vec<f64> =
                run.transfers.flows.iter().filter_map(|flow| flow.completion_s).collect();
            all.sort_by(f64::total_cmp);
            rows.extend(Spread::of(&all));
        }
        let over = |figure: fn(&Spread) -> f64| {
            mean(&rows.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        table.row([
            condition.to_owned(),
            number(over(|s| s.least), 0),
            number(over(|s| s.most), 0),
            number(over(|s| s.mean), 0),
            number(over(|s| s.most - s.least), 0),
            number(over(|s| s.deviation), 1),
            number(over(|s| s.near as f64), 1),
        ]);
        spreads.push(over(|s| s.deviation));
    }
    page.table(&table);
    page.commands(&[job("chunks-80").command_of(context.seeds)]);
    let narrower = spreads.last() < spreads.first();
    Ok(vec![Verdict {
        what: "split upload: pieces bring the stations together".to_owned(),
        bound: "standard deviation of the completions falls".to_owned(),
        found: format!(
            "{} s whole, {} s in 80 pieces",
            number(spreads[0], 1),
            number(spreads[spreads.len() - 1], 1)
        ),
        holds: narrower,
    }])
}

/// The completions of one run, seconds.
struct Spread {
    least: f64,
    most: f64,
    mean: f64,
    deviation: f64,
    near: usize,
}

impl Spread {
    fn of(ascending: &[f64]) -> Option<Self> {
        let mean = mean(ascending)?;
        let squares: f64 = ascending.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            least: *ascending.first()?,
            most: *ascending.last()?,
            mean,
            deviation: (squares / ascending.len() as f64).sqrt(),
            near: ascending.iter().filter(|value| (**value - 160.0).abs() <= 20.0).count(),
        })
    }
}
