//! The same scenario in the simulator and on several kernels, in guests.

use serde::{Deserialize, Serialize};

use super::Judged;
use super::lab::World;
use crate::context::Context;
use crate::job::Job;
use crate::kernels::{KernelData, SCENARIO};
use crate::statistics::deviation;
use crate::verdict::PromiseVerdict;

/// The conditions of the scenario, with their names in the table.
const CONDITIONS: [(&str, &str); 6] = [
    ("cubic", "the kernel's `cubic`"),
    ("wakeai-cubic", "`wakeai_cubic`"),
    ("bbr", "the kernel's `bbr`"),
    ("shimada-before", "law `shimada-before`"),
    ("shimada-after", "law `shimada-after`"),
    ("airtime", "law `airtime`"),
];

/// A figure: its name in the table and in a verdict, the bound on its deviation, its decimals, and its value.
type Compared = (&'static str, f64, u32, fn(&World) -> f64);

const COMPARED: [Compared; 3] = [
    ("total goodput", 0.10, 2, |world| world.goodput),
    ("Jain's index", 0.10, 3, |world| world.jain),
    ("median RTT", 0.20, 1, |world| world.rtt),
];

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KernelFigures {
    /// The kernels' releases, the lowest first.
    kernels: Vec<String>,
    /// The number of runs of each condition on a kernel.
    runs: u32,
    rows: Vec<KernelRow>,
    commands: Vec<String>,
}

/// One figure of a condition in the simulator and on each kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KernelRow {
    condition: String,
    figure: String,
    decimals: u32,
    sim: f64,
    /// `None` where no run of the kernel can be used.
    kernels: Vec<Option<f64>>,
    /// The largest relative deviation of the simulator from a kernel.
    widest: Option<f64>,
}

/// Makes the simulator's runs. `None` without runs on other kernels.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, data: &KernelData) -> anyhow::Result<Option<Judged<KernelFigures>>> {
    let kernels = data.releases();
    if kernels.is_empty() {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for (condition, name) in CONDITIONS {
        let job = Job::new(SCENARIO).condition(condition);
        let Some(sim) = World::of(&context.reports(&job)?) else { continue };
        let found: Vec<Option<World>> =
            kernels.iter().map(|release| World::of(&data.runs(release, &job))).collect();
        for (figure, _, decimals, value) in COMPARED {
            let of_kernels: Vec<Option<f64>> =
                found.iter().map(|world| world.as_ref().map(value)).collect();
            let off =
                of_kernels.iter().flatten().map(|of_kernel| deviation(value(&sim), *of_kernel));
            rows.push(KernelRow {
                condition: name.to_owned(),
                figure: figure.to_owned(),
                decimals,
                sim: value(&sim),
                widest: off.max_by(|one, other| one.abs().total_cmp(&other.abs())),
                kernels: of_kernels,
            });
        }
    }
    let verdicts = COMPARED.iter().map(|(figure, bound, _, _)| {
        let of_figure = rows.iter().filter(|row| row.figure == *figure);
        let off = of_figure.filter_map(|row| Some((row.condition.clone(), row.widest?)));
        PromiseVerdict::worst(&format!("sim against kernels in guests: {figure}"), *bound, off)
    });
    let verdicts = verdicts.flatten().collect();
    let commands = kernels.iter().map(|release| {
        let version: Vec<&str> = release.split('.').take(2).collect();
        format!("wakeai lab {SCENARIO} --kernel {}", version.join("."))
    });
    let commands = commands.collect();
    Ok(Some(Judged {
        verdicts,
        figures: KernelFigures { kernels, runs: data.repeats(), rows, commands },
    }))
}
