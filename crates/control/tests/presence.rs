//! Stations of a group find each other, and other stations are kept out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ether;

use ether::{Ether, config, shown, start, station};
use wakeai_control::presence::{BootId, Challenge, Codec, Presence, PresenceCounters};
use wakeai_control::{
    Announcement, Clocks, Controller, ControllerConfig, Event, PeerChange, StationId,
};
use wakeai_units::{Duration, Instant, Rate};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn peers(controller: &Controller) -> Vec<u64> {
    controller.peers().map(|peer| peer.station.0).collect()
}

/// Asserts that `datagrams` change nothing in `victim` but the counter that `counter` picks.
fn only_counts(
    victim: &mut Controller,
    now: Instant,
    datagrams: &[Vec<u8>],
    counter: fn(&mut PresenceCounters) -> &mut u64,
) {
    while victim.poll_event().is_some() {}
    victim.handle_datagram(now, &[]); // so that both states are of the same time
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
fn crafted(station: u64, boot: u8, sequence: u64, answers: Vec<Challenge>) -> Presence {
    Presence {
        bssid: ether::BSSID,
        station: StationId(station),
        boot: BootId([boot; 16]),
        sequence,
        interval: seconds(1),
        announced: Announcement {
            sending: true,
            delivery_rate: Rate::from_mbps(1),
            ..Announcement::default()
        },
        unix_time: None,
        challenge: Challenge(7),
        answers,
    }
}

/// The challenge that a station sends, as a member of its group hears it.
fn challenge_of(victim: &mut Controller) -> (Instant, Challenge) {
    loop {
        let now = victim.next_timeout().unwrap();
        if victim.next_tick() <= now {
            victim.handle_tick(now, None, &[]);
        }
        if let Some(datagram) = victim.poll_transmit(now) {
            return (now, Codec::new(&ether::KEY).decode(&datagram).unwrap().challenge);
        }
    }
}

#[test]
fn six_stations_know_each_other_within_two_seconds() {
    let mut ether = Ether::new((0..6).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(seconds(2));
    for (index, station) in ether.stations.iter().enumerate() {
        let others: Vec<u64> = (0..6).filter(|&id| id != index as u64).collect();
        assert_eq!(peers(station), others);
        assert!(station.counters().own > 0, "it receives its own messages");
    }
}

#[test]
fn forty_stations_know_each_other_within_a_minute() {
    let mut ether = Ether::new((0..40).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(seconds(60));
    for station in &ether.stations {
        assert_eq!(peers(station).len(), 39);
    }
}

#[test]
fn a_replayed_message_changes_nothing() {
    let mut ether = Ether::new((0..3).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(seconds(10));
    let now = ether.now;
    let foreign: Vec<Vec<u8>> =
        ether.recorded.iter().filter(|(from, _)| *from != 0).map(|(_, d)| d.clone()).collect();
    only_counts(&mut ether.stations[0], now, &foreign, |c| &mut c.replayed);
}

#[test]
fn the_messages_of_an_earlier_boot_are_not_taken_for_live() {
    let mut ether = Ether::new((0..2).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(seconds(10));
    let earlier: Vec<Vec<u8>> =
        ether.recorded.iter().filter(|(from, _)| *from == 1).map(|(_, d)| d.clone()).collect();
    // Messages of the earlier boot that never arrived are refused, too.
    let mut twin =
        Ether::new(vec![std::mem::replace(&mut ether.stations[1], station(ether.now, 1, 2))]);
    twin.now = ether.now;
    twin.run(seconds(10));
    let unheard: Vec<Vec<u8>> = twin.recorded.into_iter().map(|(_, datagram)| datagram).collect();

    ether.run(seconds(5));
    assert_eq!(peers(&ether.stations[0]), [1], "the new boot is live");
    let restarts = std::iter::from_fn(|| ether.stations[0].poll_event())
        .filter(|event| matches!(event, Event::Peer { change: PeerChange::Restarted(_), .. }));
    assert_eq!(restarts.count(), 1);
    let now = ether.now;
    only_counts(&mut ether.stations[0], now, &earlier, |c| &mut c.replayed);
    only_counts(&mut ether.stations[0], now, &unheard, |c| &mut c.replayed);
}

#[test]
fn a_recording_from_before_the_start_is_refused() {
    let mut ether = Ether::new((0..3).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(seconds(10));
    let recorded: Vec<Vec<u8>> =
        ether.recorded.iter().filter(|(from, _)| *from != 0).map(|(_, d)| d.clone()).collect();
    let mut newcomer = station(ether.now, 0, 2);
    only_counts(&mut newcomer, ether.now, &recorded, |c| &mut c.unproven);
    newcomer.handle_tick(ether.now, None, &[]);
    assert_eq!(newcomer.last().0.senders, 1);
}

#[test]
fn a_recording_does_not_bring_back_a_peer_that_left() {
    let mut ether = Ether::new((0..2).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(seconds(10));
    ether.run_where(seconds(60), |from, to| from == to); // out of reach of each other
    assert!(peers(&ether.stations[0]).is_empty());
    let unheard: Vec<Vec<u8>> =
        ether.recorded.iter().filter(|(from, _)| *from == 1).map(|(_, d)| d.clone()).collect();
    let now = ether.now;
    only_counts(&mut ether.stations[0], now, &unheard, |c| &mut c.replayed);
    ether.run(seconds(70));
    assert_eq!(peers(&ether.stations[0]), [1]);
}

#[test]
fn three_lost_messages_in_a_row_do_not_cost_a_new_proof() {
    let mut ether = Ether::new((0..2).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(seconds(10));
    ether.run_where(seconds(3), |from, _| from == 0);
    assert!(peers(&ether.stations[0]).is_empty(), "three intervals are over");
    let unproven = ether.stations[0].counters().unproven;
    ether.run(seconds(2));
    assert_eq!(peers(&ether.stations[0]), [1]);
    assert_eq!(ether.stations[0].counters().unproven, unproven);
}

#[test]
fn foreign_and_damaged_messages_are_counted_by_kind() {
    let mut ether = Ether::new((0..2).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(seconds(5));
    let now = ether.now;
    let good = ether.recorded.iter().rfind(|(from, _)| *from == 1).unwrap().1.clone();
    let victim = &mut ether.stations[0];
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] ^= value;
        vec![bytes]
    };
    only_counts(victim, now, &[good[..100].to_vec(), vec![], vec![0; 2000]], |c| &mut c.malformed);
    only_counts(victim, now, &with(0, 1), |c| &mut c.malformed);
    only_counts(victim, now, &with(4, 2), |c| &mut c.wrong_version);
    only_counts(victim, now, &with(50, 1), |c| &mut c.forged);
    only_counts(victim, now, &with(good.len() - 1, 1), |c| &mut c.forged);

    let codec = Codec::new(&ether::KEY);
    let message = crafted(9, 9, 1, Vec::new());
    let stranger = Codec::new(&[1; 32]).encode(&message);
    only_counts(victim, now, &[stranger], |c| &mut c.forged);
    let elsewhere = codec.encode(&Presence { bssid: [9; 6], ..message.clone() });
    only_counts(victim, now, &[elsewhere], |c| &mut c.wrong_bssid);
    let namesake = codec.encode(&Presence { station: StationId(0), ..message });
    only_counts(victim, now, &[namesake], |c| &mut c.duplicate_id);
}

#[test]
fn ten_thousand_forged_messages_a_second_are_only_counted() {
    let mut ether = Ether::new((0..2).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(seconds(5));
    let mut victim = ether.stations.remove(0);
    let mut twin = Ether::new((0..2).map(|id| station(Instant::ZERO, id, 1)).collect());
    twin.run(seconds(5));
    let mut twin = twin.stations.remove(0);

    let genuine = ether.recorded.iter().rfind(|(from, _)| *from == 1).unwrap().1.clone();
    let mut forged = genuine.clone();
    let start = ether.now;
    for count in 0_u64..600_000 {
        let now = start + Duration::from_micros(100) * count;
        forged[44..52].copy_from_slice(&count.to_be_bytes());
        victim.handle_datagram(now, &forged);
        let ticks = victim.next_tick() <= now;
        for controller in [&mut victim, &mut twin] {
            if ticks {
                controller.handle_tick(now, None, &[]);
            }
        }
        assert_eq!(victim.poll_transmit(now), twin.poll_transmit(now));
        assert_eq!(victim.next_timeout(), twin.next_timeout());
    }
    let mut expected = *twin.counters();
    expected.forged = 600_000;
    assert_eq!(*victim.counters(), expected);
    assert_eq!(shown(&victim), shown(&twin));
    let events = |controller: &mut Controller| -> Vec<Event> {
        std::iter::from_fn(|| controller.poll_event()).collect()
    };
    assert_eq!(events(&mut victim), events(&mut twin));
}

#[test]
fn the_table_holds_1024_peers_and_counts_the_others() {
    let codec = Codec::new(&ether::KEY);
    let mut victim = station(Instant::ZERO, 0, 1);
    let (now, challenge) = challenge_of(&mut victim);
    for id in 1..=3_000 {
        let message = crafted(id, 2, 1, vec![challenge]);
        victim.handle_datagram(now, &codec.encode(&message));
    }
    assert_eq!(victim.peers().count(), 1024);
    assert_eq!(victim.counters().accepted, 1024);
    assert_eq!(victim.counters().table_full, 3_000 - 1024);
}

#[test]
fn replayed_messages_of_old_boots_do_not_keep_a_newcomer_out() {
    let mut ether = Ether::new((0..3).map(|id| station(Instant::ZERO, id, 1)).collect());
    let codec = Codec::new(&ether::KEY);
    // Sixteen boot ids that are sorted before all others, with fifty challenges each.
    let recorded: Vec<Vec<u8>> = (1..=50)
        .flat_map(|sequence| (0..16).map(move |boot| (boot, sequence)))
        .map(|(boot, sequence)| {
            let challenge = Challenge(u64::from(boot) * 1_000 + sequence);
            let message = crafted(100 + u64::from(boot), 0, sequence, Vec::new());
            let boot = BootId(std::array::from_fn(|at| if at == 15 { boot } else { 0 }));
            codec.encode(&Presence { boot, challenge, ..message })
        })
        .collect();
    let replay = |ether: &mut Ether, span: u64| {
        for _ in 0..span * 10 {
            ether.run(Duration::from_millis(100));
            for station in &mut ether.stations {
                for datagram in &recorded {
                    station.handle_datagram(ether.now, datagram);
                }
            }
        }
    };
    replay(&mut ether, 5);
    ether.stations.push(station(ether.now, 7, 1));
    ether.own.push((None, Vec::new()));
    replay(&mut ether, 10);
    for (station, others) in ether.stations.iter().zip([[1, 2, 7], [0, 2, 7], [0, 1, 7], [0, 1, 2]])
    {
        assert_eq!(peers(station), others);
    }
}

#[test]
fn a_long_interval_does_not_keep_a_peer_that_has_gone() {
    let codec = Codec::new(&ether::KEY);
    let mut victim = station(Instant::ZERO, 0, 1);
    let (now, challenge) = challenge_of(&mut victim);
    let message = Presence { interval: seconds(600), ..crafted(1, 1, 1, vec![challenge]) };
    victim.handle_datagram(now, &codec.encode(&message));
    assert_eq!(peers(&victim), [1]);
    victim.handle_tick(now + seconds(60), None, &[]);
    assert_eq!(peers(&victim), [0_u64; 0]);
}

#[test]
fn a_table_of_invented_stations_is_empty_after_five_minutes() {
    let codec = Codec::new(&ether::KEY);
    let mut victim = station(Instant::ZERO, 0, 1);
    let (now, challenge) = challenge_of(&mut victim);
    let invented = |id| Presence { interval: seconds(600), ..crafted(id, 2, 1, vec![challenge]) };
    for id in 1..=2_000 {
        victim.handle_datagram(now, &codec.encode(&invented(id)));
    }
    assert_eq!(victim.peers().count(), 1024);
    victim.handle_tick(now + seconds(301), None, &[]);
    assert_eq!(victim.peers().count(), 0);
    let (now, challenge) = challenge_of(&mut victim);
    victim.handle_datagram(now, &codec.encode(&crafted(5_000, 3, 1, vec![challenge])));
    assert_eq!(peers(&victim), [5_000]);
}

#[test]
fn where_clocks_agree_the_time_is_proof() {
    let synchronised = |id, offset: u64| {
        let unix_at_epoch = seconds(1_700_000_000 + offset);
        let clocks = Clocks::Synchronised { unix_at_epoch, tolerance: seconds(2) };
        ControllerConfig { clocks, ..config(id) }
    };
    let stations = vec![
        start(Instant::ZERO, synchronised(0, 0), 1),
        start(Instant::ZERO, synchronised(1, 1), 1),
        start(Instant::ZERO, synchronised(2, 60), 1), // its clock is a minute ahead
        start(Instant::ZERO, config(3), 1),           // it does not send the time
    ];
    let mut ether = Ether::new(stations);
    ether.run(Duration::from_millis(510)); // each station has sent once, and none has answered
    assert_eq!(peers(&ether.stations[0]), [1]);
    assert_eq!(peers(&ether.stations[1]), [0]);
    ether.run(seconds(10));
    assert_eq!(peers(&ether.stations[0]), [1], "an answer does not replace the right time");
    assert!(ether.stations[0].counters().stale > 10);

    let recorded: Vec<Vec<u8>> =
        ether.recorded.iter().filter(|(from, _)| *from == 1).map(|(_, d)| d.clone()).collect();
    let later = ether.now + seconds(10);
    let mut newcomer = start(later, synchronised(5, 0), 1);
    only_counts(&mut newcomer, later, &recorded, |c| &mut c.stale);
}

#[test]
fn a_clock_that_is_set_right_while_it_runs_is_believed() {
    let synchronised = |id, offset: u64| {
        let unix_at_epoch = seconds(1_700_000_000 + offset);
        let clocks = Clocks::Synchronised { unix_at_epoch, tolerance: seconds(2) };
        start(Instant::ZERO, ControllerConfig { clocks, ..config(id) }, 1)
    };
    let mut ether = Ether::new(vec![synchronised(0, 0), synchronised(1, 0), synchronised(2, 60)]);
    ether.run(seconds(10));
    assert_eq!((peers(&ether.stations[2]), peers(&ether.stations[0])), (vec![], vec![1]));
    ether.stations[2].set_unix_at_epoch(seconds(1_700_000_000));
    ether.run(seconds(10));
    assert_eq!((peers(&ether.stations[2]), peers(&ether.stations[0])), (vec![0, 1], vec![1, 2]));
}

#[test]
fn a_fleet_changes_its_key_without_losing_a_peer() {
    let (old, new) = (ether::KEY, [77; 32]);
    let mut ether = Ether::new((0..3).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(seconds(5));
    // In each step one station after the other gets its keys, as an operator's tool would do it.
    for (signing, accepted) in [(old, vec![new]), (new, vec![old]), (new, vec![])] {
        for id in 0..3 {
            ether.stations[id].set_keys(&signing, &accepted);
            ether.run(seconds(20));
        }
    }
    for station in &mut ether.stations {
        assert_eq!(peers(station).len(), 2);
        assert_eq!(station.counters().forged, 0);
        let events: Vec<Event> = std::iter::from_fn(|| station.poll_event()).collect();
        let left = |event: &Event| matches!(event, Event::Peer { change: PeerChange::Left(_), .. });
        assert!(!events.iter().any(left), "{events:?}");
    }
    let before = Codec::new(&old).encode(&crafted(9, 9, 1, Vec::new()));
    let now = ether.now;
    only_counts(&mut ether.stations[0], now, &[before], |c| &mut c.forged);
}

#[test]
fn the_law_sees_what_the_peers_announce() {
    let codec = Codec::new(&ether::KEY);
    let mut victim = station(Instant::ZERO, 0, 1);
    let (now, challenge) = challenge_of(&mut victim);
    let says = Announcement {
        sending: true,
        delivery_rate: Rate::from_mbps(12),
        max_rate: Some(Rate::from_mbps(48)),
        link_rate: Some(Rate::from_mbps(65)),
        min_rtt: Some(Duration::from_millis(512)),
        growth: Duration::from_millis(40),
        reservation: None,
    };
    let quiet = Announcement::default();
    let quiet = Presence { announced: quiet, ..crafted(2, 2, 1, vec![challenge]) };
    let loud = Presence { announced: says, ..crafted(1, 1, 1, vec![challenge]) };
    victim.handle_datagram(now, &codec.encode(&quiet));
    victim.handle_datagram(now, &codec.encode(&loud));
    victim.handle_tick(victim.next_tick(), None, &[]);
    let (seen, _) = victim.last();
    assert_eq!((seen.senders, seen.peers.len()), (1, 2));
    assert_eq!(seen.total_rate, Rate::from_mbps(12));
    assert_eq!(seen.peers[0].announced, says);
}
