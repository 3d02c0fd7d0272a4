//! Figures 6 to 9: K over time.

use super::{ALGORITHMS, BOTTLENECKS, job};
use crate::context::{Context, Simulated};
use crate::markdown::{Page, Table, number};
use crate::svg::Plot;

const FILE: &str = "kozu-competing";

/// Those of the FIFO: algorithm, flow, the paper's number, in words.
const FIGURES: [(&str, usize, u32, &str); 4] = [
    ("standard", 0, 6, "CUBIC at 128 ms"),
    ("standard", 1, 7, "CUBIC at 1024 ms"),
    ("fair", 0, 8, "wakeai_rtt at 128 ms"),
    ("fair", 1, 9, "wakeai_rtt at 1024 ms"),
];

pub(super) fn write(context: &Context, page: &mut Page) -> anyhow::Result<()> {
    page.heading(3, "Figures 6 to 9: K over time, 128 against 1024 ms, seed 1");
    let mut table =
        Table::new(&["bottleneck", "algorithm", "mean K at 128 ms, s", "at 1024 ms", "the paper"]);
    for (prefix, bottleneck) in BOTTLENECKS {
        for (word, algorithm) in ALGORITHMS {
            let run = context.one(&job(FILE, &format!("{prefix}-{word}-1024")))?;
            table.row([
                bottleneck.to_owned(),
                algorithm.to_owned(),
                number(mean_k(&run, 0), 1),
                number(mean_k(&run, 1), 1),
                paper(word).to_owned(),
            ]);
            if prefix == "wire" {
                pictures(context, page, word, &run)?;
            }
        }
    }
    page.table(&table);
    page.paragraph(
        "As in the paper, at either bottleneck. K goes with the cube root of the window that the loss \
         took, which is the larger at the longer RTT; `wakeai_rtt` divides it by the cube root of the \
         RTT. `--out` records it as `k_ms`.",
    );
    page.commands(&[format!("{} --out DIR", job(FILE, "wire-fair-1024").command())]);
    Ok(())
}

fn paper(word: &str) -> &'static str {
    match word {
        "standard" => "larger at the longer RTT",
        _ => "smaller at the longer RTT",
    }
}

fn pictures(context: &Context, page: &mut Page, word: &str, run: &Simulated) -> anyhow::Result<()> {
    for (_, flow, figure, says) in FIGURES.into_iter().filter(|one| one.0 == word) {
        let title = format!("Figure {figure}: K of {says}");
        let plot = Plot {
            title: title.clone(),
            vertical: "K, seconds".to_owned(),
            lines: vec![run.k_over_time(flow)],
        };
        let file = format!("kozu-figure-{figure}.svg");
        context.write_beside_page(&file, &plot.render())?;
        page.picture(&file, &title);
    }
    Ok(())
}

/// The mean over the time in which it is known, seconds.
fn mean_k(run: &Simulated, flow: usize) -> f64 {
    let points = run.k_over_time(flow);
    let area: f64 = points.windows(2).map(|two| two[0].1 * (two[1].0 - two[0].0)).sum();
    let span = points.last().zip(points.first()).map_or(0.0, |(end, begin)| end.0 - begin.0);
    area / span
}
