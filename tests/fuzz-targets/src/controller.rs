//! Fuzzes the controller (the agent's decisions) of a station that sends, with peers whose messages
//! are arbitrary.

use std::collections::BTreeMap;

use wakeai_connection::{CongestionState, Figures, Receiving};
use wakeai_control::presence::{BootId, Challenge, Codec, Presence};
use wakeai_control::{
    AirtimeKnobs, Connection, ControllerConfig, LawConfig, LawName, Limit, Share, StationId,
};
use wakeai_units::{Bytes, Duration, Rate, Segments};

use crate::input::Input;
use crate::presence::{announcement, rate, span};
use crate::station::{BSSID, FuzzedStation, KEY, OWN};

/// Drives a station with up to four connections and with live peers. All figures and messages are
/// arbitrary. In about one of eight inputs the peers fall silent at the end, and the bounds have to
/// grow again.
pub(crate) fn target(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut world = World::new(&mut input);
    let recovers = input.rarely();
    while !input.is_empty() && !world.station.is_over() {
        world.step(&mut input);
    }
    // With a configured maximum the bounds need not grow: the maximum follows the PHY rate, which
    // is arbitrary and may be lower than the rate at which the station sends.
    if recovers && !world.has_max && !world.station.is_over() {
        world.recover();
    }
}

struct World {
    station: FuzzedStation,
    has_max: bool,
    link_rate: Option<Rate>,
    connections: BTreeMap<u64, Connection>,
    /// The sequence number of the last message of each peer.
    peers: BTreeMap<u8, u64>,
}

