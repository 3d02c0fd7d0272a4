//! The law `airtime` against stock CUBIC, over many scenarios, as a table.
//!
//! After a change of the law read the table's difference as a whole: a gain in one row that costs
//! another is no gain. `cargo insta review` takes a new table.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::{Outcome, Scenario, World};
use wakeai_control::LawConfig;

/// What a row promises.
#[derive(Clone, Copy, PartialEq)]
enum Promise {
    /// At least 97 % of stock's goodput at less than half of its 95th-percentile RTT growth, or
    /// below 30 ms of it.
    Short,
    /// At least this many percent of stock's goodput.
    Goodput(u32),
    /// Nothing: the figures are on record.
    None,
}

struct Row {
    name: String,
    scenario: Scenario,
    promise: Promise,
}

fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut add = |name: String, scenario: Scenario, promise: Promise| {
        rows.push(Row { name, scenario, promise });
    };
    for rtt in [2.0, 20.0, 100.0, 250.0, 512.0] {
        for rate in [6.5, 19.5, 65.0, 130.0, 300.0] {
            // At 300 Mbit/s and short RTTs stock is faster by being unfair: few contend.
            let hogs = rate > 200.0 && rtt < 100.0;
            let promise = if hogs { Promise::Goodput(94) } else { Promise::Short };
            add(format!("6 at {rate}, {rtt} ms"), Scenario::uplink(6, rate, rtt), promise);
        }
    }
    for n in [1, 2, 12, 40] {
        for rtt in [2.0, 512.0] {
            for rate in [19.5, 65.0, 300.0] {
                // With 40 stations at 300 Mbit/s stock starves most of them: few contend.
                let promise = Promise::Goodput(if rate > 200.0 && rtt < 100.0 { 90 } else { 97 });
                add(format!("{n} at {rate}, {rtt} ms"), Scenario::uplink(n, rate, rtt), promise);
            }
        }
    }
    for rtt in [2.0, 512.0] {
        variants(rtt, &mut add);
    }
    for (from, to) in [(2.0, 512.0), (512.0, 2.0), (100.0, 150.0), (20.0, 100.0)] {
        let mut scenario = Scenario::uplink(6, 65.0, from);
        scenario.rtt_ms = vec![(0.0, from), (10.0, to)];
        (scenario.seconds, scenario.warmup) = (35.0, 15.0);
        add(format!("6, from {from} to {to} ms"), scenario, Promise::Goodput(90));
    }
    rows
}

fn variants(rtt: f64, add: &mut impl FnMut(String, Scenario, Promise)) {
    let mut change = |what: &str, promise: Promise, change: &dyn Fn(&mut Scenario)| {
        let mut scenario = Scenario::uplink(6, 65.0, rtt);
        change(&mut scenario);
        add(format!("6, {rtt} ms, {what}"), scenario, promise);
    };
    let single_frames = |s: &mut Scenario, rates: [f64; 6]| {
        s.air.aggregates = false;
        s.air.rates_mbps = rates.to_vec();
    };
    change("no pacing", Promise::Short, &|s| s.paces = false);
    change("PHY rate unknown", Promise::Short, &|s| s.link_rate_known = false);
    change("host queue 100", Promise::Goodput(97), &|s| s.air.host_queue = 100);
    change("4 flows each", Promise::Short, &|s| s.flows_per_station = 4);
    change("loss 1 in 10000", Promise::Short, &|s| s.lost_one_in = 10_000);
    change("loss 1 in 1000", Promise::Goodput(97), &|s| s.lost_one_in = 1_000);
    change("2 s apart", Promise::Goodput(97), &|s| s.stagger_ms = 2_000);
    change("3 without agent", Promise::None, &|s| s.agents = 3);
    change("802.11g", Promise::Short, &|s| single_frames(s, [54.0; 6]));
    let slow_two = [54.0, 54.0, 54.0, 54.0, 6.0, 6.0];
    change("802.11g, two at 6", Promise::Short, &|s| single_frames(s, slow_two));
    change("two at 6.5", Promise::Short, &|s| {
        s.air.rates_mbps = vec![65.0, 65.0, 65.0, 65.0, 6.5, 6.5];
    });
}

fn run(scenario: &Scenario) -> (Outcome, Outcome) {
    let airtime = LawConfig::from_name("airtime").unwrap();
    let run = |law| World::new(scenario, law, 1).run(&mut |_| {});
    (run(None), run(Some(&airtime)))
}

/// All rows, on as many threads as there are cores; each is reproduced by its seed alone.
fn run_all(rows: &[Row]) -> Vec<(Outcome, Outcome)> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![None; rows.len()]);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((at, row)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    rows.get(at).map(|row| (at, row))
                } {
                    let result = run(&row.scenario);
                    results.lock().unwrap()[at] = Some(result);
                }
            });
        }
    });
    results.into_inner().unwrap().into_iter().map(Option::unwrap).collect()
}

fn keeps(promise: Promise, stock: &Outcome, airtime: &Outcome) -> bool {
    let percent = 100.0 * airtime.total_mbps / stock.total_mbps;
    let short = airtime.growth_p95 < stock.growth_p95 / 2.0 || airtime.growth_p95 < 30.0;
    match promise {
        Promise::Short => percent >= 97.0 && short,
        Promise::Goodput(least) => percent >= f64::from(least),
        Promise::None => true,
    }
}

#[test]
fn airtime_keeps_the_goodput_and_shortens_the_queue() {
    let rows = rows();
    let mut table = String::new();
    let header = "stock -> airtime: goodput Mbit/s, RTT growth p95 ms, Jain, timeouts";
    writeln!(table, "{:28} {header}", "").unwrap();
    let mut broken = Vec::new();
    for (row, (stock, airtime)) in rows.iter().zip(run_all(&rows)) {
        let percent = 100.0 * airtime.total_mbps / stock.total_mbps;
        writeln!(
            table,
            "{:28} {:6.1} -> {:6.1} ({percent:3.0} %)  {:5.0} -> {:4.0}  {:.2} -> {:.2}  {:4} -> {:4}",
            row.name,
            stock.total_mbps,
            airtime.total_mbps,
            stock.growth_p95,
            airtime.growth_p95,
            stock.jain(),
            airtime.jain(),
            stock.timeouts,
            airtime.timeouts,
        )
        .unwrap();
        if !keeps(row.promise, &stock, &airtime) {
            broken.push(row.name.clone());
        }
    }
    insta::assert_snapshot!(table);
    assert!(broken.is_empty(), "rows that break their promise: {broken:?}");
}

#[test]
fn a_run_is_reproduced_by_its_seed() {
    let scenario = Scenario { seconds: 8.0, ..Scenario::uplink(3, 65.0, 100.0) };
    let law = LawConfig::from_name("airtime");
    let run = |seed| World::new(&scenario, law.as_ref(), seed).run(&mut |_| {});
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn presence_takes_at_most_half_a_percent_of_the_air() {
    for n in [2, 6, 40] {
        let scenario = Scenario { seconds: 60.0, ..Scenario::uplink(n, 65.0, 100.0) };
        let law = LawConfig::from_name("fixed");
        let outcome = World::new(&scenario, law.as_ref(), 1).run(&mut |_| {});
        assert!(outcome.presence_share > 0.0005, "{n}: {}", outcome.presence_share);
        assert!(outcome.presence_share < 0.005, "{n}: {}", outcome.presence_share);
    }
}
