//! The law `airtime` against stock CUBIC, over many scenarios.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use harness::{Scenario, World};
use wakeai_control::LawConfig;

fn laws() -> [Option<LawConfig>; 2] {
    [None, LawConfig::from_name("airtime")]
}

#[test]
#[ignore = "prints, for tuning by hand"]
fn explore() {
    let list = |name: &str, default: &str| -> Vec<f64> {
        std::env::var(name)
            .unwrap_or(default.into())
            .split(',')
            .map(|v| v.parse().unwrap())
            .collect()
    };
    for n in list("NS", "6,1,2,12,40") {
        let n = n as usize;
        for rtt in list("RTTS", "512,100,2") {
            for rate in list("RATES", "6.5,19.5,65,130,300") {
                let mut line = format!("{n:2} {rtt:5} {rate:5}");
                for law in &laws() {
                    let seeds = 3;
                    let runs: Vec<_> = (1..=seeds)
                        .map(|seed| {
                            let scenario = Scenario::uplink(n, rate, rtt);
                            World::new(&scenario, law.as_ref(), seed).run(&mut |_, _, _, _| {})
                        })
                        .collect();
                    let mean = |f: fn(&harness::Outcome) -> f64| {
                        runs.iter().map(f).sum::<f64>() / seeds as f64
                    };
                    line += &format!(
                        " | {:6.2} p50 {:4.0} p95 {:4.0} j {:.2} ack {:5.0} host {:4.0} to {:2.0}",
                        mean(|o| o.total_mbps),
                        mean(|o| o.growth_p50),
                        mean(|o| o.growth_p95),
                        mean(harness::Outcome::jain),
                        mean(|o| o.ack_drops as f64),
                        mean(|o| o.host_drops as f64),
                        mean(|o| o.timeouts as f64),
                    );
                }
                println!("{line}");
            }
        }
    }
}

#[test]
#[ignore = "prints, for tuning by hand"]
fn trace() {
    let env = |name: &str, default: f64| {
        std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
    };
    let scenario = Scenario::uplink(env("N", 6.0) as usize, env("RATE", 65.0), env("RTT", 512.0));
    let law = LawConfig::from_name("airtime");
    let outcome = World::new(&scenario, law.as_ref(), 1).run(&mut |at, station, controller, cwnd| {
        if station < env("SHOW", 1.0) as usize && at > 0.0 {
            let (seen, bounds) = controller.last();
            println!(
                "{at:6.2} {station} cwnd {cwnd:6.1} rate {:6.2} total {:6.2} n {} rtt {:?} {bounds}",
                seen.delivery_rate.as_mbps_f64(),
                seen.total_rate.as_mbps_f64(),
                seen.senders,
                seen.rtt.map(|r| (r.min.as_millis(), r.growth.as_millis())),
            );
        }
    });
    println!("{outcome:?}");
}
