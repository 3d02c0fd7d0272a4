//! Figure 10: the delay changes in mid-run.

use super::{ALGORITHMS, BOTTLENECKS, Pair, job};
use crate::context::Context;
use crate::markdown::{Page, Table, number, percent};
use crate::statistics::deviation;

const FILE: &str = "kozu-moving";

const MOVES: [(&str, &str); 3] = [
    ("grows", "128; 128 to 1024 ms"),
    ("shrinks", "128; 1024 to 128 ms"),
    ("swap", "128 to 1024; 1024 to 128 ms"),
];

pub(super) fn write(context: &Context, page: &mut Page) -> anyhow::Result<()> {
    page.heading(3, "Figure 10: the delay changes in mid-run");
    let mut table = Table::new(&[
        "bottleneck",
        "RTTs",
        "CUBIC: Mbit/s of each",
        "Jain",
        "`wakeai_rtt`: Mbit/s of each",
        "Jain",
        "change of each",
        "of the total",
    ]);
    for (prefix, bottleneck) in BOTTLENECKS {
        for (name, rtts) in MOVES {
            let [standard, fair] = ALGORITHMS.map(|(word, _)| {
                Pair::simulated(context, &job(FILE, &format!("{prefix}-{word}-{name}")))
            });
            let (standard, fair) = (standard?, fair?);
            let each = |pair: &Pair| format!("{:.1} : {:.1}", pair.first, pair.second);
            table.row([
                bottleneck.to_owned(),
                rtts.to_owned(),
                each(&standard),
                number(standard.jain, 3),
                each(&fair),
                number(fair.jain, 3),
                format!(
                    "{}, {}",
                    percent(deviation(fair.first, standard.first)),
                    percent(deviation(fair.second, standard.second))
                ),
                percent(deviation(fair.total, standard.total)),
            ]);
        }
    }
    page.table(&table);
    page.paragraph(
        "The paper: with the change the index is worse, and every connection is faster. Here the path \
         is always full: the total stays what it is, so what one connection gains the other loses, \
         and the second cannot hold for both. Nor is the index worse where one RTT is the longer one \
         for a while; where the two change places, either algorithm evens out over the run, and there \
         is nothing to repair. The paper's connections left much of the path empty (figure 3): \
         there both could gain.",
    );
    page.commands(&[job(FILE, "wire-fair-grows").command_of(context.seeds)]);
    Ok(())
}
