//! Members announce what all have to hold in common, and name the members that hold something else.
//! Agents of before this announcement read the messages, and are named as such.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ether;
mod former;

use ether::{Ether, KEY, config, seconds, sending, start};
use wakeai_control::common::{CommonLaw, PeerLaw};
use wakeai_control::presence::{Codec, Presence};
use wakeai_control::{
    AirtimeKnobs, Announcement, Connection, ControllerConfig, Event, LawConfig, PeerChange,
    StationId, Traffic,
};
use wakeai_units::{Bytes, Duration, Instant, Rate};

/// A station's configuration under `airtime` with this longest target.
fn holding(id: u64, queue_max_ms: u64) -> ControllerConfig {
    let knobs =
        AirtimeKnobs { queue_max: Duration::from_millis(queue_max_ms), ..AirtimeKnobs::default() };
    let config = config(id);
    let common_law = Some(CommonLaw::new(Some(&LawConfig::Airtime(knobs)), &config));
    ControllerConfig { common_law, ..config }
}

fn ether(configs: impl IntoIterator<Item = ControllerConfig>) -> Ether {
    Ether::new(configs.into_iter().map(|config| start(Instant::ZERO, &config, 1)).collect())
}

/// What a station has narrated of the laws of its peers.
fn narrated(ether: &mut Ether, station: usize) -> Vec<String> {
    let station = &mut ether.stations[station];
    let events = std::iter::from_fn(|| station.poll_event());
    let of_laws = events.filter_map(|event| match event {
        Event::Peer {
            change: change @ (PeerChange::HoldsOther { .. } | PeerChange::HoldsSame(_)),
            ..
        } => Some(change.to_string()),
        _ => None,
    });
    of_laws.collect()
}

#[test]
fn a_member_with_another_parameter_is_named_once_by_each_other_member() {
    let mut ether = ether([holding(0, 75), holding(1, 75), holding(2, 50)]);
    ether.run(seconds(60));
    let other =
        "peer 0000000000000002 holds another law: law.queue_max is 50ms there and 75ms here";
    assert_eq!(narrated(&mut ether, 0), [other]);
    assert_eq!(narrated(&mut ether, 1), [other]);
    assert_eq!(narrated(&mut ether, 2).len(), 2, "it names both others");
}

#[test]
fn members_that_hold_the_same_name_nobody() {
    let mut ether = ether((0..6).map(|id| holding(id, 75)));
    ether.run(seconds(60));
    for station in 0..6 {
        assert!(narrated(&mut ether, station).is_empty());
        let mut peers = ether.stations[station].peers();
        assert!(peers.all(|peer| peer.law == PeerLaw::Holds(holding(1, 75).common_law.unwrap())));
    }
}

#[test]
fn a_member_that_is_configured_anew_holds_the_same_again() {
    let mut ether = ether([holding(0, 75), holding(1, 50)]);
    ether.run(seconds(5));
    assert_eq!(narrated(&mut ether, 0).len(), 1);
    ether.stations[1] = start(ether.now, &holding(1, 75), 2);
    ether.run(seconds(5));
    assert_eq!(narrated(&mut ether, 0), ["peer 0000000000000001 holds the same law now"]);
}

#[test]
fn an_agent_of_before_the_announcement_is_named() {
    let mut ether = ether([holding(0, 75), config(1)]);
    ether.run(seconds(10));
    let earlier =
        "peer 0000000000000001 announces no law: its agent is of an earlier version".to_owned();
    assert_eq!(narrated(&mut ether, 0), [earlier]);
    assert!(narrated(&mut ether, 1).is_empty(), "that agent compares nothing");
}

#[test]
fn an_earlier_agent_among_many_is_named_although_its_messages_are_full_of_answers() {
    let earlier = (0..4).map(config);
    let mut ether = ether(earlier.chain((4..60).map(|id| holding(id, 75))));
    ether.run(seconds(240));
    for station in 4..60 {
        let named = narrated(&mut ether, station);
        assert_eq!(named.len(), 4, "{station}: {named:?}");
    }
}

#[test]
fn sixty_stations_know_each_other_s_laws_within_four_minutes() {
    let mut ether = ether((0..60).map(|id| holding(id, 75)));
    ether.run(seconds(240));
    for station in &ether.stations {
        let known = station.peers().filter(|peer| peer.law != PeerLaw::Unknown).count();
        assert_eq!(known, 59);
    }
}

