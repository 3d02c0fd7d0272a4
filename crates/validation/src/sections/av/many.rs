//! Several TCP-AV senders whose targets are more than the path carries.

use wakeai_scenario::result::Run;

use crate::context::Context;
use crate::job::Job;
use crate::markdown::{Page, Table, number, optional};
use crate::statistics::mean_of;
use crate::verdict::Verdict;

/// Conditions of the scenario, each with what it is.
const CONDITIONS: [(&str, &str); 6] = [
    ("wire-equal", "FIFO, equal targets"),
    ("wire-unequal", "FIFO, the last three want twice as much"),
    ("wire-beside-reno", "FIFO, the first two are Reno"),
    ("air-equal", "air, equal targets"),
    ("air-unequal", "air, the last three want twice as much"),
    ("air-beside-reno", "air, the first two are Reno"),
];
/// The least index of five with equal targets.
const FAIR: f64 = 0.95;

fn job(condition: &str) -> Job {
    Job::new("scenarios/av-many.toml").condition(condition)
}

pub(super) fn write(context: &Context, page: &mut Page) -> anyhow::Result<Vec<Verdict>> {
    page.heading(3, "Five whose targets are more than there is");
    page.paragraph(
        "Five stations upload, 802.11n: through a FIFO of 20 Mbit/s with targets of 8 each, or 8 and \
         16; in the air, which carries some 47, with targets of 18, or 18 and 36. Means over the \
         seeds.",
    );
    let mut table = Table::new(&[
        "",
        "Mbit/s of each",
        "total",
        "Jain",
        "Jain of the first two",
        "of the last three",
        "retransmitted",
    ]);
    let mut equal = Vec::new();
    for (condition, words) in CONDITIONS {
        let runs = context.runs(&job(condition), context.seeds)?;
        let each: Vec<String> = (0..5)
            .map(|flow| optional(mean_of(&runs, |run| Some(run.flows.get(flow)?.goodput_mbps)), 1))
            .collect();
        let group = |index: usize| optional(mean_of(&runs, |run| run.groups.get(index)?.jain), 3);
        let jain = mean_of(&runs, |run| run.jain);
        if condition.ends_with("-equal") {
            equal.extend(jain);
        }
        table.row([
            words.to_owned(),
            each.join(", "),
            optional(mean_of(&runs, |run| Some(run.total_goodput_mbps)), 2),
            optional(jain, 3),
            group(0),
            group(1),
            optional(mean_of(&runs, |run| Some(retransmitted(run))), 4),
        ]);
    }
    page.table(&table);
    page.paragraph(
        "A timeout, or a round in which one segment of 32 was lost, takes a quarter off a sender's \
         target, and it comes back at the same pace for all, so that in one queue they meet at the \
         same share of their targets. In the air DCF has the last word: who always has something to \
         send gets its turns and no more, whatever its target. Reno beside them is left less in the \
         FIFO, and its turns in the air.",
    );
    page.commands(&[job("wire-unequal").command_of(context.seeds)]);
    let least = equal.into_iter().fold(f64::INFINITY, f64::min);
    Ok(vec![Verdict {
        what: "TCP-AV: five with equal targets, together more than the path carries".to_owned(),
        bound: format!("Jain's index {FAIR} or more"),
        found: format!("least {}", number(least, 3)),
        holds: least >= FAIR,
    }])
}

/// Segments sent again, as a share of those that arrived.
fn retransmitted(run: &Run) -> f64 {
    let again: u64 = run.flows.iter().map(|flow| flow.retransmits).sum();
    let bytes: u64 = run.flows.iter().map(|flow| flow.bytes).sum();
    again as f64 / (bytes as f64 / 1448.0)
}
