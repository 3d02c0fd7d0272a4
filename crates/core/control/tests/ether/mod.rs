//! A medium for tests, in which all stations are in range of each other.

#![allow(dead_code, reason = "not every test needs all of it")]

use wakeai_connection::Figures;
use wakeai_control::presence::{BootId, Challenge, Codec, Presence, PresenceCounters};
use wakeai_control::{
    Announcement, Connection, Controller, ControllerConfig, LawConfig, LawName, Limit, StationId,
    Traffic,
};
use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

pub(crate) const BSSID: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const KEY: [u8; 32] = [42; 32];

pub(crate) fn config(id: u64) -> ControllerConfig {
    ControllerConfig::new(StationId(id), BSSID, KEY)
}

pub(crate) fn start(now: Instant, config: &ControllerConfig, boot: u8) -> Controller {
    let law = LawConfig::new(LawName::ShimadaAfter);
    let mut boot_id = [boot; 16];
    boot_id[0] = config.station_id.0 as u8;
    Controller::new(now, config, boot_id, &law)
}

pub(crate) fn station(now: Instant, id: u64, boot: u8) -> Controller {
    start(now, &config(id), boot)
}

/// The PHY rate and the connections of a station.
pub(crate) type Own = (Option<Rate>, Vec<Connection>);

/// A connection with this window and this smoothed RTT. The whole window is in flight, and more data waits.
pub(crate) fn sending(cwnd: u32, rtt: Duration) -> Connection {
    let figures = Figures {
        cwnd: Segments::new(cwnd),
        mss: Bytes::new(1448),
        smoothed_rtt: Some(rtt),
        packets_out: Segments::new(cwnd),
        send_queue: Bytes::new(1448 * u64::from(cwnd) + 100_000),
        ..Figures::default()
    };
    Connection { id: 1, figures, limit: Limit::Window, ..Connection::default() }
}

/// Stations, and a medium that delivers every datagram to all of them at once, the sender included.
pub(crate) struct Ether {
    pub(crate) now: Instant,
    pub(crate) stations: Vec<Controller>,
    /// The PHY rate and the connections of each station.
    pub(crate) own: Vec<Own>,
    /// Every datagram that was sent, with the index of its sender.
    pub(crate) recorded: Vec<(usize, Vec<u8>)>,
}

impl Ether {
    pub(crate) fn new(stations: Vec<Controller>) -> Self {
        let own = vec![Own::default(); stations.len()];
        Self { now: Instant::ZERO, stations, own, recorded: Vec::new() }
    }

    /// Lets a station ask the others for their figures. Returns the number of the query.
    pub(crate) fn ask(&mut self, station: usize) -> u64 {
        self.stations[station].ask_fleet(self.now)
    }

    pub(crate) fn run(&mut self, span: Duration) {
        self.run_where(span, |_, _| true);
    }

    /// Runs the stations for `span`. The medium carries a datagram of station `from` to station
    /// `to` where `carries(from, to)` is true.
    pub(crate) fn run_where(&mut self, span: Duration, carries: impl Fn(usize, usize) -> bool) {
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
                    let (link_rate, connections) = &self.own[from];
                    self.stations[from].handle_tick(self.now, *link_rate, connections);
                }
                while let Some(datagram) = self.stations[from].poll_transmit(self.now) {
                    for to in (0..self.stations.len()).filter(|&to| carries(from, to)) {
                        self.stations[to].handle_datagram(self.now, &datagram);
                    }
                    self.recorded.push((from, datagram));
                }
            }
        }
    }
}

/// The visible state of a controller, without the counters.
pub(crate) fn shown(controller: &Controller) -> String {
    let peers: Vec<_> = controller.peers().collect();
    format!(
        "{peers:?} {:?} {:?}",
        (controller.observation(), controller.decision()),
        controller.next_timeout()
    )
}

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) fn peers(controller: &Controller) -> Vec<u64> {
    controller.peers().map(|peer| peer.station.0).collect()
}

/// Asserts that `datagrams` change nothing in `victim` except the counter that `counter` selects.
pub(crate) fn only_counts(
    victim: &mut Controller,
    now: Instant,
    datagrams: &[Vec<u8>],
    counter: fn(&mut PresenceCounters) -> &mut u64,
) {
    while victim.poll_event().is_some() {}
    victim.handle_datagram(now, &[]); // both states then have the same time
    let before = shown(victim);
    let mut expected = *victim.counters();
    for datagram in datagrams {
        victim.handle_datagram(now, datagram);
    }
    *counter(&mut expected) += datagrams.len() as u64;
    assert_eq!(*victim.counters(), expected);
    assert_eq!(shown(victim), before);
    assert_eq!(victim.poll_event(), None);
}

/// A message that a member of the group could have written.
pub(crate) fn crafted(station: u64, boot: u8, sequence: u64, answers: Vec<Challenge>) -> Presence {
    Presence {
        bssid: BSSID,
        station: StationId(station),
        boot: BootId([boot; 16]),
        sequence,
        interval: seconds(1),
        announced: Announcement {
            up: Traffic { active: true, rate: Rate::from_mbps(1), ..Traffic::default() },
            ..Announcement::default()
        },
        unix_time: None,
        challenge: Challenge(7),
        law: None,
        answers,
    }
}

/// The time of `victim`'s next message, and the challenge in this message.
pub(crate) fn challenge_of(victim: &mut Controller) -> (Instant, Challenge) {
    challenge_from(Instant::ZERO, victim)
}

/// The first challenge that `victim` announces at `from` or later.
pub(crate) fn challenge_from(from: Instant, victim: &mut Controller) -> (Instant, Challenge) {
    loop {
        let now = victim.next_timeout().unwrap().max(from);
        if victim.next_tick() <= now {
            victim.handle_tick(now, None, &[]);
        }
        if let Some(datagram) = victim.poll_transmit(now) {
            return (now, Codec::new(&KEY).decode(&datagram).unwrap().challenge);
        }
    }
}
