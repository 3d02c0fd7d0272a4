//! One endless connection.

use crate::context::Context;
use crate::job::Job;
use crate::markdown::{Page, Table, percent};
use crate::reference::Reference;
use crate::statistics::{Interval, deviation};
use crate::verdict::Verdict;

const BOUND: f64 = 0.05;

/// Standard, and whether RTS/CTS goes ahead.
pub const SETTINGS: [(&str, bool); 4] = [("g", false), ("g", true), ("n", false), ("ac", false)];

/// The run that is set beside one of ns-3's.
pub fn job(standard: &str, rts: bool, direction: &str) -> Job {
    let job = Job::new("validation/scenarios/ns3-single.toml")
        .condition(direction)
        .set("access_point.standard", format!("802.11{standard}"));
    if rts {
        job.set("access_point.protection", "rts-cts").set("access_point.rts_threshold", 0)
    } else {
        job
    }
}

/// Writes the section.
///
/// # Errors
///
/// Where a run fails.
pub fn write(
    context: &Context,
    reference: &Reference,
    page: &mut Page,
) -> anyhow::Result<Vec<Verdict>> {
    page.heading(2, "One TCP connection: ns-3");
    page.paragraph(
        "One endless connection, 20 s after 2 s; means over the seeds with their 95 % interval. 802.11g at 54 Mbit/s; 802.11n MCS 7 at 20 MHz and \
         802.11ac MCS 9 at 80 MHz, one stream, guard interval 800 ns, A-MPDU up to 65,535 bytes. With \
         RTS/CTS every frame has one, TCP's acknowledgements too.",
    );
    let mut table = Table::new(&["standard", "direction", "sim Mbit/s", "ns-3", "deviation"]);
    let mut found = Vec::new();
    for (standard, rts) in SETTINGS {
        for direction in ["down", "up"] {
            let theirs = Interval::of(&reference.single(standard, rts, direction));
            let runs = context.all(&job(standard, rts, direction))?;
            let ours: Vec<f64> = runs.iter().map(|run| run.run.total_goodput_mbps).collect();
            let Some((ours, theirs)) = Interval::of(&ours).zip(theirs) else { continue };
            let name = format!("802.11{standard}{}", if rts { ", RTS/CTS" } else { "" });
            let off = deviation(ours.mean, theirs.mean);
            table.row([
                name.clone(),
                direction.to_owned(),
                ours.to_string(),
                theirs.to_string(),
                percent(off),
            ]);
            found.push((format!("{name} {direction}"), off));
        }
    }
    page.table(&table);
    page.commands(&[job("ac", false, "down").command_of(context.seeds)]);
    Ok(Verdict::worst("one TCP connection, ns-3", BOUND, &found).into_iter().collect())
}
