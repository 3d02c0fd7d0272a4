//! Goodput of `wakeai_cubic` without bounds and of the kernel's CUBIC: alone on the same emulated
//! paths, and sharing one.
//! Needs root: `cargo bench -p wakeai-kernel --bench cubic_goodput [repeats]`.

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
use wakeai_kernel::Control;

const SPAN: Duration = Duration::from_secs(8);

fn main() {
    if rig::kernel().is_none() {
        return;
    }
    let repeats = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(3);
    let _registration = Registration::open();
    let ms = Duration::from_millis;
    println!("Mbit/s  RTT ms  queue  loss ppm  cubic  wakeai_cubic  sharing: cubic  wakeai_cubic");
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
        let [[cubic], [ours]] =
            ["cubic", Control::ALGORITHM].map(|name| goodput(config, [name], repeats));
        let shared = goodput(config, ["cubic", Control::ALGORITHM], repeats);
        println!(
            "{megabits:>6} {:>7} {queue_packets:>6} {loss_ppm:>9} {cubic:>6.2} {ours:>13.2} \
             {:>15.2} {:>13.2}",
            one_way_delay.as_millis() * 2,
            shared[0],
            shared[1],
        );
    }
}

/// Mbit/s of flows that run at the same time, as means of all repeats.
fn goodput<const N: usize>(config: PathConfig, algorithms: [&str; N], repeats: u32) -> [f64; N] {
    let mut totals = [0.0; N];
    for _ in 0..repeats {
        let rig = Rig::with_path(config);
        let flows = algorithms.map(|algorithm| rig.flow(77, algorithm));
        let before = flows.each_ref().map(Flow::received);
        std::thread::sleep(SPAN);
        for (total, (flow, before)) in totals.iter_mut().zip(flows.iter().zip(before)) {
            *total += (flow.received() - before) as f64 * 8e-6 / SPAN.as_secs_f64();
        }
    }
    totals.map(|total| total / f64::from(repeats))
}
