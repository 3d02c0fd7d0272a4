//! Where stations receive each other's messages, only a few of their transfers send at a time,
//! whatever the others announce.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ether;

use std::collections::BTreeMap;

use ether::{Ether, Own, config, seconds, start};
use wakeai_control::presence::Codec;
use wakeai_control::{Controller, ControllerConfig, Permission, StationId, Turn, TurnState};
use wakeai_units::{Bytes, Duration, Instant, Rate};

/// The rate that each station reaches alone.
const ALONE: Rate = Rate::from_mbps(24);
/// The size of a transfer that takes three seconds alone, bytes.
const SIZE: u64 = 9_000_000;
const STEP: Duration = Duration::from_millis(100);

/// Stations with transfers. The sending stations share the air equally.
struct Hall {
    ether: Ether,
    /// The bytes that are left of each station's transfer. Only transfers that have begun and not
    /// ended have an entry.
    left: BTreeMap<usize, u64>,
    /// The time at which each station's transfer has ended.
    ended: BTreeMap<usize, Instant>,
    /// The bytes that each station has delivered.
    delivered: Vec<u64>,
    /// The time in which there were transfers, but none of them was allowed to send.
    idle: Duration,
    begun: Instant,
}

impl Hall {
    /// Makes `count` stations, which already know each other.
    fn new(count: u64) -> Self {
        let stations = (0..count).map(|id| {
            let config =
                ControllerConfig { station_id: StationId(id), max_rate: Some(ALONE), ..config(0) };
            start(Instant::ZERO, &config, 1)
        });
        let mut ether = Ether::new(stations.collect());
        ether.run(seconds(30));
        let begun = ether.now;
        let (left, ended) = (BTreeMap::new(), BTreeMap::new());
        let delivered = vec![0; count as usize];
        Self { ether, left, ended, delivered, idle: Duration::ZERO, begun }
    }

    fn begin(&mut self, station: usize, size: u64) {
        self.left.insert(station, size);
        let now = self.ether.now;
        self.ether.stations[station].transfer(now, Some(Bytes::new(size)));
    }

    fn sending(&self) -> Vec<usize> {
        let may =
            |station: &&usize| self.ether.stations[**station].permission() != Permission::Wait;
        self.left.keys().filter(may).copied().collect()
    }

    /// Lets the stations send for one step.
    fn step(&mut self, carries: impl Fn(usize, usize) -> bool) {
        let sending = self.sending();
        if sending.is_empty() && !self.left.is_empty() {
            self.idle += STEP;
        }
        let rate = ALONE / sending.len().max(1) as u64;
        let amount = rate.bytes_in(STEP).get();
        for (station, own) in self.ether.own.iter_mut().enumerate() {
            *own = Own::default();
            if sending.contains(&station) {
                let mut connection = ether::sending(50, Duration::from_millis(40));
                connection.figures.min_rtt = Some(Duration::from_millis(10));
                self.delivered[station] += amount;
                connection.figures.delivered = self.delivered[station] / 1448;
                own.1.push(connection);
            }
        }
        self.ether.run_where(STEP, carries);
        let now = self.ether.now;
        for station in sending {
            let left = self.left.get_mut(&station).unwrap();
            *left = left.saturating_sub(amount);
            let rest = (*left > 0).then_some(Bytes::new(*left));
            self.ether.stations[station].transfer(now, rest);
            if rest.is_none() {
                self.left.remove(&station);
                self.ended.insert(station, now);
            }
        }
    }

    fn run(&mut self, span: Duration, carries: impl Fn(usize, usize) -> bool) {
        let end = self.ether.now + span;
        while self.ether.now < end && !self.left.is_empty() {
            self.step(&carries);
        }
    }

    /// The time from the begin of the test to the end of each transfer that has ended, s.
    fn times(&self) -> Vec<f64> {
        self.ended.values().map(|at| at.saturating_since(self.begun).as_secs_f64()).collect()
    }
}

fn everybody(_: usize, _: usize) -> bool {
    true
}

#[test]
fn transfers_end_one_after_another_and_the_last_one_no_later() {
    let mut hall = Hall::new(20);
    for station in 0..20 {
        hall.begin(station, SIZE);
    }
    hall.run(seconds(120), everybody);
    let times = hall.times();
    assert_eq!(times.len(), 20);
    let (ideal, last) = (60.0, times.iter().copied().fold(0.0, f64::max));
    let mean = times.iter().sum::<f64>() / 20.0;
    assert!(last <= ideal * 1.05, "{last}");
    assert!(mean <= ideal * 0.60, "{mean}");
}

#[test]
fn a_station_that_is_alone_sends_at_once() {
    let mut hall = Hall::new(1);
    hall.begin(0, SIZE);
    assert_eq!(hall.sending(), [0]);
}

#[test]
fn a_transfer_beside_idle_stations_begins_after_listening() {
    let mut hall = Hall::new(5);
    hall.begin(3, SIZE);
    assert_eq!(hall.sending(), [0; 0]);
    for _ in 0..7 {
        hall.step(everybody);
    }
    assert_eq!(hall.sending(), [3]);
}

