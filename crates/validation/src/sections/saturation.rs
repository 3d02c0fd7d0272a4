//! A saturated uplink: the medium alone.

use crate::bianchi::{AfterCollision, saturated};
use crate::context::Context;
use crate::job::Job;
use crate::markdown::{Page, Table, number, optional, percent};
use crate::reference::{Reference, Row};
use crate::statistics::deviation;
use crate::verdict::Verdict;

const BOUND: f64 = 0.05;

/// The run that is set beside one of ns-3's.
pub fn job(stations: u32, rts: bool) -> Job {
    let job =
        Job::new("validation/scenarios/ns3-saturation.toml").set("stations.tablet.count", stations);
    if rts { job.set("access_point.protection", "rts-cts") } else { job }
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
    page.heading(2, "A saturated uplink: Bianchi and ns-3");
    page.paragraph(
        "802.11g at 54 Mbit/s, UDP with 1500-byte packets, 20 s after 2 s (ns-3: 10 s after 2 s), \
         payload. `p` is the share of attempts that nobody answered: of data frames, or of RTS \
         where they are used. Bianchi's model with DIFS after a collision, as the medium has it: \
         nobody can decode what collided; with EIFS it has less, see its column.",
    );
    let mut table = Table::new(&[
        "stations",
        "RTS/CTS",
        "sim Mbit/s",
        "ns-3",
        "deviation",
        "Bianchi (EIFS)",
        "deviation",
        "sim p",
        "ns-3 p",
        "Bianchi p",
    ]);
    let (mut from_ns3, mut from_model) = (Vec::new(), Vec::new());
    for rts in [false, true] {
        for row in reference.saturated(rts) {
            let mbps = one(context, row, &mut table)?;
            let name = format!("{} stations{}", row.stations, if rts { ", RTS/CTS" } else { "" });
            if let Some(expected) = row.goodput_mbps {
                from_ns3.push((name.clone(), deviation(mbps, expected)));
            }
            let model = saturated(row.stations, rts, AfterCollision::Difs).mbps;
            from_model.push((name, deviation(mbps, model)));
        }
    }
    page.table(&table);
    page.commands(&[job(40, false).command(), job(40, true).command()]);
    let verdicts = [
        Verdict::worst("saturation, ns-3", BOUND, &from_ns3),
        Verdict::worst("saturation, Bianchi's model", BOUND, &from_model),
    ];
    Ok(verdicts.into_iter().flatten().collect())
}

fn one(context: &Context, row: &Row, table: &mut Table) -> anyhow::Result<f64> {
    let simulated = context.one(&job(row.stations, row.rts))?;
    let mbps = simulated.run.total_goodput_mbps;
    let difs = saturated(row.stations, row.rts, AfterCollision::Difs);
    let eifs = saturated(row.stations, row.rts, AfterCollision::Eifs);
    table.row([
        row.stations.to_string(),
        (if row.rts { "yes" } else { "no" }).to_owned(),
        number(mbps, 2),
        optional(row.goodput_mbps, 2),
        row.goodput_mbps.map_or_else(String::new, |expected| percent(deviation(mbps, expected))),
        format!("{:.2} ({:.2})", difs.mbps, eifs.mbps),
        percent(deviation(mbps, difs.mbps)),
        number(simulated.failed_share(row.rts), 3),
        optional(row.failed_share(), 3),
        number(difs.collision, 3),
    ]);
    Ok(mbps)
}
