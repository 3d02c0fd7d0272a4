//! Goodput of `wakeai_cubic` without bounds beside the kernel's CUBIC, on the same emulated paths.
//! Needs root: `cargo bench -p wakeai-kernel --bench cubic_goodput`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics or prints")]

#[allow(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../tests/kernel/path.rs"]
mod path;
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../tests/kernel/rig.rs"]
mod rig;

use std::time::Duration;

use path::PathConfig;
use rig::{Registration, Rig};

const SPAN: Duration = Duration::from_secs(8);
const REPEATS: u64 = 2;

fn main() {
    if rig::kernel().is_none() {
        return;
    }
    let _registration = Registration::open();
    let ms = Duration::from_millis;
    println!(
        "{:>9} {:>8} {:>6} {:>9} {:>12} {:>7}",
        "Mbit/s", "RTT ms", "queue", "loss ppm", "algorithm", "Mbit/s"
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
        let config = PathConfig {
            one_way_delay,
            bits_per_second: megabits * 1_000_000,
            queue_packets,
            loss_ppm,
            ..PathConfig::CALM
        };
        for algorithm in ["cubic", "wakeai_cubic"] {
            let mut total = 0;
            for _ in 0..REPEATS {
                let rig = Rig::with_path(config);
                let flow = rig.flow(77, algorithm);
                total += flow.goodput(SPAN);
            }
            println!(
                "{megabits:>9} {:>8} {queue_packets:>6} {loss_ppm:>9} {algorithm:>12} {:>7.2}",
                one_way_delay.as_millis() * 2,
                (total / REPEATS) as f64 * 8e-6
            );
        }
    }
}
