//! Code that the tests of the medium share: a packet, a host that always has packets, and a BSS for
//! them.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]
#![allow(unreachable_pub, reason = "a module of test files, not a library")]

use wakeai_medium::{
    Delivery, Destination, Medium, MediumConfig, Node, Packet, StationId, WifiConfig, generator,
};
use wakeai_units::{Duration, Instant, Rate};
use wakeai_wifi::{Contention, Standard};

/// UDP and IP headers.
pub const UDP_IP: u64 = 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Datagram {
    pub id: u64,
    pub length: usize,
}

impl Packet for Datagram {
    fn len(&self) -> usize {
        self.length
    }

    fn flow(&self) -> u64 {
        self.id % 3
    }
}

pub const TO_SERVER: Destination = Destination::Unicast(Node::Server);

pub fn station(index: usize) -> Node {
    Node::Station(StationId(u32::try_from(index).unwrap()))
}

pub fn to_station(index: usize) -> Destination {
    Destination::Unicast(station(index))
}

/// A BSS whose wire is never the bottleneck.
pub fn config(standard: Standard, stations: usize) -> WifiConfig {
    let mut config = WifiConfig::new(standard, stations);
    config.access_points[0].wired.rate = Rate::from_mbps(100_000);
    config.access_points[0].wired.delay = Duration::ZERO;
    config
}

/// Gives the access point and all stations the same contention parameters.
pub fn contend(config: &mut WifiConfig, contention: Contention) {
    config.access_points[0].bss.contention = contention;
    for station in &mut config.stations {
        station.radio.contention = contention;
    }
}

pub fn medium(config: &WifiConfig, seed: u64) -> Medium<Datagram> {
    Medium::new(&MediumConfig::Wifi(config.clone()), generator(seed)).unwrap()
}

/// Runs until `end` or until nothing more happens, and passes on each arriving packet.
pub fn run(
    medium: &mut Medium<Datagram>,
    end: Instant,
    mut arrive: impl FnMut(Delivery<Datagram>),
) {
    while let Some(at) = medium.next_timeout().filter(|at| *at <= end) {
        medium.handle_timeout(at);
        while let Some(delivery) = medium.poll_delivery() {
            arrive(delivery);
        }
    }
}

/// Runs until nothing more happens, and returns the arrived packets.
pub fn drain(medium: &mut Medium<Datagram>) -> Vec<Delivery<Datagram>> {
    let mut arrived = Vec::new();
    run(medium, Instant::MAX, |delivery| arrived.push(delivery));
    arrived
}

/// The results of a saturated uplink.
pub struct Saturation {
    pub medium: Medium<Datagram>,
    /// The packets that arrived at the server within the measured time, by station.
    pub arrived: Vec<u64>,
    pub measured: Duration,
}

impl Saturation {
    /// The rate in Mbit/s where each packet has `bytes` bytes of payload.
    pub fn mbps(&self, bytes: u64) -> f64 {
        let packets: u64 = self.arrived.iter().sum();
        (packets * bytes * 8) as f64 / self.measured.as_secs_f64() / 1e6
    }

    /// The share of failed ones among the attempted data frames, over all stations.
    pub fn failed_share(&self) -> f64 {
        let counters = &self.medium.counters().stations;
        let failed: u64 = counters.iter().map(|c| c.failures).sum();
        let attempts: u64 = counters.iter().map(|c| c.attempts).sum();
        failed as f64 / attempts as f64
    }
}

/// The results where every station always has packets of `length` bytes for the server. They are
/// measured for `measured` after `warmup`.
pub fn saturate_uplink(
    config: &WifiConfig,
    length: usize,
    warmup: Duration,
    measured: Duration,
    seed: u64,
) -> Saturation {
    saturate(config, config.stations.len(), length, (warmup, measured), seed)
}

/// As [`saturate_uplink`], where only the first `senders` stations have packets.
pub fn saturate(
    config: &WifiConfig,
    senders: usize,
    length: usize,
    (warmup, measured): (Duration, Duration),
    seed: u64,
) -> Saturation {
    let mut medium = medium(config, seed);
    let stations = config.stations.len();
    let mut id = 0;
    let mut fill = |medium: &mut Medium<Datagram>, now: Instant, index: usize| {
        while medium.room(station(index)) > 0 {
            id += 1;
            medium.enqueue(now, station(index), TO_SERVER, Datagram { id, length }).unwrap();
        }
    };
    for index in 0..senders {
        fill(&mut medium, Instant::ZERO, index);
    }
    let (start, end) = (Instant::ZERO + warmup, Instant::ZERO + warmup + measured);
    let mut arrived = vec![0; stations];
    while let Some(now) = medium.next_timeout().filter(|at| *at <= end) {
        medium.handle_timeout(now);
        while let Some(delivery) = medium.poll_delivery() {
            let Node::Station(from) = delivery.from else { panic!("an uplink") };
            arrived[from.index()] += u64::from(delivery.at >= start);
            fill(&mut medium, delivery.at, from.index());
        }
    }
    Saturation { medium, arrived, measured }
}
