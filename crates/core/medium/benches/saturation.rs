//! The time per attempt on a saturated 802.11g uplink. It must not grow with the number of
//! stations, because a simulator that is hundreds of times faster than ns-3 spends its time here.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wakeai_medium::{
    Destination, Medium, MediumConfig, Node, Packet, StationId, WifiConfig, generator,
};
use wakeai_units::{Instant, Rate};
use wakeai_wifi::Standard;

/// The number of attempts in one iteration of a sample.
const ATTEMPTS: u64 = 1_000;

#[derive(Clone, Copy)]
struct Datagram;

impl Packet for Datagram {
    fn len(&self) -> usize {
        1_500
    }
}

/// Lets a host put its next packet into the queue whenever a packet has left.
fn refill(medium: &mut Medium<Datagram>, station: Node, now: Instant) {
    while medium.room(station) > 0 {
        let taken = medium.enqueue(now, station, Destination::Unicast(Node::Server), Datagram);
        assert!(taken.is_ok(), "there was room");
    }
}

fn saturated(standard: Standard, stations: u32) -> Medium<Datagram> {
    let mut config = WifiConfig::new(standard, stations as usize);
    config.access_points[0].wired.rate = Rate::from_mbps(10_000);
    config.stations.iter_mut().for_each(|station| station.queue = 100);
    let mut medium =
        Medium::new(&MediumConfig::Wifi(config), generator(1)).expect("a valid configuration");
    for station in 0..stations {
        refill(&mut medium, Node::Station(StationId(station)), Instant::ZERO);
    }
    advance(&mut medium, 10 * ATTEMPTS);
    medium
}

/// Lets the medium make `attempts` more attempts, or a few more if the last ones collide.
fn advance(medium: &mut Medium<Datagram>, attempts: u64) {
    let end = medium.counters().accesses + attempts;
    while medium.counters().accesses < end {
        let now = medium.next_timeout().expect("saturated");
        medium.handle_timeout(now);
        while let Some(delivery) = medium.poll_delivery() {
            refill(medium, delivery.from, delivery.at);
        }
    }
}

fn saturation(c: &mut Criterion) {
    let mut group = c.benchmark_group("saturation");
    group.sample_size(30);
    for (name, standard) in [("802.11g", Standard::G), ("802.11n", Standard::N)] {
        for stations in [1, 40, 1_000] {
            let mut medium = saturated(standard, stations);
            group.throughput(Throughput::Elements(ATTEMPTS));
            group.bench_function(BenchmarkId::new(name, stations), |b| {
                b.iter(|| advance(&mut medium, ATTEMPTS));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, saturation);
criterion_main!(benches);
