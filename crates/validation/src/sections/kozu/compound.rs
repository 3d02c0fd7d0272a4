//! Figure 11: a phone beside a Windows PC.

use super::{ALGORITHMS, BOTTLENECKS, Pair, job};
use crate::context::Context;
use crate::markdown::{Page, Table, number, percent};
use crate::statistics::deviation;
use crate::verdict::Verdict;

const FILE: &str = "kozu-compound";

/// The conditions' last part, and in words.
const PLACES: [(&str, &str); 7] = [
    ("both-128", "128 : 128"),
    ("phone-256", "256 : 128"),
    ("phone-512", "512 : 128"),
    ("phone-1024", "1024 : 128"),
    ("pc-256", "128 : 256"),
    ("pc-512", "128 : 512"),
    ("pc-1024", "128 : 1024"),
];

/// What is promised: Compound's loss, and the change of the index.
const LOSS: f64 = 0.05;
const INDEX: f64 = 0.05;

/// The formula as the paper prints it has the RTT in seconds.
const PRINTED: &str = "1s";

/// Beside a phone with CUBIC, with `wakeai_rtt`, and with the formula as printed.
struct Row {
    prefix: &'static str,
    place: &'static str,
    rtts: &'static str,
    standard: Pair,
    fair: Pair,
    printed: Pair,
}

impl Row {
    fn find(
        context: &Context,
        prefix: &'static str,
        (place, rtts): (&'static str, &'static str),
    ) -> anyhow::Result<Self> {
        let condition = |word: &str| job(FILE, &format!("{prefix}-{word}-{place}"));
        let [standard, fair] = ALGORITHMS.map(|(word, _)| condition(word));
        let printed = fair.clone().set("flows.1.rtt_ref", PRINTED);
        Ok(Self {
            prefix,
            place,
            rtts,
            standard: Pair::simulated(context, &standard)?,
            fair: Pair::simulated(context, &fair)?,
            printed: Pair::simulated(context, &printed)?,
        })
    }

    fn cells(&self, bottleneck: &str) -> [String; 9] {
        let each = |pair: &Pair| format!("{:.1} : {:.1}", pair.first, pair.second);
        let change = |pair: &Pair| percent(deviation(pair.second, self.standard.second));
        [
            bottleneck.to_owned(),
            self.rtts.to_owned(),
            each(&self.standard),
            number(self.standard.jain, 3),
            each(&self.fair),
            number(self.fair.jain, 3),
            change(&self.fair),
            number(self.printed.jain, 3),
            change(&self.printed),
        ]
    }
}

pub(super) fn write(context: &Context, page: &mut Page) -> anyhow::Result<Vec<Verdict>> {
    page.heading(3, "Figure 11: beside a Windows PC");
    page.paragraph(
        "The paper, which does not say which of the two has which RTT: the change hardly helps the \
         fairness, and hardly harms the PC. The last two columns have the formula as the paper prints \
         it, with the RTT in seconds.",
    );
    let mut table = Table::new(&[
        "bottleneck",
        "RTT of phone : PC, ms",
        "CUBIC : Compound, Mbit/s",
        "Jain",
        "`wakeai_rtt` : Compound",
        "Jain",
        "Compound's change",
        "Jain, RTT_ref 1 s",
        "Compound's change",
    ]);
    let mut rows = Vec::new();
    for (prefix, bottleneck) in BOTTLENECKS {
        for place in PLACES {
            let row = Row::find(context, prefix, place)?;
            table.row(row.cells(bottleneck));
            rows.push(row);
        }
    }
    page.table(&table);
    page.paragraph(
        "In the air, as in the paper, nobody takes turns from anybody. In the FIFO more than 30 \
         segments of Compound's are queued most of the time, so its delay window is closed: it is \
         Reno, and gets what Reno gets. Where the RTTs are equal, and where the PC has the longer one, \
         it loses next to nothing: there `wakeai_rtt` is about as fast as CUBIC, by the choice of \
         [RTT_ref](../decisions/004-rtt-ref.md). What RTT fairness gives a far phone it takes from \
         whoever is near: from another phone, which is what figure 5 wants, as from a PC. With the \
         formula as printed the far phone is about what CUBIC is, and the PC loses little anywhere; \
         but beside CUBIC a near phone then gets a third of its share less.",
    );
    page.commands(&[
        job(FILE, "wire-fair-phone-1024").command_of(context.seeds),
        job(FILE, "wire-fair-phone-1024").set("flows.1.rtt_ref", PRINTED).command_of(context.seeds),
    ]);
    let far_phone = |row: &Row| row.place.starts_with("phone");
    Ok([
        verdict("air, all RTTs", rows.iter().filter(|row| row.prefix == "air")),
        verdict(
            "FIFO, equal RTTs or a far PC",
            rows.iter().filter(|row| row.prefix == "wire" && !far_phone(row)),
        ),
        verdict(
            "FIFO, a far phone",
            rows.iter().filter(|row| row.prefix == "wire" && far_phone(row)),
        ),
    ]
    .into_iter()
    .flatten()
    .collect())
}

fn verdict<'a>(what: &str, rows: impl Iterator<Item = &'a Row> + Clone) -> Option<Verdict> {
    let loss = |row: &Row| deviation(row.fair.second, row.standard.second);
    let change = |row: &Row| (row.fair.jain - row.standard.jain).abs();
    let lost = rows.clone().min_by(|a, b| loss(a).total_cmp(&loss(b)))?;
    let moved = rows.max_by(|a, b| change(a).total_cmp(&change(b)))?;
    Some(Verdict {
        what: format!("002, figure 11: Compound beside `wakeai_rtt`; {what}"),
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
