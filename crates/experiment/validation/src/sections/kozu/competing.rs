//! Figures 4 and 5: two phones at unequal RTTs.

use serde::{Deserialize, Serialize};

use super::{ALGORITHMS, BOTTLENECKS, Pair, RTTS, job};
use crate::context::Context;
use crate::job::Job;
use crate::lab::LabData;
use crate::statistics::{deviation, percent};
use crate::verdict::Verdict;

/// The least Jain's index that is promised in the FIFO at 128 against 1024 ms, and the promised
/// bound on the loss of goodput.
const FAIR: f64 = 0.9;
const LOSS: f64 = 0.05;
/// The bound on the difference between the lab's index and the simulator's.
const LAB: f64 = 0.1;

/// The figures of an algorithm at a bottleneck, for each RTT of the second phone. The lab runs only
/// the last RTT.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    prefix: String,
    word: String,
    found: [Pair; 4],
    lab: Option<Pair>,
}

fn condition(prefix: &str, word: &str, rtt: u32) -> Job {
    job("kozu-competing", &format!("{prefix}-{word}-{rtt}"))
}

/// Every run of the lab that the section uses: 128 against 1024 ms, both bottlenecks, both
/// algorithms.
pub fn lab_jobs() -> Vec<Job> {
    let words = |prefix| ALGORITHMS.map(|(word, _)| condition(prefix, word, 1024));
    BOTTLENECKS.into_iter().flat_map(|(prefix, _)| words(prefix)).collect()
}

pub(super) fn commands(seeds: u32) -> [String; 2] {
    let job = condition("wire", "fair", 1024);
    [job.command_of(seeds), job.command_in("lab")]
}

impl Row {
    pub(super) fn find(
        context: &Context,
        lab: &LabData,
        prefix: &str,
        word: &str,
    ) -> anyhow::Result<Self> {
        let at = |rtt| Pair::simulated(context, &condition(prefix, word, rtt));
        let [a, b, c, d] = RTTS;
        Ok(Self {
            prefix: prefix.to_owned(),
            word: word.to_owned(),
            found: [at(a)?, at(b)?, at(c)?, at(d)?],
            lab: Pair::of(&lab.runs(&condition(prefix, word, 1024))),
        })
    }
}

pub(super) fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let at_1024 = |word: &str| {
        rows.iter().find(|row| row.prefix == "wire" && row.word == word).map(|row| row.found[3])
    };
    let mut verdicts = Vec::new();
    if let Some((standard, fair)) = at_1024("standard").zip(at_1024("fair")) {
        verdicts.push(Verdict {
            what: "Kozu et al., figures 4 and 5: FIFO, 128 against 1024 ms".to_owned(),
            bound: format!("Jain's index of `wakeai_rtt` {FAIR} or more, CUBIC's well below"),
            found: format!("{:.3}, CUBIC {:.3}", fair.jain, standard.jain),
            holds: fair.jain >= FAIR && standard.jain < FAIR - 0.1,
        });
        let change = deviation(fair.total, standard.total);
        verdicts.push(Verdict {
            what: "Kozu et al., figures 4 and 5: total goodput there".to_owned(),
            bound: format!("`wakeai_rtt` loses {:.0} % at the most", LOSS * 100.0),
            found: percent(change),
            holds: change >= -LOSS,
        });
    }
    let off = rows.iter().filter_map(|row| Some((row, (row.lab?.jain - row.found[3].jain).abs())));
    let worst = off.max_by(|a, b| a.1.total_cmp(&b.1));
    verdicts.extend(worst.map(|(row, off)| Verdict {
        what: "Kozu et al., figures 4 and 5: the lab's index at 128 against 1024 ms".to_owned(),
        bound: format!("within {LAB}"),
        found: format!("worst {off:.3} ({} {})", row.prefix, row.word),
        holds: off <= LAB,
    }));
    verdicts
}
