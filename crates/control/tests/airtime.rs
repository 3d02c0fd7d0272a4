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

fn scenarios() -> Vec<(String, Scenario)> {
    let mut all: Vec<(String, Scenario)> = Vec::new();
    let mut add = |name: &str, scenario: Scenario| all.push((name.to_owned(), scenario));
    for rtt in [512.0, 100.0, 2.0] {
        let usual = || Scenario::uplink(6, 65.0, rtt);
        let change = |f: &dyn Fn(&mut Scenario)| {
            let mut scenario = usual();
            f(&mut scenario);
            scenario
        };
        add(&format!("6, {rtt}"), usual());
        add(&format!("6, {rtt}, no pacing"), change(&|s| s.paces = false));
        add(&format!("6, {rtt}, link unknown"), change(&|s| s.link_rate_known = false));
        add(&format!("6, {rtt}, host queue 100"), change(&|s| s.air.host_queue = 100));
        add(&format!("6, {rtt}, 4 flows each"), change(&|s| s.flows_per_station = 4));
        add(&format!("6, {rtt}, loss 1e-4"), change(&|s| s.lost_one_in = 10_000));
        add(&format!("6, {rtt}, loss 1e-3"), change(&|s| s.lost_one_in = 1_000));
        add(&format!("6, {rtt}, staggered 2 s"), change(&|s| s.stagger_ms = 2_000));
        add(&format!("6, {rtt}, 3 agents"), change(&|s| s.agents = 3));
        add(
            &format!("6, {rtt}, 11g"),
            change(&|s| {
                s.air.aggregates = false;
                s.air.rates_mbps = vec![54.0; 6];
            }),
        );
        add(
            &format!("6, {rtt}, 11g 54 and 6"),
            change(&|s| {
                s.air.aggregates = false;
                s.air.rates_mbps = vec![54.0, 54.0, 54.0, 54.0, 6.0, 6.0];
            }),
        );
        add(
            &format!("6, {rtt}, 65 and 6.5"),
            change(&|s| {
                s.air.rates_mbps = vec![65.0, 65.0, 65.0, 65.0, 6.5, 6.5];
            }),
        );
    }
    for (from, to) in [(2.0, 512.0), (512.0, 2.0), (100.0, 150.0), (20.0, 100.0)] {
        let mut scenario = Scenario::uplink(6, 65.0, from);
        scenario.rtt_ms = vec![(0.0, from), (10.0, to)];
        scenario.seconds = 35.0;
        scenario.warmup = 15.0;
        add(&format!("6, {from} -> {to}"), scenario);
    }
    all
}

#[test]
#[ignore = "prints, for tuning by hand"]
fn variants() {
    let only = std::env::var("ONLY").unwrap_or_default();
    for (name, scenario) in scenarios().into_iter().filter(|(name, _)| name.contains(&only)) {
        let mut line = format!("{name:24}");
        for law in &laws() {
            let seeds = 3;
            let runs: Vec<_> = (1..=seeds)
                .map(|seed| World::new(&scenario, law.as_ref(), seed).run(&mut |_, _, _, _| {}))
                .collect();
            let mean =
                |f: fn(&harness::Outcome) -> f64| runs.iter().map(f).sum::<f64>() / seeds as f64;
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

#[test]
#[ignore = "prints, for tuning by hand"]
fn fixed_windows() {
    for window in [30, 50, 70, 100, 150, 300] {
        let law = LawConfig::Fixed {
            floor: wakeai_units::Segments::new(window),
            ceiling: wakeai_units::Segments::new(window),
        };
        for (n, rate, w) in [(6, 300.0, window), (40, 300.0, window / 6), (40, 130.0, window / 6)] {
            let _ = w;
            let law = if n == 40 {
                LawConfig::Fixed {
                    floor: wakeai_units::Segments::new(w),
                    ceiling: wakeai_units::Segments::new(w),
                }
            } else {
                law.clone()
            };
            let o = World::new(&Scenario::uplink(n, rate, 2.0), Some(&law), 1)
                .run(&mut |_, _, _, _| {});
            println!(
                "{n} {rate} {w}: {:.2} p95 {:.0} j {:.2} ack {} to {}",
                o.total_mbps,
                o.growth_p95,
                o.jain(),
                o.ack_drops,
                o.timeouts
            );
        }
    }
}
