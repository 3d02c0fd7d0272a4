//! `make soak`: agents under churn for `SOAK_MINUTES`. After five minutes the resources that they hold must not grow.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the table is the result")]

mod churn;
mod held;

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use churn::{Connections, Peer};
use held::{Held, Quantity};
use wakeai_tests::agent::Fleet;
use wakeai_tests::bss::Bss;
use wakeai_tests::{Machine, nothing_left, wakeai};

/// The stations whose agents are measured.
const MEASURED: [&str; 2] = ["a", "b"];
/// The stations whose agents come and go.
const COMING_AND_GOING: [&str; 2] = ["c", "d"];
/// The connections that each measured station opens per second. Together they open 100.
const CONNECTIONS_PER_SECOND: u32 = 50;
/// The time after which one of the two peers starts or ends, in turn. So each peer runs for two of these times, and is
/// gone for two.
const STAY: Duration = Duration::from_secs(7);
/// The time between two samples.
const BETWEEN_SAMPLES: Duration = Duration::from_secs(2);
/// The value at a mark is the mean over this time before the mark. In this time each peer starts and ends twice,
/// because an agent's part of the shared memory depends on the number of agents.
const WINDOW: Duration = Duration::from_secs(56);
/// The values at the end are compared with those at this time, or at half of the run if that is earlier.
const WARM: Duration = Duration::from_mins(5);

/// The duration of the run from `SOAK_MINUTES`, 30 minutes by default.
fn length() -> Duration {
    let minutes = std::env::var("SOAK_MINUTES").unwrap_or_else(|_| "30".to_owned());
    let minutes: f64 = minutes.parse().unwrap_or(0.0);
    assert!((2.0..=1440.0).contains(&minutes), "SOAK_MINUTES: found {minutes}, expected 2 to 1440");
    Duration::from_secs_f64(minutes * 60.0)
}

#[test]
#[ignore = "takes SOAK_MINUTES; `make soak` runs it"]
fn the_resources_of_agents_do_not_grow_under_churn() {
    let length = length();
    let warm = WARM.min(length / 2);
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b", "c", "d", "server"]);
    let server = bss.namespace("server");
    let fleet = Fleet::new();
    let mut agents: Vec<_> =
        (1..).zip(MEASURED).map(|(number, name)| fleet.start(&bss, name, number, "")).collect();
    let connections: Vec<_> = MEASURED
        .iter()
        .map(|name| Connections::start(bss.namespace(name), &server, CONNECTIONS_PER_SECOND))
        .collect();
    let mut peers: Vec<_> =
        (3..).zip(COMING_AND_GOING).map(|(n, name)| Peer::new(name, n)).collect();

    let began = Instant::now();
    let mut samples: Vec<(Duration, Vec<Quantity>)> = Vec::new();
    let mut turn = 0;
    while began.elapsed() < length {
        for (index, peer) in peers.iter_mut().enumerate() {
            // The peers take turns, so that none, one or both run.
            let due = STAY * (2 * turn + index as u32);
            if began.elapsed() >= due && peer.turns() == turn {
                peer.turn(&fleet, &bss);
            }
        }
        if peers.iter().all(|peer| peer.turns() > turn) {
            turn += 1;
        }
        let now = began.elapsed();
        if samples.last().is_none_or(|(last, _)| now >= *last + BETWEEN_SAMPLES) {
            samples.push((now, held::all(&MEASURED, &agents)));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let opened: u64 = connections.iter().map(Connections::opened).sum();
    let starts: u32 = peers.iter().map(Peer::starts).sum();
    let heard: Vec<_> = agents.iter().map(|agent| agent.metric("presence_accepted")).collect();
    let held = Held::new(&samples, [warm, length], WINDOW);
    let seconds = length.as_secs_f64();
    println!(
        "{:.1} minutes, {opened} connections ({:.0} per second), {starts} starts of peers, heard {heard:?}\n{held}",
        seconds / 60.0,
        opened as f64 / seconds
    );
    println!("{}", held.json(length, opened, starts));

    drop((peers, connections));
    for agent in &mut agents {
        assert!(agent.end(Signal::SIGTERM).success(), "{}", agent.log());
    }
    wakeai(&["sweep"]);
    nothing_left();
    assert!(heard.iter().all(|heard| *heard > 0), "no peer was heard");
    assert!(held.has_entries("socket_bounds"), "no connection had bounds of its own");
    assert!(opened as f64 > 0.8 * seconds * 100.0, "the churn was too slow: {opened} connections");
    let grown = held.grown();
    assert!(grown.is_empty(), "grew after {:.1} minutes: {grown:?}", warm.as_secs_f64() / 60.0);
}
