//! Compares one of our algorithms without bounds with the kernel's algorithm that it replaces. It
//! measures the goodput of each alone on the same emulated paths, and of both while they share a
//! path.
//!
//! Needs root: `cargo bench -p wakeai-kernel --bench goodput -- [cubic|reno] [repeats]`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics or prints")]

#[allow(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../tests/kernel/path.rs"]
mod path;
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../tests/kernel/rig.rs"]
mod rig;

use std::time::Duration;

use path::PathConfig;
use rig::{Flow, Registration, Rig};
use wakeai_kernel::Bounded;

const SPAN: Duration = Duration::from_secs(8);

fn main() {
    if rig::kernel().is_none() {
        return;
    }
    let repeats = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(3);
    let asked = std::env::args().find_map(|argument| Bounded::instead_of(&argument));
    let Bounded { name, plain } = asked.unwrap_or(Bounded::ALL[0]);
    let _registration = Registration::open();
    let ms = Duration::from_millis;
    println!(
        "Mbit/s  RTT ms  queue  loss ppm  {plain:>5}  {name:>12}  sharing: {plain:>5}  {name:>12}"
    );
    for (megabits, one_way_delay, queue_packets, loss_ppm) in [
        (50, ms(10), 100, 0),
        (50, ms(50), 200, 0),
        (50, ms(10), 30, 0),
        (50, ms(10), 100, 200),
        (50, ms(10), 100, 2000),
        (50, ms(25), 300, 10_000),
        (100, ms(2), 100, 1000),
        (50, ms(100), 400, 20),
    ] {
        let bits_per_second = megabits * 1_000_000;
        let config = PathConfig {
            one_way_delay,
            bits_per_second,
            queue_packets,
            loss_ppm,
            ..PathConfig::CALM
        };
        let [[theirs], [ours]] = [plain, name].map(|name| goodput(config, [name], repeats));
        let shared = goodput(config, [plain, name], repeats);
        println!(
            "{megabits:>6} {:>7} {queue_packets:>6} {loss_ppm:>9} {theirs:>6.2} {ours:>13.2} \
             {:>15.2} {:>13.2}",
            one_way_delay.as_millis() * 2,
            shared[0],
            shared[1],
        );
    }
}

/// The goodput in Mbit/s of flows that run at the same time, as means of all repeats. The flow that starts first gets
/// the most of a short run, so they take turns.
fn goodput<const N: usize>(config: PathConfig, algorithms: [&str; N], repeats: u32) -> [f64; N] {
    let mut totals = [0.0; N];
    for repeat in 0..repeats as usize {
        let rig = Rig::with_path(config);
        let first = repeat % N;
        let flows: Vec<(usize, Flow)> = (first..N)
            .chain(0..first)
            .map(|index| (index, rig.flow(77, algorithms[index])))
            .collect();
        let before: Vec<u64> = flows.iter().map(|(_, flow)| flow.received()).collect();
        std::thread::sleep(SPAN);
        for ((index, flow), before) in flows.iter().zip(before) {
            totals[*index] += (flow.received() - before) as f64 * 8e-6 / SPAN.as_secs_f64();
        }
    }
    totals.map(|total| total / f64::from(repeats))
}
