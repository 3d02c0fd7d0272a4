//! Figures 4 and 5: two phones at unequal RTTs.

use super::{ALGORITHMS, BOTTLENECKS, Pair, RTTS, job};
use crate::context::Context;
use crate::job::Job;
use crate::lab::LabData;
use crate::markdown::{Page, Table, number, percent};
use crate::statistics::deviation;
use crate::verdict::Verdict;

const FILE: &str = "kozu-competing";

/// What is promised in the FIFO at 128 and 1024 ms.
const FAIR: f64 = 0.9;
const LOSS: f64 = 0.05;
/// How far the lab's index may be from the simulator's.
const LAB: f64 = 0.1;

fn condition(prefix: &str, word: &str, rtt: u32) -> Job {
    job(FILE, &format!("{prefix}-{word}-{rtt}"))
}

/// 128 against 1024 ms, both bottlenecks, both algorithms.
pub(super) fn lab_jobs() -> Vec<Job> {
    let words = |prefix| ALGORITHMS.map(|(word, _)| condition(prefix, word, 1024));
    BOTTLENECKS.into_iter().flat_map(|(prefix, _)| words(prefix)).collect()
}

/// One row: an algorithm at a bottleneck, against each RTT.
struct Row {
    prefix: &'static str,
    word: &'static str,
    found: [Pair; 4],
    lab: Option<Pair>,
}

pub(super) fn write(
    context: &Context,
    lab: &LabData,
    page: &mut Page,
) -> anyhow::Result<Vec<Verdict>> {
    page.heading(3, "Figures 4 and 5: Jain's index of 128 ms against");
    let mut rows = Vec::new();
    let mut table = Table::new(&[
        "bottleneck",
        "algorithm",
        "128 ms",
        "256",
        "512",
        "1024",
        "the lab at 1024",
        "Mbit/s of each at 1024",
        "total at 1024",
        "the paper",
    ]);
    for (prefix, bottleneck) in BOTTLENECKS {
        for (word, algorithm) in ALGORITHMS {
            let row = Row::find(context, lab, prefix, word)?;
            let [a, b, c, d] = row.found;
            table.row([
                bottleneck.to_owned(),
                algorithm.to_owned(),
                number(a.jain, 3),
                number(b.jain, 3),
                number(c.jain, 3),
                number(d.jain, 3),
                row.lab.map_or_else(|| "–".to_owned(), |lab| number(lab.jain, 3)),
                format!("{:.1} : {:.1}", d.first, d.second),
                number(d.total, 2),
                paper(word).to_owned(),
            ]);
            rows.push(row);
        }
    }
    page.table(&table);
    page.commands(&[
        condition("wire", "fair", 1024).command_of(context.seeds),
        condition("wire", "fair", 1024).command_in("lab"),
    ]);
    Ok(verdicts(&rows))
}

fn paper(word: &str) -> &'static str {
    match word {
        "standard" => "nearly 1 at equal RTTs, falls as they grow apart",
        _ => "raised much",
    }
}

impl Row {
    fn find(
        context: &Context,
        lab: &LabData,
        prefix: &'static str,
        word: &'static str,
    ) -> anyhow::Result<Self> {
        let at = |rtt| Pair::simulated(context, &condition(prefix, word, rtt));
        let [a, b, c, d] = RTTS;
        Ok(Self {
            prefix,
            word,
            found: [at(a)?, at(b)?, at(c)?, at(d)?],
            lab: Pair::of(&lab.runs(&condition(prefix, word, 1024))),
        })
    }
}

fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let at_1024 = |word: &str| {
        rows.iter().find(|row| (row.prefix, row.word) == ("wire", word)).map(|row| row.found[3])
    };
    let mut verdicts = Vec::new();
    if let Some((standard, fair)) = at_1024("standard").zip(at_1024("fair")) {
        verdicts.push(Verdict {
            what: "002, figures 4 and 5: FIFO, 128 against 1024 ms".to_owned(),
            bound: format!("Jain's index of `wakeai_rtt` {FAIR} or more, CUBIC's well below"),
            found: format!("{:.3}, CUBIC {:.3}", fair.jain, standard.jain),
            holds: fair.jain >= FAIR && standard.jain < FAIR - 0.1,
        });
        let change = deviation(fair.total, standard.total);
        verdicts.push(Verdict {
            what: "002, figures 4 and 5: total goodput there".to_owned(),
            bound: format!("`wakeai_rtt` loses {:.0} % at the most", LOSS * 100.0),
            found: percent(change),
            holds: change >= -LOSS,
        });
    }
    let off = rows.iter().filter_map(|row| Some((row, (row.lab?.jain - row.found[3].jain).abs())));
    let worst = off.max_by(|a, b| a.1.total_cmp(&b.1));
    verdicts.extend(worst.map(|(row, off)| Verdict {
        what: "002, figures 4 and 5: the lab's index at 128 against 1024 ms".to_owned(),
        bound: format!("within {LAB}"),
        found: format!("worst {off:.3} ({} {})", row.prefix, row.word),
        holds: off <= LAB,
    }));
    verdicts
}
