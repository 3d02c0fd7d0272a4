//! Figure 17: AVR over NRT.

use wakeai_scenario::result::Run;

use super::others;
use crate::context::Context;
use crate::job::Job;
use crate::markdown::{Page, Table, number, optional};
use crate::sections::wlan::{RUNS, starving};
use crate::statistics::{mean, mean_of};
use crate::verdict::Verdict;

/// What one station reaches alone (EB), Mbit/s.
pub(super) const ALONE_MBPS: f64 = 24.16;
/// NRT, percent of it.
const TARGETS: [u32; 11] = [10, 18, 20, 25, 30, 40, 50, 60, 70, 80, 100];
/// What is promised at 90 % of the fair share.
const AVR: f64 = 0.95;

/// The paper's five terminals: the target as a share of the fair one in percent, and its AVR.
const PAPER: [(u32, &str); 5] =
    [(50, "1.00"), (90, "1.00"), (100, "1.00"), (125, "0.70"), (200, "below 0.10")];

/// One station with a target, so many in all.
fn job(stations: u32, target_mbps: f64) -> Job {
    Job::new("scenarios/av-target.toml")
        .condition("share-90")
        .set("stations.reno.count", stations - 1)
        .set("flows.1.rate", format!("{target_mbps:.2}Mbit/s"))
}

/// What ten runs gave.
struct Found {
    avr: f64,
    goodput: f64,
    others: f64,
    starving: f64,
    total: f64,
}

impl Found {
    fn of(runs: &[Run]) -> Option<Self> {
        Some(Self {
            avr: mean_of(runs, |run| run.flows.first()?.avr)?,
            goodput: mean_of(runs, |run| Some(run.flows.first()?.goodput_mbps))?,
            others: mean_of(runs, |run| mean(&others(run)))?,
            starving: mean_of(runs, |run| {
                let even = ALONE_MBPS / run.flows.len() as f64;
                Some(starving(&others(run), even) as f64)
            })?,
            total: mean_of(runs, |run| Some(run.total_goodput_mbps))?,
        })
    }

    fn simulated(context: &Context, job: &Job) -> anyhow::Result<Self> {
        Self::of(&context.runs(job, RUNS)?)
            .ok_or_else(|| anyhow::anyhow!("{}: nothing was received", job.command()))
    }
}

pub(super) fn write(context: &Context, page: &mut Page) -> anyhow::Result<Vec<Verdict>> {
    page.heading(3, "Five stations: one with a target, four with Reno");
    page.paragraph(&format!(
        "802.11g, 120 s, AVR of ten runs, Mbit/s. Alone a station reaches {ALONE_MBPS} Mbit/s (the \
         paper: 25), so the fair share of five is {:.2}.",
        ALONE_MBPS / 5.0
    ));
    let at_90 = five(context, page)?;
    page.heading(3, "Figure 17: AVR over NRT, 2 to 6 stations");
    over_nrt(context, page)?;
    Ok(vec![Verdict {
        what: "004, figure 17: AVR at 90 % of the fair share of five".to_owned(),
        bound: format!("{AVR} or more"),
        found: number(at_90, 2),
        holds: at_90 >= AVR,
    }])
}

fn five(context: &Context, page: &mut Page) -> anyhow::Result<f64> {
    let mut table = Table::new(&[
        "target, of the fair share",
        "target",
        "AVR",
        "the paper",
        "reached",
        "the others, mean",
        "starving among them",
        "total",
    ]);
    let mut at_90 = 0.0;
    for (share, paper) in PAPER {
        let target = ALONE_MBPS / 5.0 * f64::from(share) / 100.0;
        let found = Found::simulated(context, &job(5, target))?;
        if share == 90 {
            at_90 = found.avr;
        }
        table.row([
            format!("{share} %"),
            number(target, 2),
            number(found.avr, 2),
            paper.to_owned(),
            number(found.goodput, 2),
            number(found.others, 2),
            number(found.starving, 1),
            number(found.total, 2),
        ]);
    }
    page.table(&table);
    page.paragraph(
        "Up to the fair share the target is held, and beyond it the AVR falls off as the paper's does. \
         Nobody starves outright (below a tenth of the fair share), but neighbours whose ACKs drown \
         in the access point wait and leave turns unused. The sender whose window no loss takes \
         below its target's uses them, and gets half as much again as its share with any target from \
         90 % on. More it does not get: DCF gives a station that always has something to send its \
         turns and no more.",
    );
    page.commands(&[job(5, ALONE_MBPS / 5.0 * 1.25).command_of(RUNS)]);
    Ok(at_90)
}

fn over_nrt(context: &Context, page: &mut Page) -> anyhow::Result<()> {
    let mut table = Table::new(&["NRT", "2 stations", "3", "4", "5", "6"]);
    for nrt in TARGETS {
        let target = ALONE_MBPS * f64::from(nrt) / 100.0;
        let avr = |stations: u32| -> anyhow::Result<String> {
            let found = Found::simulated(context, &job(stations, target))?;
            let share = nrt * stations;
            let mark = if share > 100 { "" } else { "**" };
            Ok(format!("{mark}{}{mark}", optional(Some(found.avr), 2)))
        };
        table.row([format!("{nrt} %"), avr(2)?, avr(3)?, avr(4)?, avr(5)?, avr(6)?]);
    }
    page.table(&table);
    page.paragraph(
        "Bold: targets up to the fair share. The paper shows five stations, and says that fewer, \
         and six, are alike.",
    );
    Ok(())
}
