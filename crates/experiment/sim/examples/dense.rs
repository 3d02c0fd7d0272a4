//! Simulates one dense upload without solo runs, for timing: `dense STATIONS SECONDS
//! [classic|linux]`. It prints what was simulated. `perf stat` or `time` around it shows the cost.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "an example for the command line")]

use wakeai_scenario::Scenario;
use wakeai_sim::{Job, simulate};
use wakeai_units::Duration;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |place: usize, default: &str| {
        arguments.get(place).map_or_else(|| default.to_owned(), Clone::clone)
    };
    let (stations, seconds, tcp) = (argument(1, "40"), argument(2, "100"), argument(3, "classic"));
    let text = format!(
        "name = \"dense\"\nduration = \"{seconds}s\"\n[access_point]\nstandard = \"802.11g\"\n\
         [[stations]]\nname = \"tablet\"\ncount = {stations}\nqueue = 5000\ntcp = \"{tcp}\"\n\
         [[flows]]\nfrom = \"tablet\"\nto = \"server\"\njitter = \"100ms\"\n"
    );
    let conditions = Scenario::parse(&text).unwrap().conditions();
    let condition = &conditions[0];
    let job = Job { condition, seed: 1, facts: &[], sink: None, progress: Duration::ZERO };
    let (outcome, ()) = simulate(&job, ()).unwrap();
    let attempts: u64 = outcome.counters.contenders().map(|sender| sender.attempts).sum();
    println!("{stations} stations, {} simulated, {attempts} attempts", outcome.outcome.end);
}
