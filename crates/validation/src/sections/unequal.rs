//! Stations of unequal capability (paper 000, figures 4 to 7 and 18, section 7.2).

use wakeai_scenario::result::Run;

use crate::context::Context;
use crate::job::Job;
use crate::lab::LabData;
use crate::markdown::{Page, Table, optional};
use crate::statistics::mean;
use crate::verdict::Verdict;

/// Aggregates as long as the phones can make them: 64 frames instead of 65,535 bytes.
const LONGER: &str = "wire-1000, A-MPDU 1 MB";

const FILE: &str = "scenarios/matsuno-unequal.toml";
const CONDITIONS: [&str; 6] = [
    "wire-100",
    "wire-100-shimada",
    "wire-100-airtime",
    "wire-1000",
    "wire-1000-shimada",
    "wire-1000-airtime",
];

/// The run of a condition.
pub fn job(condition: &str) -> Job {
    Job::new(FILE).condition(condition)
}

/// Every run that the section wants from the lab.
pub fn lab_jobs() -> Vec<Job> {
    CONDITIONS.into_iter().map(job).collect()
}

/// Writes the section.
///
/// # Errors
///
/// Where a run fails.
pub fn write(context: &Context, lab: &LabData, page: &mut Page) -> anyhow::Result<Vec<Verdict>> {
    page.heading(2, "Unequal stations (000)");
    page.paragraph(
        "Two phones (802.11ac, 780 and 585 Mbit/s) and two tablets (802.11n, 52 Mbit/s) upload behind \
         100 Mbit/s and 1 Gbit/s. The paper's figures are pictures; from its prose: alone, the slower \
         phone reaches about ten times what a tablet does; together, phones get more than tablets, \
         and more so at 1 Gbit/s; at 100 Mbit/s the middleware makes the four nearly equal, so that \
         Jain's index rises and the capacity-normalised one falls; at 1 Gbit/s it changes nothing, \
         and the capacity-normalised index is high.",
    );
    let mut found = Vec::new();
    let runs = |job: &Job| -> anyhow::Result<Vec<Run>> {
        Ok(context.all(job)?.into_iter().map(|simulated| simulated.run).collect())
    };
    for condition in CONDITIONS {
        let job = job(condition);
        found.push((condition, runs(&job)?, lab.runs(&job)));
    }
    let longer = job("wire-1000").set("access_point.ampdu", 1_048_575);
    found.push((LONGER, runs(&longer)?, Vec::new()));
    alone(page, &found);
    together(page, &found);
    page.paragraph(
        "At 1 Gbit/s the index stays below the paper's, in the lab as in the simulator. Uploads take \
         turns by contention; a tablet's aggregate takes up to 5.4 ms of air (the longest PPDU), a \
         phone's 0.7 ms (65,535 bytes at 780 Mbit/s), so the tablets get most of the air. With 64 \
         frames in the phones' aggregates the index rises a little; for shares that go with what each \
         reaches alone, turns would have to take the same air, as with A-MSDUs in the phones' \
         aggregates or a limit on the tablets'. The paper does not tell what its devices do.",
    );
    page.commands(&[
        job("wire-100-shimada").command_of(context.seeds),
        job("wire-100-shimada").command_in("lab"),
    ]);
    Ok(verdicts(&found))
}

type Found = (&'static str, Vec<Run>, Vec<Run>);

/// Figures 4 and 5: what each reaches alone.
fn alone(page: &mut Page, found: &[Found]) {
    page.heading(3, "Figures 4 and 5: one station alone, Mbit/s");
    let mut table = Table::new(&["wire", "world", "phone-fast", "phone", "tablet1", "tablet2"]);
    for (condition, sim, lab) in
        found.iter().filter(|one| ["wire-100", "wire-1000"].contains(&one.0))
    {
        for (world, runs) in
            [("sim", sim), ("lab", lab)].into_iter().filter(|one| !one.1.is_empty())
        {
            let at =
                |station: usize| optional(over(runs, |run| run.stations.get(station)?.max_mbps), 1);
            let name = (*condition).to_owned();
            table.row([name, world.to_owned(), at(0), at(1), at(2), at(3)]);
        }
    }
    page.table(&table);
}

/// Figures 6, 7 and 18, and section 7.2.
fn together(page: &mut Page, found: &[Found]) {
    page.heading(3, "Figures 6, 7, 18 and section 7.2: four at once, Mbit/s");
    let mut table = Table::new(&[
        "condition",
        "world",
        "phone-fast",
        "phone",
        "tablet1",
        "tablet2",
        "total",
        "Jain",
        "capacity-normalised",
        "mean utilisation",
    ]);
    for (condition, sim, lab) in found {
        for (world, runs) in
            [("sim", sim), ("lab", lab)].into_iter().filter(|one| !one.1.is_empty())
        {
            let at = |station: usize| {
                optional(over(runs, |run| Some(run.stations.get(station)?.goodput_mbps)), 1)
            };
            table.row([
                (*condition).to_owned(),
                world.to_owned(),
                at(0),
                at(1),
                at(2),
                at(3),
                optional(over(runs, |run| Some(run.total_goodput_mbps)), 1),
                optional(over(runs, |run| run.jain), 3),
                optional(over(runs, |run| run.capacity_normalised), 3),
                optional(over(runs, |run| run.mean_utilisation), 3),
            ]);
        }
    }
    page.table(&table);
}

fn over(runs: &[Run], figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    mean(&runs.iter().filter_map(figure).collect::<Vec<_>>())
}

fn verdicts(found: &[Found]) -> Vec<Verdict> {
    let index = |condition: &str, world: fn(&Found) -> &Vec<Run>| {
        let runs = world(found.iter().find(|one| one.0 == condition)?);
        over(runs, |run| run.capacity_normalised)
    };
    let mut verdicts = Vec::new();
    for (name, world) in
        [("sim", (|one: &Found| &one.1) as fn(&Found) -> &Vec<Run>), ("lab", |one: &Found| &one.2)]
    {
        let slow = index("wire-100", world).zip(index("wire-100-shimada", world));
        let Some((plain, controlled)) = slow else { continue };
        verdicts.push(Verdict {
            what: format!("000, section 7.2, {name}: capacity-normalised index at 100 Mbit/s"),
            bound: "falls under the papers' control".to_owned(),
            found: format!("{plain:.3} without, {controlled:.3} with"),
            holds: controlled < plain,
        });
        let Some(fast) = index("wire-1000", world) else { continue };
        verdicts.push(Verdict {
            what: format!("000, section 7.2, {name}: capacity-normalised index at 1 Gbit/s"),
            bound: "high without control (0.9 or more)".to_owned(),
            found: format!("{fast:.3}"),
            holds: fast >= 0.9,
        });
    }
    verdicts
}
