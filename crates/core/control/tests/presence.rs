//! Stations of a group find each other, and ignore stations outside the group.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ether;

use ether::{
    Ether, challenge_of, config, crafted, only_counts, peers, seconds, sending, shown, start,
    station,
};
use wakeai_control::presence::{Codec, Presence};
use wakeai_control::{
    Announcement, Clocks, Controller, ControllerConfig, Event, PeerChange, StationId, Traffic,
    Turn, TurnState,
};
use wakeai_units::{Duration, Instant, Rate};

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
fn after_a_suspend_a_message_before_the_first_tick_does_not_renew_a_silent_peer() {
    let codec = Codec::new(&ether::KEY);
    let mut victim = station(Instant::ZERO, 0, 1);
    let (now, challenge) = challenge_of(&mut victim);
    let hear = |victim: &mut Controller, now, sequence, challenge| {
        victim.handle_datagram(now, &codec.encode(&crafted(1, 1, sequence, vec![challenge])));
        (victim.counters().accepted, victim.counters().replayed)
    };
    assert_eq!(hear(&mut victim, now, 1, challenge), (1, 0));
    let now = now + seconds(12);
    assert_eq!(hear(&mut victim, now, 2, challenge), (2, 0), "twelve intervals are not over");
    let now = now + seconds(12) + Duration::from_nanos(1);
    assert_eq!(
        hear(&mut victim, now, 3, challenge),
        (2, 1),
        "its answer is to an earlier challenge"
    );
    assert_eq!(peers(&victim), [0_u64; 0]);
    victim.handle_tick(now, None, &[]);
    let later = codec.decode(&victim.poll_transmit(now).unwrap()).unwrap().challenge;
    assert_eq!(hear(&mut victim, now, 4, later), (3, 1));
    assert_eq!(peers(&victim), [1]);
    let events = std::iter::from_fn(|| victim.poll_event());
    let changes: Vec<PeerChange> = events
        .filter_map(|event| match event {
            Event::Peer { change, .. } => Some(change),
            _ => None,
        })
        .collect();
    let (left, joined) = (PeerChange::Left(StationId(1)), PeerChange::Joined(StationId(1)));
    assert_eq!(changes, [joined, left, joined]);
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
fn where_clocks_agree_the_time_is_proof() {
    let synchronised = |id, offset: u64| {
        let unix_at_epoch = seconds(1_700_000_000 + offset);
        let clocks = Clocks::Synchronised { unix_at_epoch, tolerance: seconds(2) };
        ControllerConfig { clocks, ..config(id) }
    };
    let stations = vec![
        start(Instant::ZERO, &synchronised(0, 0), 1),
        start(Instant::ZERO, &synchronised(1, 1), 1),
        start(Instant::ZERO, &synchronised(2, 60), 1), // the clock is a minute ahead
        start(Instant::ZERO, &config(3), 1),           // no time in the messages
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
    let mut newcomer = start(later, &synchronised(5, 0), 1);
    only_counts(&mut newcomer, later, &recorded, |c| &mut c.stale);
}

#[test]
fn a_clock_that_is_set_right_while_it_runs_is_believed() {
    let synchronised = |id, offset: u64| {
        let unix_at_epoch = seconds(1_700_000_000 + offset);
        let clocks = Clocks::Synchronised { unix_at_epoch, tolerance: seconds(2) };
        start(Instant::ZERO, &ControllerConfig { clocks, ..config(id) }, 1)
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
    // In each step the stations get their keys one after the other, as from an operator's tool.
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
        up: Traffic {
            active: true,
            rate: Rate::from_mbps(12),
            max_rate: Some(Rate::from_mbps(48)),
            min_rtt: Some(Duration::from_millis(512)),
            growth: Duration::from_millis(40),
        },
        down: Traffic { rate: Rate::from_mbps(3), ..Traffic::default() },
        link_rate: Some(Rate::from_mbps(65)),
        reservation: None,
        turn: Some(Turn { ticket: 3, state: TurnState::Waiting, left: Duration::from_secs(9) }),
    };
    let quiet = Announcement::default();
    let quiet = Presence { announced: quiet, ..crafted(2, 2, 1, vec![challenge]) };
    let loud = Presence { announced: says, ..crafted(1, 1, 1, vec![challenge]) };
    victim.handle_datagram(now, &codec.encode(&quiet));
    victim.handle_datagram(now, &codec.encode(&loud));
    victim.handle_tick(victim.next_tick(), None, &[]);
    let seen = victim.observation();
    assert_eq!((seen.senders, seen.live_peers, seen.peers.len()), (1, 2, 1));
    assert_eq!(seen.total_rate, Rate::from_mbps(12), "it receives no more");
    assert_eq!(seen.peers[0].announced, says);
}

#[test]
fn a_peer_that_only_receives_counts_as_one_that_uses_the_air() {
    let codec = Codec::new(&ether::KEY);
    let mut victim = station(Instant::ZERO, 0, 1);
    let (now, challenge) = challenge_of(&mut victim);
    let down = Traffic { active: true, rate: Rate::from_mbps(9), ..Traffic::default() };
    for (id, down) in [(1, down), (2, Traffic::default())] {
        let announced = Announcement { down, ..crafted(id, 9, 1, Vec::new()).announced };
        let message = Presence { announced, ..crafted(id, id as u8, 1, vec![challenge]) };
        victim.handle_datagram(now, &codec.encode(&message));
    }
    let only = Announcement { down, ..Announcement::default() };
    let message = Presence { announced: only, ..crafted(3, 3, 1, vec![challenge]) };
    victim.handle_datagram(now, &codec.encode(&message));
    victim.handle_tick(victim.next_tick(), None, &[]);
    let seen = victim.observation();
    assert_eq!(
        seen.senders, 3,
        "two that send, one of them receives, too, and one that only receives"
    );
    assert_eq!(seen.total_rate, Rate::from_mbps(2 + 18));
}

#[test]
fn messages_that_are_read_together_before_the_next_tick_have_the_same_effect() {
    let mut ether = Ether::new((0..4).map(|id| station(Instant::ZERO, id, 1)).collect());
    for own in &mut ether.own {
        *own = (Some(Rate::from_mbps(65)), vec![sending(20, Duration::from_millis(40))]);
    }
    let (mut prompt, mut late) = (station(Instant::ZERO, 9, 1), station(Instant::ZERO, 9, 1));
    let (mut inbox, mut heard) = (Vec::new(), 0);
    for _ in 0..1_000 {
        ether.run(Duration::from_millis(37));
        let now = ether.now;
        for (_, datagram) in &ether.recorded[heard..] {
            prompt.handle_datagram(now, datagram);
            inbox.push((now, late.open(datagram)));
        }
        heard = ether.recorded.len();
        if late.next_timeout().is_some_and(|due| due <= now) {
            assert!(inbox.iter().all(|(_, opened)| opened.can_wait()));
            late.handle_opened(inbox.iter().map(|(at, opened)| (*at, opened)));
            inbox.clear();
            if late.next_tick() <= now {
                let connections = [sending(20, Duration::from_millis(40))];
                let both = [&mut prompt, &mut late];
                let [one, other] = both.map(|one| one.handle_tick(now, None, &connections));
                assert_eq!(one.sockets, other.sockets);
            }
            let sent = late.poll_transmit(now);
            assert_eq!(prompt.poll_transmit(now), sent);
            assert_eq!(shown(&prompt), shown(&late));
            if let Some(datagram) = sent {
                ether.stations.iter_mut().for_each(|one| one.handle_datagram(now, &datagram));
            }
        }
        assert_eq!(prompt.next_timeout(), late.next_timeout());
    }
    assert_eq!(peers(&prompt), [0, 1, 2, 3]);
}

#[test]
fn ticks_that_can_wait_have_the_same_effect_when_they_are_made_late() {
    let mut ether = Ether::new((0..4).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.own[0] = (Some(Rate::from_mbps(65)), vec![sending(20, Duration::from_millis(40))]);
    let (mut prompt, mut late) = (station(Instant::ZERO, 9, 1), station(Instant::ZERO, 9, 1));
    let (mut inbox, mut heard, mut waited) = (Vec::new(), 0, 0);
    for _ in 0..1_000 {
        ether.run(Duration::from_millis(37));
        let now = ether.now;
        while prompt.next_tick() < now {
            prompt.handle_tick(prompt.next_tick(), None, &[]);
        }
        for (_, datagram) in &ether.recorded[heard..] {
            prompt.handle_datagram(now, datagram);
            inbox.push((now, late.open(datagram)));
        }
        heard = ether.recorded.len();
        assert!(late.ticks_can_wait());
        assert_eq!(prompt.next_message(), late.next_message());
        if late.next_message() <= now {
            for (at, opened) in inbox.drain(..) {
                while late.next_tick() < at {
                    waited += 1;
                    late.handle_tick(late.next_tick(), None, &[]);
                }
                late.handle_opened([(at, &opened)]);
            }
            while late.next_tick() < now {
                late.handle_tick(late.next_tick(), None, &[]);
            }
            let sent = late.poll_transmit(now);
            assert_eq!(prompt.poll_transmit(now), sent);
            assert_eq!(shown(&prompt), shown(&late));
            if let Some(datagram) = sent {
                ether.stations.iter_mut().for_each(|one| one.handle_datagram(now, &datagram));
            }
        }
    }
    assert!(waited > 50, "{waited}");
    assert_eq!(peers(&prompt), [0, 1, 2, 3]);
    late.handle_tick(late.next_tick(), None, &[sending(20, Duration::from_millis(40))]);
    assert!(!late.ticks_can_wait());
}