impl World {
    fn new(input: &mut Input<'_>) -> Self {
        let law = law(input);
        let config = ControllerConfig {
            access_point_buffer: input.count().clamp(1, 1_000_000),
            max_rate: input.option(rate).filter(|rate| *rate > Rate::ZERO),
            reservable: Share::from_percent(u32::from(input.byte()).min(95)),
            ..ControllerConfig::new(OWN, BSSID, KEY)
        };
        Self {
            has_max: config.max_rate.is_some(),
            station: FuzzedStation::new(config, law),
            link_rate: None,
            connections: BTreeMap::new(),
            peers: BTreeMap::new(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(12) {
            0..=2 => self.peer(input),
            3..=4 => {
                let id = u64::from(input.below(4));
                self.connections.insert(id, connection(id, input));
            }
            5 => {
                self.connections.remove(&u64::from(input.below(4)));
            }
            6 => self.link_rate = input.option(rate),
            7 => {
                let reserve = input.option(rate);
                self.station.controller.reserve(reserve);
            }
            8 => {
                let span = input.millis().min(Duration::from_secs(60));
                self.pass(span, 0);
            }
            _ => {
                let delivered = input.magnitude() & 0xffff;
                self.pass(Duration::from_millis(500), delivered);
            }
        }
    }

    /// Lets `span` pass. Each connection delivers `delivered` segments per tick (0.5 s).
    fn pass(&mut self, span: Duration, delivered: u64) {
        let connections = &mut self.connections;
        self.station.pass(span, self.link_rate, || {
            for connection in connections.values_mut() {
                let figures = &mut connection.figures;
                figures.delivered = figures.delivered.wrapping_add(delivered);
            }
            connections.values().copied().collect()
        });
    }

    /// Receives a message of a live peer.
    fn peer(&mut self, input: &mut Input<'_>) {
        let peer = input.below(16);
        let sequence = self.peers.entry(peer).or_default();
        *sequence += 1;
        let message = Presence {
            bssid: BSSID,
            station: StationId(1 + u64::from(peer)),
            boot: BootId([100 + peer; 16]),
            sequence: *sequence,
            interval: input.millis(),
            announced: announcement(input),
            unix_time: None,
            challenge: Challenge(1),
            law: None,
            answers: self.station.challenges.last().copied().into_iter().collect(),
        };
        self.station.receive(&Codec::new(&KEY).encode(&message));
    }

    /// Lets the peers fall silent, and one connection send over a path of 20 ms without a queue.
    /// Within a minute after the last peer has left, the ceiling has to reach the window of that
    /// connection.
    fn recover(&mut self) {
        const WINDOW: u32 = 20;
        let rtt = Some(Duration::from_millis(20));
        let figures = Figures {
            cwnd: Segments::new(WINDOW),
            packets_out: Segments::new(WINDOW),
            mss: Bytes::new(1448),
            smoothed_rtt: rtt,
            latest_rtt: rtt,
            min_rtt: rtt,
            ..Figures::default()
        };
        let connection =
            Connection { id: 9, figures, limit: Limit::Window, ..Connection::default() };
        self.connections = [(9, connection)].into();
        self.link_rate = Some(Rate::from_mbps(65));
        self.station.controller.reserve(None);
        // One window is delivered per round trip: 25 windows per tick.
        let delivered = u64::from(WINDOW) * 25;
        self.pass(Duration::from_secs(181), delivered);
        let mut largest = Segments::ZERO;
        for _ in 0..120 {
            if self.station.is_over() {
                return;
            }
            self.pass(Duration::from_millis(500), delivered);
            let controller = &self.station.controller;
            let (seen, bounds) = (controller.observation(), controller.decision().bounds);
            assert_eq!((seen.senders, seen.live_peers), (1, 0), "all peers have left");
            largest = largest.max(bounds.ceiling);
        }
        assert!(
            largest >= Segments::new(WINDOW) || self.is_by_hand(),
            "at most {largest}; {}",
            self.station.said
        );
    }

    fn is_by_hand(&self) -> bool {
        self.station.controller.decision().law == LawName::Fixed
    }
}

fn law(input: &mut Input<'_>) -> LawConfig {
    match input.below(5) {
        0 => {
            let floor = Segments::new(input.count() % 10_000);
            let ceiling = Segments::new(floor.get().max(1) + input.count() % 10_000);
            let small_queue = Bytes::new(u64::from(input.count()));
            let receive = input.option(|input| Segments::new(input.count().max(2)));
            let receive = receive.unwrap_or(Segments::MAX);
            LawConfig::Fixed { floor, ceiling, small_queue, receive }
        }
        1 => LawConfig::ShimadaBefore,
        2 => LawConfig::ShimadaAfter,
        3 => LawConfig::Airtime(AirtimeKnobs::default()),
        _ => {
            // These are the ranges that a configuration file allows.
            let queue = |input: &mut Input<'_>| {
                span(input).clamp(Duration::from_millis(1), Duration::from_secs(10))
            };
            let queue_min = queue(input);
            LawConfig::Airtime(AirtimeKnobs {
                queue_rounds_percent: input.count().clamp(1, 10_000),
                queue_min,
                queue_max: queue(input).max(queue_min),
                downloads: true,
            })
        }
    }
}

fn connection(id: u64, input: &mut Input<'_>) -> Connection {
    let figures = Figures {
        cwnd: Segments::new(input.count()),
        packets_out: Segments::new(input.count()),
        smoothed_rtt: input.option(span),
        latest_rtt: input.option(span),
        min_rtt: input.option(span),
        congestion_state: CongestionState::from_number(input.below(5)),
        mss: Bytes::new(input.magnitude().min(65_535)),
        send_queue: Bytes::new(u64::from(input.count())),
        delivered: u64::from(input.count()),
        ..Figures::default()
    };
    let receiving = Receiving {
        received: u64::from(input.count()) * input.magnitude().min(65_535),
        rtt: input.option(span),
        window: Bytes::new(u64::from(input.count())),
        mss: Bytes::new(input.magnitude().min(65_535)),
    };
    Connection { id, figures, receiving, limit: limit(input.below(3)) }
}

fn limit(number: u8) -> Limit {
    [Limit::Nothing, Limit::Window, Limit::Rate][usize::from(number)]
}
