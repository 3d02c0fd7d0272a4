//! Stations find each other, and nobody else gets in.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use wakeai_control::{Controller, ControllerConfig, LawConfig, StationId, StationView};
use wakeai_units::{Duration, Instant};

const BSSID: [u8; 6] = [2, 0, 0, 0, 0, 1];
const KEY: [u8; 32] = [42; 32];

fn config(id: u64) -> ControllerConfig {
    ControllerConfig::new(StationId(id), BSSID, KEY)
}

fn station_with(now: Instant, config: ControllerConfig, boot: u8) -> Controller {
    let law = LawConfig::from_name("shimada-after").unwrap().build();
    let mut boot_id = [boot; 16];
    boot_id[0] = config.station_id.0 as u8;
    Controller::new(now, config, boot_id, law)
}

fn station(now: Instant, id: u64, boot: u8) -> Controller {
    station_with(now, config(id), boot)
}

fn peers(controller: &Controller) -> Vec<u64> {
    controller.peers().map(|peer| peer.station.0).collect()
}

/// An ether that carries every datagram to everybody, its sender included, at once.
struct Ether {
    now: Instant,
    stations: Vec<Controller>,
    /// When each datagram was sent, by whom, and what it was.
    recorded: Vec<(Instant, usize, Vec<u8>)>,
}

impl Ether {
    fn new(stations: Vec<Controller>) -> Self {
        Self { now: Instant::ZERO, stations, recorded: Vec::new() }
    }

    fn run(&mut self, span: Duration) {
        self.run_where(span, |_, _, _| true);
    }

    /// Carries a datagram from one station to another only where `carries(number, from, to)`.
    fn run_where(&mut self, span: Duration, carries: impl Fn(usize, usize, usize) -> bool) {
        let end = self.now + span;
        loop {
            let next = self.stations.iter().filter_map(Controller::next_timeout).min().unwrap();
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            for from in 0..self.stations.len() {
                if self.stations[from].next_tick() <= self.now {
                    self.stations[from].handle_tick(self.now, &StationView::default());
                }
                while let Some(datagram) = self.stations[from].poll_transmit(self.now) {
                    let number = self.recorded.len();
                    for to in (0..self.stations.len()).filter(|&to| carries(number, from, to)) {
                        self.stations[to].handle_datagram(self.now, &datagram);
                    }
                    self.recorded.push((self.now, from, datagram));
                }
            }
        }
    }
}

#[test]
fn six_stations_know_each_other_within_two_seconds() {
    let mut ether = Ether::new((0..6).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(Duration::from_secs(2));
    for (index, station) in ether.stations.iter().enumerate() {
        let others: Vec<u64> = (0..6).filter(|&id| id != index as u64).collect();
        assert_eq!(peers(station), others);
        assert!(station.counters().own > 0, "it hears its own echo");
    }
}
