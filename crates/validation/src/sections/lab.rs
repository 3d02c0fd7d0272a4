//! The same scenarios in the simulator and on the real TCP stack.

use wakeai_scenario::result::Run;

use crate::context::Context;
use crate::job::Job;
use crate::lab::LabData;
use crate::markdown::{Page, Table, held, number, optional, percent};
use crate::statistics::{deviation, mean_of};
use crate::verdict::Verdict;

/// Total goodput and Jain's index, and the median round-trip time.
const GOODPUT_BOUND: f64 = 0.10;
const JAIN_BOUND: f64 = 0.10;
const RTT_BOUND: f64 = 0.20;
/// One algorithm in two kernels' guises and in the simulator.
const ALGORITHM_BOUND: f64 = 0.05;

const ALGORITHMS: &str = "validation/scenarios/lab-algorithms.toml";

/// What is compared: a name and the run.
fn compared() -> Vec<(&'static str, Job)> {
    let own = |name: &str| Job::new(&format!("validation/scenarios/lab-{name}.toml"));
    let shipped = |name: &str, condition: &str| {
        Job::new(&format!("scenarios/{name}.toml")).condition(condition)
    };
    let ours = |name: &str| own("own").condition(name);
    vec![
        ("four uploads", own("up")),
        ("four downloads", own("down")),
        ("two up, two down", own("mixed")),
        ("two fast, two slow", own("unequal")),
        ("six uploads, 512 ms", shipped("shimada-wlan-512ms", "default")),
        ("six uploads, 100 ms", shipped("quickstart", "default")),
        ("the same under shimada-after", shipped("quickstart", "shimada-after")),
        ("the same under airtime", shipped("quickstart", "airtime")),
        ("three in a FIFO: `wakeai_cubic`", ours("wakeai-cubic")),
        ("three in a FIFO: `wakeai_reno`", ours("wakeai-reno")),
        ("three in a FIFO: `wakeai_rtt`", ours("wakeai-rtt")),
        ("three in a FIFO: `wakeai_compound`", ours("wakeai-compound")),
        ("three in a FIFO: `wakeai_av`", ours("wakeai-av")),
    ]
}

fn algorithm_jobs(stations: u32) -> [Job; 2] {
    ["cubic", "wakeai-cubic"]
        .map(|name| Job::new(ALGORITHMS).condition(&format!("{name}-{stations}")))
}

/// Every run that the section wants from the lab.
pub fn lab_jobs() -> Vec<Job> {
    let scenarios = compared().into_iter().map(|(_, job)| job);
    scenarios.chain(algorithm_jobs(1)).chain(algorithm_jobs(3)).collect()
}

/// Goodput, Jain's index and median round-trip time over some runs.
struct Figures {
    goodput: f64,
    jain: f64,
    rtt: f64,
}

impl Figures {
    fn of(runs: &[Run]) -> Option<Self> {
        Some(Self {
            goodput: mean_of(runs, |run| Some(run.total_goodput_mbps))?,
            jain: mean_of(runs, |run| run.jain)?,
            rtt: mean_of(runs, |run| run.rtt_ms.p50)?,
        })
    }
}

/// Writes the section.
///
/// # Errors
///
/// Where a run fails.
pub fn write(context: &Context, lab: &LabData, page: &mut Page) -> anyhow::Result<Vec<Verdict>> {
    page.heading(2, "The lab: the same on the real TCP stack");
    page.paragraph(&format!(
        "The simulator's mean over {} seeds beside the lab's mean over its runs ({}). Goodput in \
         Mbit/s, the median round-trip time in ms. Only runs that kept the lab's bound on lateness \
         are counted.",
        context.seeds,
        lab.describe()
    ));
    let mut table = Table::new(&[
        "scenario",
        "sim total",
        "lab",
        "deviation",
        "sim Jain",
        "lab",
        "deviation",
        "sim p50",
        "lab",
        "deviation",
        "held",
    ]);
    let (mut goodputs, mut jains, mut rtts) = (Vec::new(), Vec::new(), Vec::new());
    let mut commands = Vec::new();
    for (name, job) in compared() {
        let sim = sim_figures(context, &job)?;
        let Some((sim, lab)) = sim.zip(Figures::of(&lab.runs(&job))) else { continue };
        let goodput = deviation(sim.goodput, lab.goodput);
        let jain = deviation(sim.jain, lab.jain);
        let rtt = deviation(sim.rtt, lab.rtt);
        let holds =
            goodput.abs() <= GOODPUT_BOUND && jain.abs() <= JAIN_BOUND && rtt.abs() <= RTT_BOUND;
        table.row([
            name.to_owned(),
            number(sim.goodput, 2),
            number(lab.goodput, 2),
            percent(goodput),
            number(sim.jain, 3),
            number(lab.jain, 3),
            percent(jain),
            number(sim.rtt, 1),
            number(lab.rtt, 1),
            percent(rtt),
            held(holds),
        ]);
        goodputs.push((name.to_owned(), goodput));
        jains.push((name.to_owned(), jain));
        rtts.push((name.to_owned(), rtt));
        commands.push(job.command_in("lab"));
    }
    page.table(&table);
    page.commands(&commands);
    let mut verdicts: Vec<Verdict> = [
        Verdict::worst("sim against lab: total goodput", GOODPUT_BOUND, &goodputs),
        Verdict::worst("sim against lab: Jain's index", JAIN_BOUND, &jains),
        Verdict::worst("sim against lab: median RTT", RTT_BOUND, &rtts),
    ]
    .into_iter()
    .flatten()
    .collect();
    verdicts.extend(algorithms(context, lab, page)?);
    Ok(verdicts)
}

fn sim_figures(context: &Context, job: &Job) -> anyhow::Result<Option<Figures>> {
    let runs: Vec<Run> = context.all(job)?.into_iter().map(|simulated| simulated.run).collect();
    Ok(Figures::of(&runs))
}

/// The kernel's CUBIC, the kernel with ours, and the simulator's.
fn algorithms(
    context: &Context,
    lab: &LabData,
    page: &mut Page,
) -> anyhow::Result<Option<Verdict>> {
    page.heading(3, "One algorithm, three homes");
    let mut table = Table::new(&[
        "stations",
        "kernel cubic",
        "kernel wakeai_cubic",
        "simulator",
        "widest deviation",
    ]);
    let mut found = Vec::new();
    for stations in [1, 3] {
        let [theirs, ours] = algorithm_jobs(stations);
        let goodput = |job: &Job| Figures::of(&lab.runs(job)).map(|figures| figures.goodput);
        let sim = sim_figures(context, &ours)?.map(|figures| figures.goodput);
        let all = [goodput(&theirs), goodput(&ours), sim];
        let known: Vec<f64> = all.into_iter().flatten().collect();
        if known.len() < all.len() {
            continue;
        }
        let least = known.iter().copied().fold(f64::INFINITY, f64::min);
        let most = known.iter().copied().fold(0.0, f64::max);
        let widest = deviation(most, least);
        let [theirs, ours, sim] = all.map(|mbps| optional(mbps, 2));
        table.row([stations.to_string(), theirs, ours, sim, percent(widest)]);
        found.push((format!("{stations} stations"), widest));
    }
    page.table(&table);
    page.commands(&[format!("wakeai lab {ALGORITHMS}"), format!("wakeai sim {ALGORITHMS}")]);
    Ok(Verdict::worst("kernel cubic, kernel wakeai_cubic, simulator", ALGORITHM_BOUND, &found))
}
