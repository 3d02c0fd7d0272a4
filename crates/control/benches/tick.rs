//! What a tick costs a station in a crowd: 100 live peers, 1,000 connections that send, the law
//! `airtime`. A tick comes every 0.5 s, so a millisecond is 0.2 % of a processor.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::cell::RefCell;
use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use wakeai_control::{
    ConnectionView, Controller, ControllerConfig, LawConfig, StationId, StationView, divide,
    share_of_new,
};
use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

const PEERS: u64 = 100;
const TICK: Duration = Duration::from_millis(500);

/// A station and those whose messages it hears, each with a controller of its own.
struct Crowd {
    now: Instant,
    own: Controller,
    view: StationView,
    peers: Vec<(Controller, StationView)>,
    ticks: u64,
}

fn controller(station: u64) -> Controller {
    let config = ControllerConfig::new(StationId(station), [2, 0, 0, 0, 0, 1], [42; 32]);
    let law = LawConfig::from_name("airtime").expect("a known name").build();
    Controller::new(Instant::ZERO, config, [station as u8; 16], law)
}

fn sending(connections: u64) -> StationView {
    let connection = |id| ConnectionView {
        id,
        cwnd: Segments::new(20),
        mss: Bytes::new(1448),
        sending: true,
        in_flight: Segments::new(10 + id as u32 % 20),
        ..ConnectionView::default()
    };
    let connections = (0..connections).map(connection).collect();
    StationView { link_rate: Some(Rate::from_mbps(65)), connections }
}

impl Crowd {
    /// After everybody has proved to be live.
    fn new(connections: u64) -> Self {
        let peers = (1..=PEERS).map(|id| (controller(id), sending(1))).collect();
        let (own, view) = (controller(0), sending(connections));
        let mut crowd = Self { now: Instant::ZERO, own, view, peers, ticks: 0 };
        for _ in 0..600 {
            crowd.advance();
            crowd.tick();
        }
        assert_eq!(crowd.own.peers().count() as u64, PEERS, "not all have proved to be live");
        crowd
    }

    /// Everything until the station's next tick.
    fn advance(&mut self) {
        while self.own.poll_event().is_some() {}
        self.ticks += 1;
        self.now += TICK;
        progress(&mut self.view, self.ticks);
        for (peer, view) in &mut self.peers {
            if peer.next_tick() <= self.now {
                progress(view, self.ticks);
                peer.handle_tick(self.now, view);
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
        black_box(self.own.handle_tick(self.now, &self.view));
    }
}

/// A queue stands and varies, so that the watch of the RTT keeps all the history that it ever does.
fn progress(view: &mut StationView, ticks: u64) {
    for connection in &mut view.connections {
        let rtt =
            Duration::from_millis(if ticks == 1 { 5 } else { 40 + (ticks + connection.id) % 30 });
        connection.smoothed_rtt = rtt;
        connection.latest_rtt = rtt;
        connection.min_rtt = Duration::from_millis(5);
        connection.cwnd = Segments::new(15 + ((ticks * 7 + connection.id) % 10) as u32);
        connection.delivered += 20;
    }
}

fn tick(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tick");
    for connections in [1, 1000] {
        let crowd = RefCell::new(Crowd::new(connections));
        let name = BenchmarkId::new("100_peers_and_connections", connections);
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || crowd.borrow_mut().advance(),
                |()| crowd.borrow_mut().tick(),
                BatchSize::PerIteration,
            );
        });
    }
    // What the agent does with the bounds.
    let view = {
        let mut view = sending(1000);
        progress(&mut view, 1);
        view
    };
    let bounds = Crowd::new(1000).own.last().1;
    group.bench_function("divided_among_1000", |bencher| {
        bencher.iter(|| {
            let new = share_of_new(bounds, &view.connections);
            black_box((divide(bounds, &view.connections), new))
        });
    });
    group.finish();
}

criterion_group!(benches, tick);
criterion_main!(benches);
