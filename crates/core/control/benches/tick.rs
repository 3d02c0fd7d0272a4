//! Measures the time that a tick takes at a station with 100 live peers and 1,000 sending
//! connections, at one with 1,000 more that receive, and at one with 1,000 live peers, under the law `airtime`. A tick comes every 0.5 s,
//! so a millisecond per tick is 0.2 % of a processor.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::cell::RefCell;
use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use wakeai_connection::{Figures, Receiving};
use wakeai_control::{
    Actuation, Connection, Controller, ControllerConfig, LawConfig, LawName, Limit, StationId, TICK,
};
use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

/// A station and its peers. Each of these stations has a controller of its own.
struct Crowd {
    now: Instant,
    own: Controller,
    connections: Vec<Connection>,
    peers: Vec<(Controller, Vec<Connection>)>,
    ticks: u64,
}

fn controller(station: u64) -> Controller {
    let config = ControllerConfig::new(StationId(station), [2, 0, 0, 0, 0, 1], [42; 32]);
    let law = LawConfig::new(LawName::Airtime);
    let boot = std::array::from_fn(|index| (station >> (8 * (index % 8))) as u8);
    Controller::new(Instant::ZERO, &config, boot, &law)
}

const LINK_RATE: Option<Rate> = Some(Rate::from_mbps(65));

fn sending(connections: u64) -> Vec<Connection> {
    let connection = |id| {
        let figures = Figures {
            cwnd: Segments::new(20),
            mss: Bytes::new(1448),
            packets_out: Segments::new(10 + id as u32 % 20),
            ..Figures::default()
        };
        Connection { id, figures, limit: Limit::Window, ..Connection::default() }
    };
    (0..connections).map(connection).collect()
}

/// Connections with ids that [`sending`] does not use.
fn receiving(connections: u64) -> Vec<Connection> {
    let receiving =
        Receiving { window: Bytes::new(60_000), mss: Bytes::new(1448), ..Receiving::default() };
    let connection = |id| Connection { id: 1_000_000 + id, receiving, ..Connection::default() };
    (0..connections).map(connection).collect()
}

impl Crowd {
    /// A crowd in which all peers have proved to be live.
    fn new(number: u64, connections: Vec<Connection>) -> Self {
        let peers = (1..=number).map(|id| (controller(id), sending(1))).collect();
        let own = controller(0);
        let mut crowd = Self { now: Instant::ZERO, own, connections, peers, ticks: 0 };
        for _ in 0..600 {
            crowd.advance();
            crowd.tick();
        }
        assert_eq!(crowd.own.peers().count() as u64, number, "not all have proved to be live");
        crowd
    }

    /// Advances the time to the station's next tick, and handles the events and messages before it.
    fn advance(&mut self) {
        while self.own.poll_event().is_some() {}
        self.ticks += 1;
        self.now += TICK;
        progress(&mut self.connections, self.ticks);
        for (peer, connections) in &mut self.peers {
            if peer.next_tick() <= self.now {
                progress(connections, self.ticks);
                peer.handle_tick(self.now, LINK_RATE, connections);
                while peer.poll_event().is_some() {}
            }
            while let Some(datagram) = peer.poll_transmit(self.now) {
                self.own.handle_datagram(self.now, &datagram);
            }
        }
        while let Some(datagram) = self.own.poll_transmit(self.now) {
            for (peer, _) in &mut self.peers {
                peer.handle_datagram(self.now, &datagram);
            }
        }
    }

    fn tick(&mut self) {
        black_box(self.own.handle_tick(self.now, LINK_RATE, &self.connections));
    }
}

/// Lets the queueing delay vary without ever reaching zero, so that the watch of the RTT keeps its
/// longest history.
fn progress(connections: &mut [Connection], ticks: u64) {
    for Connection { id, figures, receiving, .. } in connections {
        let rtt = Duration::from_millis(if ticks == 1 { 5 } else { 40 + (ticks + *id) % 30 });
        if receiving.window > Bytes::ZERO {
            receiving.rtt = Some(rtt);
            receiving.received += 20 * 1448;
            continue;
        }
        figures.smoothed_rtt = Some(rtt);
        figures.latest_rtt = Some(rtt);
        figures.min_rtt = Some(Duration::from_millis(5));
        figures.cwnd = Segments::new(15 + ((ticks * 7 + *id) % 10) as u32);
        figures.delivered += 20;
    }
}

fn tick(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tick");
    let each_way = || [sending(1000), receiving(1000)].concat();
    for (number, what, connections) in [
        (100, "1", sending(1)),
        (100, "1000", sending(1000)),
        (100, "1000_each_way", each_way()),
        (1000, "1", sending(1)),
    ] {
        let crowd = RefCell::new(Crowd::new(number, connections));
        let name = BenchmarkId::new(format!("{number}_peers_and_connections"), what);
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || crowd.borrow_mut().advance(),
                |()| crowd.borrow_mut().tick(),
                BatchSize::PerIteration,
            );
        });
    }
    // Measures the part of a tick that divides the bounds.
    let crowd = Crowd::new(100, sending(1000));
    let (seen, bounds) = (crowd.own.observation(), crowd.own.decision().bounds);
    group.bench_function("divided_among_1000", |bencher| {
        bencher.iter(|| black_box(Actuation::new(bounds, seen)));
    });
    group.finish();
}

criterion_group!(benches, tick);
criterion_main!(benches);
