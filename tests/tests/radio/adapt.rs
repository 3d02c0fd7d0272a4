//! How fast the kernel's rate control follows the air.

use crate::air::THREE;
use crate::run;

/// A look at the link: the guest's clock in seconds, and what Minstrel expects to carry, Mbit/s.
struct Look {
    at: f64,
    expected: f64,
}

/// Half of the frames are damaged from 8 s to 14 s after the medium's start. Debian's kernels have no `rc_stats`; Minstrel's
/// expectation is what `iw` shows of it.
#[test]
#[ignore = "boots a guest: minutes"]
fn the_rate_control_follows_a_step_of_the_error_rate_within_a_second() {
    let event = |at, rate| {
        format!("[[events]]\nat = \"{at}s\"\nstation = \"sta\"\nframe_error_rate = {rate}\n")
    };
    let scenario = THREE
        .replace("802.11g", "802.11n")
        .replace("count = 2", "count = 1")
        .replace("duration = \"10s\"", "duration = \"60s\"");
    let scenario = format!("{scenario}{}{}", event(8, 0.5), event(14, 0.0));
    let Some(said) = run("adapt", &[("/air.toml", &scenario)]) else { return };
    let started: f64 = said.lines("STARTED ").next().unwrap().parse().unwrap();
    let looks: Vec<Look> = said
        .lines("LINK ")
        .filter_map(|line| {
            let at: f64 = line.split(' ').next()?.parse().ok()?;
            let text = line.split("expected throughput:").nth(1)?.split("Mbps").next()?;
            Some(Look { at: at - started, expected: text.trim().parse().ok()? })
        })
        .collect();
    for Look { at, expected } in &looks {
        println!("{at:.2} s: {expected} Mbit/s");
    }
    let mean = |from: f64, to: f64| {
        let all: Vec<f64> = looks
            .iter()
            .filter(|look| (from..to).contains(&look.at))
            .map(|look| look.expected)
            .collect();
        assert!(!all.is_empty(), "no look from {from} to {to} s");
        all.iter().sum::<f64>() / all.len() as f64
    };
    let (before, damaged, after) = (mean(6.0, 8.0), mean(9.0, 14.0), mean(15.0, 17.0));
    println!("{before:.1}, {damaged:.1}, {after:.1} Mbit/s");
    assert!(damaged < 0.75 * before && after > 0.9 * before);
    // The first look a second after the step has followed it, and so have nine tenths of the others: Minstrel samples other rates.
    let damaged: Vec<_> = looks.iter().filter(|look| (9.0..14.0).contains(&look.at)).collect();
    let late = |look: &&&Look| look.expected > 0.85 * before;
    assert!(!late(&&damaged[0]) && damaged.iter().filter(late).count() * 10 <= damaged.len());
    assert_eq!(said.json("COUNTED")["faithful"], true);
}
