//! Figure 11: a phone beside a Windows PC.

use serde::{Deserialize, Serialize};

use super::{ALGORITHMS, Pair, job};
use crate::context::Context;
use crate::statistics::{deviation, percent};
use crate::verdict::Verdict;

const FILE: &str = "kozu-compound";

/// The last part of the conditions' names, and the RTTs of phone and PC in ms.
const PLACES: [(&str, &str); 7] = [
    ("both-128", "128 : 128"),
    ("phone-256", "256 : 128"),
    ("phone-512", "512 : 128"),
    ("phone-1024", "1024 : 128"),
    ("pc-256", "128 : 256"),
    ("pc-512", "128 : 512"),
    ("pc-1024", "128 : 1024"),
];

/// The promised bounds on Compound's loss of goodput and on the change of Jain's index.
const LOSS: f64 = 0.05;
const INDEX: f64 = 0.05;

/// The reference RTT of the formula as the paper prints it, with the RTT in seconds.
const PRINTED: &str = "1s";

/// The figures beside a phone with CUBIC, with `wakeai_rtt`, and with the formula as printed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    bottleneck: String,
    /// Whether the phone has the longer RTT.
    far_phone: bool,
    rtts: String,
    standard: Pair,
    fair: Pair,
    printed: Pair,
}

pub(super) fn rows(context: &Context, prefix: &str, bottleneck: &str) -> anyhow::Result<Vec<Row>> {
    let row = |(place, rtts): (&str, &str)| {
        let condition = |word: &str| job(FILE, &format!("{prefix}-{word}-{place}"));
        let [standard, fair] = ALGORITHMS.map(|(word, _)| condition(word));
        let printed = fair.clone().set("flows.1.rtt_ref", PRINTED);
        Ok(Row {
            bottleneck: bottleneck.to_owned(),
            far_phone: place.starts_with("phone"),
            rtts: rtts.to_owned(),
            standard: Pair::simulated(context, &standard)?,
            fair: Pair::simulated(context, &fair)?,
            printed: Pair::simulated(context, &printed)?,
        })
    };
    PLACES.into_iter().map(row).collect()
}

pub(super) fn commands(seeds: u32) -> [String; 2] {
    let shown = job(FILE, "wire-fair-phone-1024");
    [shown.command_of(seeds), shown.set("flows.1.rtt_ref", PRINTED).command_of(seeds)]
}

pub(super) fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let is_air = |row: &&Row| row.bottleneck == "air";
    let fifo =
        |far_phone: bool| move |row: &&Row| row.bottleneck == "FIFO" && row.far_phone == far_phone;
    let verdicts = [
        verdict("air, all RTTs", rows.iter().filter(is_air)),
        verdict("FIFO, equal RTTs or a far PC", rows.iter().filter(fifo(false))),
        verdict("FIFO, a far phone", rows.iter().filter(fifo(true))),
    ];
    verdicts.into_iter().flatten().collect()
}

fn verdict<'a>(what: &str, rows: impl Iterator<Item = &'a Row> + Clone) -> Option<Verdict> {
    let loss = |row: &Row| deviation(row.fair.second, row.standard.second);
    let change = |row: &Row| (row.fair.jain - row.standard.jain).abs();
    let lost = rows.clone().min_by(|a, b| loss(a).total_cmp(&loss(b)))?;
    let moved = rows.max_by(|a, b| change(a).total_cmp(&change(b)))?;
    Some(Verdict {
        what: format!("Kozu et al., figure 11: Compound beside `wakeai_rtt`; {what}"),
        bound: format!("loses {:.0} % at the most, index within {INDEX}", LOSS * 100.0),
        found: format!(
            "worst {} ({} ms), index {:.3} ({})",
            percent(loss(lost)),
            lost.rtts,
            change(moved),
            moved.rtts
        ),
        holds: loss(lost) >= -LOSS && change(moved) <= INDEX,
    })
}
