//! Compares the speed of ns-3 and of Wakeai: both run the same case, with one thread each.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Context;
use crate::job::Job;
use crate::say;

/// The time and memory that one program took for one case.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Took {
    simulated_s: f64,
    cpu_s: f64,
    peak_kb: u64,
}

/// Runs both programs on two cases, and prints the time and memory that each took, and the ratios.
///
/// # Errors
///
/// A program cannot be run, or fails.
pub fn run(root: &Path, wakeai: &Path, ns3: &Path, seconds: u32) -> anyhow::Result<()> {
    // `cargo run` turns into this process by exec, so the compilers that it ran would count as
    // children of this process.
    ensure!(
        Usage::of(UsageWho::RUSAGE_CHILDREN)?.peak_kb == 0,
        "cargo's compilers would count, too: build first, then start target/release/wakeai-validation"
    );
    say(&format!(
        "802.11g, 10 MB up from each station, buffer 300, one thread.\n\
         40 stations: both stop after {seconds} simulated seconds. \
         10 stations: both stop after the last byte.\n"
    ))?;
    let cases = [(10, 2_000), (40, seconds)];
    let ours: Vec<Took> = cases
        .iter()
        .map(|(stations, limit)| ours(root, wakeai, *stations, *limit))
        .collect::<anyhow::Result<_>>()?;
    for ((stations, limit), ours) in cases.into_iter().zip(ours) {
        let theirs = theirs(ns3, stations, limit)?;
        let speed = |took: &Took| took.simulated_s / took.cpu_s;
        say(&format!(
            "{stations} stations: wakeai {:.1} s in {:.3} CPU s, {} MB; ns-3 {:.1} s in {:.1} CPU s, \
             {} MB; {:.0} and {:.2} simulated s per CPU s: wakeai is {:.0} times as fast\n",
            ours.simulated_s,
            ours.cpu_s,
            ours.peak_kb / 1_000,
            theirs.simulated_s,
            theirs.cpu_s,
            theirs.peak_kb / 1_000,
            speed(&ours),
            speed(&theirs),
            speed(&ours) / speed(&theirs),
        ))?;
    }
    crowd(root, seconds)
}

/// Prints the CPU time of a transmission attempt among 40 stations and among 1000.
fn crowd(root: &Path, seconds: u32) -> anyhow::Result<()> {
    let context = Context { root: root.to_owned(), seeds: 1, jobs: 1 };
    let mut cost = Vec::new();
    for stations in [40, 1_000] {
        let job = job(stations, seconds);
        let before = Usage::of(UsageWho::RUSAGE_SELF)?;
        let attempts = context.one(&job)?.attempts();
        let after = Usage::of(UsageWho::RUSAGE_SELF)?;
        let micros = (after.cpu_s - before.cpu_s) * 1e6 / attempts as f64;
        say(&format!(
            "{stations} stations for {seconds} s: {attempts} attempts, {micros:.2} CPU us each, {} MB\n",
            after.peak_kb / 1_000
        ))?;
        cost.push(micros);
    }
    say(&format!(
        "an attempt among 1000 stations takes {:.2} times the CPU time of one among 40\n",
        cost[1] / cost[0]
    ))
}

/// An upload of 10 MB from each of `stations` stations, for at most `limit` simulated seconds.
fn job(stations: u32, limit: u32) -> Job {
    Job::new("validation/scenarios/ns3-transfers.toml")
        .condition("up")
        .set("stations.tablet.count", stations)
        .set("duration", format!("{limit}s"))
}

fn theirs(program: &Path, stations: u32, limit: u32) -> anyhow::Result<Took> {
    let arguments = [format!("--stations={stations}"), format!("--limit={limit}")];
    json_of(Command::new(program).args(arguments))
}

/// Runs Wakeai. The kernel's figure of peak memory is that of the largest child so far. So the
/// smaller case has to run before the larger one, and all runs of Wakeai before those of ns-3.
fn ours(root: &Path, program: &Path, stations: u32, limit: u32) -> anyhow::Result<Took> {
    let mut command = Command::new(program);
    command.args(job(stations, limit).command().split(' ').skip(1));
    command.args(["--json", "--jobs", "1"]).current_dir(root);
    let before = Usage::of(UsageWho::RUSAGE_CHILDREN)?;
    let report: Value = json_of(&mut command)?;
    let after = Usage::of(UsageWho::RUSAGE_CHILDREN)?;
    let simulated_s = report["runs"][0]["simulated_s"].as_f64().context("no simulated_s")?;
    Ok(Took { simulated_s, cpu_s: after.cpu_s - before.cpu_s, peak_kb: after.peak_kb })
}

/// What the program prints.
fn json_of<T: DeserializeOwned>(command: &mut Command) -> anyhow::Result<T> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::inherit()).output().with_context(|| program.clone())?;
    ensure!(output.status.success(), "{program}: {}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The time and memory that this process, or its ended children, have used.
struct Usage {
    cpu_s: f64,
    peak_kb: u64,
}

impl Usage {
    fn of(who: UsageWho) -> anyhow::Result<Self> {
        let usage = getrusage(who)?;
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Ok(Self { cpu_s: micros as f64 / 1e6, peak_kb: usage.max_rss().unsigned_abs() })
    }
}