#[test]
fn a_station_without_transfers_is_never_held_back() {
    let mut hall = Hall::new(3);
    hall.begin(0, SIZE);
    hall.begin(1, SIZE);
    for _ in 0..20 {
        hall.step(everybody);
        assert_eq!(hall.ether.stations[2].permission(), Permission::Send);
    }
}

#[test]
fn short_transfers_send_together() {
    let mut hall = Hall::new(10);
    for station in 0..5 {
        hall.begin(station, 300_000); // takes 0.1 s alone
    }
    for _ in 0..7 {
        hall.step(everybody);
    }
    assert_eq!(hall.sending().len(), 5);
}

#[test]
fn a_holder_that_falls_silent_is_passed_over_within_two_seconds() {
    for silent_from in [2, 17, 28] {
        let mut hall = Hall::new(6);
        hall.begin(0, SIZE * 100);
        hall.begin(1, SIZE);
        hall.run(STEP * silent_from, everybody);
        // Station 0 loses its power here.
        let since = hall.ether.now;
        hall.left.remove(&0);
        while hall.sending().is_empty() {
            hall.step(|from, to| from != 0 && to != 0);
        }
        let waited = hall.ether.now.saturating_since(since);
        assert!(waited <= seconds(2), "silent after {silent_from}: {waited}");
    }
}

/// Sends a message in the name of station 0, with a false request for a turn.
fn lie(hall: &mut Hall, turn: impl Fn(u64) -> Turn) {
    let codec = Codec::new(&ether::KEY);
    let liar = hall.ether.stations[0].counters().sent;
    let heard = hall.ether.recorded.iter().rev().find(|(from, _)| *from == 0).unwrap();
    let mut message = codec.decode(&heard.1).unwrap();
    message.announced.turn = Some(turn(liar));
    message.announced.up.active = true;
    message.announced.up.rate = ALONE;
    message.answers.truncate(15);
    message.interval = Duration::from_millis(500);
    message.sequence += 1_000_000 + hall.ether.now.as_nanos() / 1_000_000;
    let bytes = codec.encode(&message);
    let now = hall.ether.now;
    for station in &mut hall.ether.stations[1..] {
        station.handle_datagram(now, &bytes);
    }
}

/// The part of the time in which honest transfers were held back although none of them sent.
fn held_back(turn: impl Fn(u64) -> Turn + Copy) -> f64 {
    let mut hall = Hall::new(8);
    lie(&mut hall, turn);
    for station in 1..8 {
        hall.begin(station, SIZE * 4);
    }
    let begun = hall.ether.now;
    let end = begun + seconds(300);
    while hall.ether.now < end && !hall.left.is_empty() {
        lie(&mut hall, turn);
        hall.step(|from, _| from != 0);
    }
    assert!(hall.left.is_empty(), "all honest transfers end");
    hall.idle.as_secs_f64() / hall.ether.now.saturating_since(begun).as_secs_f64()
}

#[test]
fn a_member_that_hoards_delays_others_by_two_seconds_in_twenty() {
    let forever = Duration::from_secs(1_000);
    let hoards = |_| Turn { ticket: 1, state: TurnState::Sending, left: forever };
    let waits = |_| Turn { ticket: 1, state: TurnState::Waiting, left: forever };
    let asks_again =
        |count: u64| Turn { ticket: count as u32 + 1, state: TurnState::Sending, left: forever };
    for (name, held) in [
        ("holds its turn", held_back(hoards)),
        ("waits although it is its turn", held_back(waits)),
        ("asks again and again", held_back(asks_again)),
    ] {
        assert!(held <= 0.10, "a member that {name}: {held}");
    }
}

#[test]
fn lost_messages_cost_some_order_and_no_transfer() {
    for lost in [2, 3, 5] {
        let mut hall = Hall::new(20);
        for station in 0..20 {
            hall.begin(station, SIZE);
        }
        let end = hall.ether.now + seconds(90);
        let mut count = 0;
        while hall.ether.now < end && !hall.left.is_empty() {
            count += 1;
            let at = count;
            hall.step(move |from, to| (from * 31 + to * 17 + at * 7) % lost != 0);
        }
        let times = hall.times();
        assert_eq!(times.len(), 20, "one of {lost} lost");
        let mean = times.iter().sum::<f64>() / 20.0;
        assert!(mean <= 60.0 * 0.85, "one of {lost} lost: {mean}");
    }
}

#[test]
fn a_long_transfer_lets_others_in_after_its_turn() {
    let mut hall = Hall::new(3);
    hall.begin(0, SIZE * 100); // takes 300 s alone
    hall.run(seconds(5), everybody);
    hall.begin(1, SIZE);
    hall.run(seconds(70), everybody);
    assert!(hall.ended.contains_key(&1), "{:?}", hall.sending());
    let of = |controller: &Controller| controller.turn().map(|turn| turn.state);
    assert_eq!(of(&hall.ether.stations[0]), Some(TurnState::Sending));
}