/// Datagrams of a fleet in which one station sends, one receives, one waits for its turn, and all are new.
fn datagrams() -> Vec<Vec<u8>> {
    let mut configs: Vec<ControllerConfig> = (0..24).map(|id| holding(id, 75)).collect();
    // A law without parameters has no empty slot, either.
    configs[5].common_law = Some(CommonLaw::new(None, &configs[5]));
    let mut ether = ether(configs);
    ether.own[0] = (Some(Rate::from_mbps(65)), vec![sending(20, Duration::from_millis(26))]);
    ether.stations[1].transfer(Instant::ZERO, Some(Bytes::new(9_000_000)));
    ether.stations[2].reserve(Some(Rate::from_mbps(5)));
    let mut receives = Connection { id: 9, ..Connection::default() };
    for _ in 0..60 {
        // The rate alone and the RTT stay unknown.
        receives.receiving.mss = Bytes::new(1448);
        receives.receiving.received += 100 * 1448;
        ether.own[3] = (Some(Rate::from_mbps(65)), vec![receives]);
        ether.run(Duration::from_millis(500));
    }
    ether.recorded.into_iter().map(|(_, datagram)| datagram).collect()
}

#[test]
fn a_former_reader_reads_each_message_with_the_same_figures_and_answers() {
    let codec = Codec::new(&KEY);
    let (mut with_law, mut with_both) = (0, 0);
    let (mut with_down, mut with_law_and_down) = (0, 0);
    for datagram in datagrams() {
        let now = codec.decode(&datagram).unwrap();
        let former = former::decode(&KEY, &datagram).expect("the former reader refuses nothing");
        let down = Traffic::default();
        assert_eq!(former.announced, Announcement { down, ..now.announced });
        let answers = former.answers.iter().filter(|answer| now.answers.contains(answer));
        assert_eq!(answers.count(), now.answers.len(), "all answers are there, in their places");
        let places = former.answers.len() - now.answers.len();
        let of_down = if now.announced.down == down { 0 } else { 4 };
        assert_eq!(places, of_down + if now.law.is_some() { 3 } else { 0 });
        with_down += u32::from(of_down > 0);
        with_law_and_down += u32::from(of_down > 0 && now.law.is_some());
        with_law += u32::from(now.law.is_some());
        with_both += u32::from(now.law.is_some() && now.announced.turn.is_some());
    }
    assert!(with_law > 50 && with_both > 0, "{with_law}, {with_both}");
    assert!(with_down > 3 && with_law_and_down > 0, "{with_down}, {with_law_and_down}");
}

#[test]
fn messages_of_a_former_writer_are_read_and_have_no_law() {
    let datagrams = captured(include_str!("captured/presence-former.hex"));
    let read = |datagram: &Vec<u8>| Codec::new(&KEY).decode(datagram).unwrap();
    let messages: Vec<Presence> = datagrams.iter().map(read).collect();
    assert!(messages.iter().all(|message| message.law.is_none()));
    let sender = messages.iter().rfind(|of| of.station == StationId(0)).unwrap();
    assert!(sender.announced.up.active);
    assert_eq!(sender.announced.link_rate, Some(Rate::from_mbps(65)));
    assert_eq!(sender.announced.up.min_rtt, Some(Duration::from_millis(26)));
    assert!(messages.iter().any(|message| message.answers.len() == 2));
}

/// The datagrams of a file with one of them on each line.
fn captured(text: &str) -> Vec<Vec<u8>> {
    let byte = |line: &str, at: usize| u8::from_str_radix(&line[2 * at..2 * at + 2], 16).unwrap();
    let bytes = |line: &str| (0..line.len() / 2).map(|at| byte(line, at)).collect();
    text.lines().map(bytes).collect()
}

#[test]
fn captured_messages_of_this_writer_read_as_they_did() {
    // They were captured when the formula had version 2.
    let held = holding(0, 75).common_law.map(|law| CommonLaw { version: 2, ..law });
    let datagrams = captured(include_str!("captured/presence-law.hex"));
    assert_eq!(datagrams.len(), 4);
    for datagram in datagrams {
        assert_eq!(Codec::new(&KEY).decode(&datagram).unwrap().law, held);
        assert!(former::decode(&KEY, &datagram).is_some());
    }
}
