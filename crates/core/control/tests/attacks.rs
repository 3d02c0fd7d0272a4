//! Attacks on presence. Each has a possible effect, and a limit of this effect. In the first seven
//! attacks the attacker does not have the group key. In the others the attacker is a member of the
//! group. `docs/security.md` lists the attacks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ether;

use ether::{
    Ether, challenge_of, config, crafted, only_counts, peers, seconds, shown, start, station,
};
use wakeai_control::presence::{
    ANSWER_LEN, BootId, Challenge, Codec, FleetCodec, FleetContent, FleetMessage, MESSAGE_LEN,
    Presence, QUERY_LEN, airtime_of,
};
use wakeai_control::{
    Controller, ControllerConfig, Event, PeerChange, Reservation, ReservationLimit, Share,
    StationId,
};
use wakeai_units::{Duration, Instant, Rate};

/// Makes a test of each attack, and `ATTACKS`, the table of all attacks.
macro_rules! attacks {
    ($($name:ident, $effect:literal, $limit:literal => $attack:block)*) => {
        /// The name, the possible effect and the limit of each attack.
        const ATTACKS: &[(&str, &str, &str)] = &[$((stringify!($name), $effect, $limit)),*];
        $(#[test] fn $name() $attack)*
    };
}

/// The share of the airtime that the station left free at its last tick (a decision, one every
/// 0.5 s).
fn yields(station: &mut Controller) -> Option<Share> {
    let events = std::iter::from_fn(|| station.poll_event());
    let decisions = events.filter_map(|event| match event {
        Event::Decision(decision) => Some(decision),
        _ => None,
    });
    match decisions.last()?.reservation {
        Some(ReservationLimit::Yields { claimed, .. }) => Some(claimed),
        _ => None,
    }
}

#[test]
fn the_page_on_security_lists_each_attack() {
    let page = include_str!("../../../../docs/security.md");
    for (name, effect, limit) in ATTACKS {
        let row = page.lines().find(|line| line.contains(&format!("`{name}`")));
        let row = row.unwrap_or_else(|| panic!("no row has {name}"));
        assert!(row.contains(effect) && row.contains(limit), "{name}: {row}");
    }
}

attacks! {
    ten_thousand_forged_messages_a_second_are_only_counted,
    "change what a station believes",
    "a forged message is only counted" => {
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

    a_replayed_message_changes_nothing,
    "keep old figures in use",
    "a message counts once per boot" => {
        let mut ether = Ether::new((0..3).map(|id| station(Instant::ZERO, id, 1)).collect());
        ether.run(seconds(10));
        let now = ether.now;
        let foreign: Vec<Vec<u8>> =
            ether.recorded.iter().filter(|(from, _)| *from != 0).map(|(_, d)| d.clone()).collect();
        only_counts(&mut ether.stations[0], now, &foreign, |c| &mut c.replayed);
    }

    a_recording_from_before_the_start_is_refused,
    "show a newcomer stations that are gone",
    "only an answer to its challenge proves that a station is live" => {
        let mut ether = Ether::new((0..3).map(|id| station(Instant::ZERO, id, 1)).collect());
        ether.run(seconds(10));
        let recorded: Vec<Vec<u8>> =
            ether.recorded.iter().filter(|(from, _)| *from != 0).map(|(_, d)| d.clone()).collect();
        let mut newcomer = station(ether.now, 0, 2);
        only_counts(&mut newcomer, ether.now, &recorded, |c| &mut c.unproven);
        newcomer.handle_tick(ether.now, None, &[]);
        assert_eq!(newcomer.observation().senders, 1);
    }

    a_recording_of_an_earlier_boot_is_not_taken_for_live,
    "replace a station's figures by old ones",
    "a boot that was replaced has to prove again that it is live" => {
        let mut ether = Ether::new((0..2).map(|id| station(Instant::ZERO, id, 1)).collect());
        ether.run(seconds(10));
        let earlier: Vec<Vec<u8>> =
            ether.recorded.iter().filter(|(from, _)| *from == 1).map(|(_, d)| d.clone()).collect();
        // The station has never received these messages of the earlier boot, and refuses them, too.
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

    a_recording_does_not_bring_back_a_peer_that_left,
    "keep a share for a station that is gone",
    "a boot that was dropped has to prove again that it is live" => {
        let mut ether = Ether::new((0..2).map(|id| station(Instant::ZERO, id, 1)).collect());
        ether.run(seconds(10));
        ether.run_where(seconds(60), |from, to| from == to); // the stations do not hear each other
        assert!(peers(&ether.stations[0]).is_empty());
        let unheard: Vec<Vec<u8>> =
            ether.recorded.iter().filter(|(from, _)| *from == 1).map(|(_, d)| d.clone()).collect();
        let now = ether.now;
        only_counts(&mut ether.stations[0], now, &unheard, |c| &mut c.replayed);
        ether.run(seconds(70));
        assert_eq!(peers(&ether.stations[0]), [1]);
    }

    replayed_messages_of_old_boots_do_not_keep_a_newcomer_out,
    "use up the answers by which newcomers prove that they are live",
    "challenges are answered in the order of their arrival" => {
        let mut ether = Ether::new((0..3).map(|id| station(Instant::ZERO, id, 1)).collect());
        let codec = Codec::new(&ether::KEY);
        // The recordings have sixteen boot ids, which are sorted before all others. Each boot id
        // has fifty challenges.
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

    a_replayed_query_is_not_answered,
    "make stations answer, again and again",
    "a query counts once per boot, and only of a boot that is in the table of peers" => {
        let mut ether = Ether::new((0..3).map(|id| station(Instant::ZERO, id, 1)).collect());
        ether.run(seconds(5));
        ether.ask(1);
        ether.run(seconds(10));
        let queries: Vec<Vec<u8>> =
            ether.recorded.iter().filter(|(_, of)| of.len() == QUERY_LEN).map(|(_, of)| of.clone()).collect();
        assert_eq!((queries.len(), ether.stations[0].counters().fleet_sent), (1, 1));
        let now = ether.now;
        only_counts(&mut ether.stations[0], now, &queries, |c| &mut c.replayed);
        let mut newcomer = station(now, 7, 1);
        only_counts(&mut newcomer, now, &queries, |c| &mut c.unproven);
        ether.stations.push(newcomer);
        ether.own.push((None, Vec::new()));
        ether.run(seconds(10));
        assert_eq!(peers(&ether.stations[3]), [0, 1, 2]);
        let now = ether.now;
        only_counts(&mut ether.stations[3], now, &queries, |c| &mut c.replayed);
    }

    a_replayed_answer_is_not_taken_in,
    "show old figures in the view of a fleet",
    "only an answer to the last query is taken in, once per station" => {
        let mut ether = Ether::new((0..3).map(|id| station(Instant::ZERO, id, 1)).collect());
        ether.run(seconds(5));
        ether.ask(1);
        ether.run(seconds(10));
        let answers: Vec<Vec<u8>> =
            ether.recorded.iter().filter(|(_, of)| of.len() == ANSWER_LEN).map(|(_, of)| of.clone()).collect();
        assert_eq!((answers.len(), ether.stations[1].counters().answers), (2, 2));
        let now = ether.now;
        only_counts(&mut ether.stations[1], now, &answers, |c| &mut c.replayed);
        let mut bystander = station(now, 7, 1);
        only_counts(&mut bystander, now, &answers, |c| &mut c.unasked);
        ether.stations.remove(2);
        ether.own.remove(2);
        ether.ask(1);
        ether.run(seconds(10));
        let now = ether.now;
        let of_the_first = answers[..1].to_vec();
        only_counts(&mut ether.stations[1], now, &of_the_first, |c| &mut c.unasked);
    }

    messages_that_were_held_back_for_twelve_intervals_are_void,
    "make a station seem live, with old figures",
    "a message of a known peer is refused twelve intervals after the last one that was received, a message of another station when the challenge that it answers has expired" => {
        let mut ether = Ether::new((0..2).map(|id| station(Instant::ZERO, id, 1)).collect());
        ether.run(seconds(10));
        ether.run_where(seconds(40), |from, to| from == to);
        let now = ether.now;
        let held: Vec<Vec<u8>> =
            ether.recorded.iter().filter(|(from, _)| *from == 1).map(|(_, d)| d.clone()).collect();
        let before = ether.stations[0].counters().accepted;
        for datagram in &held {
            ether.stations[0].handle_datagram(now, datagram);
        }
        assert_eq!(ether.stations[0].counters().accepted, before);
        assert_eq!(peers(&ether.stations[0]), [0_u64; 0]);
    }

    a_long_interval_does_not_keep_a_peer_that_has_gone,
    "keep a station for more than an hour",
    "an announced interval is limited to the longest that the schedule gives for twice the number of stations and eight more, at most 60 s" => {
        let codec = Codec::new(&ether::KEY);
        let mut victim = station(Instant::ZERO, 0, 1);
        let (now, challenge) = challenge_of(&mut victim);
        let message = Presence { interval: seconds(600), ..crafted(1, 1, 1, vec![challenge]) };
        victim.handle_datagram(now, &codec.encode(&message));
        assert_eq!(peers(&victim), [1]);
        victim.handle_tick(now + seconds(60), None, &[]);
        assert_eq!(peers(&victim), [0_u64; 0]);
    }

    invented_stations_fill_a_table_of_1024,
    "use up memory",
    "the table holds 1024" => {
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

    a_table_of_invented_stations_is_empty_after_five_minutes,
    "keep real stations out for hours",
    "silent stations are removed five minutes after their last message" => {
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
        let (now, challenge) = ether::challenge_from(now + seconds(301), &mut victim);
        victim.handle_datagram(now, &codec.encode(&crafted(5_000, 3, 1, vec![challenge])));
        assert_eq!(peers(&victim), [5_000]);
    }

    new_boots_in_the_name_of_a_peer_reach_that_peer_alone,
    "fill the table with the boots of one station",
    "a station has one entry; no other peer is lost, and the station returns when it has proved again that it is live" => {
        let mut ether = Ether::new((0..3).map(|id| station(Instant::ZERO, id, 1)).collect());
        ether.run(seconds(10));
        let codec = Codec::new(&ether::KEY);
        let now = ether.now;
        for sequence in 1..=1_000_u64 {
            let newest = ether.recorded.iter().rfind(|(from, _)| *from == 0).unwrap().1.clone();
            let answers = vec![codec.decode(&newest).unwrap().challenge];
            let boot = std::array::from_fn(|at| if at < 8 { sequence.to_be_bytes()[at] } else { 9 });
            let message = Presence { boot: BootId(boot), ..crafted(1, 0, sequence, answers) };
            ether.stations[0].handle_datagram(now, &codec.encode(&message));
        }
        assert_eq!(peers(&ether.stations[0]), [1, 2]);
        ether.run(seconds(30));
        assert_eq!(peers(&ether.stations[0]), [1, 2]);
        assert!(ether.stations[0].peers().all(|peer| !peer.announced.up.active), "the station's own announcement counts again");
    }

    a_flood_of_a_member_makes_no_station_send_more,
    "make the stations answer until the air is full",
    "a station sends messages for at most 0.5 % of the air, whatever it receives" => {
        let codec = Codec::new(&ether::KEY);
        let sent = |flood: bool| {
            let mut victim = station(Instant::ZERO, 0, 1);
            let (start, challenge) = challenge_of(&mut victim);
            for step in 1..=300_000 {
                let now = start + Duration::from_micros(100) * step;
                if flood {
                    let mut message = crafted(1, 1, step, vec![challenge]);
                    message.challenge = Challenge(step);
                    message.announced.up.active = step % 2 == 0;
                    victim.handle_datagram(now, &codec.encode(&message));
                }
                if victim.next_tick() <= now {
                    victim.handle_tick(now, None, &[]);
                }
                while victim.poll_transmit(now).is_some() {}
            }
            victim.counters().sent
        };
        assert!(sent(true) <= sent(false));
    }

    a_flood_of_queries_makes_no_station_send_more,
    "make the stations answer until the air is full, or keep them from announcing themselves",
    "queries and answers count in a station's part of the 0.5 % of the air, and a station sends at most two between two presence messages" => {
        let quiet = {
            let mut ether = Ether::new((0..6).map(|id| station(Instant::ZERO, id, 1)).collect());
            ether.run(seconds(605));
            ether.recorded.len()
        };
        let mut ether = Ether::new((0..6).map(|id| station(Instant::ZERO, id, 1)).collect());
        ether.run(seconds(5));
        let before = ether.recorded.len();
        let codec = FleetCodec::accepting(&ether::KEY, &[]);
        // The member names station 5 as the sender. It has received the boot id of station 5.
        let boot = BootId(std::array::from_fn(|at| if at == 0 { 5 } else { 1 }));
        for count in 1..=60_000 {
            let query = codec.encode(&FleetMessage {
                bssid: ether::BSSID,
                station: StationId(5),
                boot,
                sequence: 1_000_000 + count,
                unix_time: None,
                content: FleetContent::Query(Challenge(count)),
            });
            for victim in &mut ether.stations[..5] {
                victim.handle_datagram(ether.now, &query);
            }
            ether.run(Duration::from_millis(10));
        }
        let air = |datagram: &Vec<u8>| airtime_of(datagram.len(), Rate::from_mbps(6), None);
        let taken: Duration = ether.recorded[before..].iter().map(|(_, of)| air(of)).sum();
        let debt = airtime_of(ANSWER_LEN, Rate::from_mbps(6), None) * 5 * 6;
        assert!(taken <= seconds(600) / 200 + debt, "{taken}");
        let presence = ether.recorded.iter().filter(|(_, of)| of.len() == MESSAGE_LEN).count();
        assert!(presence * 4 > quiet, "{presence} of {quiet}");
        let answers = ether.recorded.len() - presence;
        assert!(answers > 100, "{answers}");
        for station in &ether.stations {
            assert_eq!(peers(station).len(), 5);
        }
    }

    a_challenge_of_zero_is_out_of_range,
    "make stations that answer it send invalid messages",
    "the message is rejected" => {
        let codec = Codec::new(&ether::KEY);
        let mut victim = station(Instant::ZERO, 0, 1);
        let (now, challenge) = challenge_of(&mut victim);
        let zero = Presence { challenge: Challenge(0), ..crafted(1, 1, 1, vec![challenge]) };
        only_counts(&mut victim, now, &[codec.encode(&zero)], |c| &mut c.invalid);
    }

    a_claim_of_all_air_leaves_15_percent,
    "take all air",
    "claims grow by 20 % of the air per tick, up to 1.5 times the admitted share and 85 % in all" => {
        let codec = Codec::new(&ether::KEY);
        let own = [ether::sending(10, Duration::from_millis(20))];
        let config = ControllerConfig { max_rate: Some(Rate::from_mbps(24)), ..config(0) };
        let mut victim = start(Instant::ZERO, &config, 1);
        let (_, challenge) = challenge_of(&mut victim);
        let mut claimed = Vec::new();
        for sequence in 1..=20 {
            let now = victim.next_tick();
            let mut message = crafted(1, 1, sequence, vec![challenge]);
            message.announced.up.max_rate = Some(Rate::from_mbps(24));
            message.announced.reservation = Some(Reservation {
                rate: Rate::from_mbps(24),
                share: Share::from_percent(80),
                ticket: 1,
                claim: Share::WHOLE,
                short: true,
            });
            victim.handle_datagram(now, &codec.encode(&message));
            victim.handle_tick(now, None, &own);
            claimed.push(yields(&mut victim));
        }
        let percent = |percent| Some(Share::from_percent(percent));
        assert_eq!(claimed[..5], [20, 40, 60, 80, 85].map(percent));
        assert!(claimed[5..].iter().all(|claimed| *claimed == percent(85)), "{claimed:?}");
        for _ in 0..61 {
            victim.handle_tick(victim.next_tick(), None, &own);
            let _ = victim.poll_transmit(victim.next_tick());
        }
        assert_eq!(yields(&mut victim), None, "30 s after the owner's last message");
    }

    nothing_is_reserved_where_the_limit_is_zero,
    "displace the earlier owners",
    "where `access_point.reservable_percent` is 0, nothing is reserved" => {
        let codec = Codec::new(&ether::KEY);
        let config = ControllerConfig { reservable: Share::ZERO, ..config(0) };
        let mut victim = start(Instant::ZERO, &config, 1);
        let (now, challenge) = challenge_of(&mut victim);
        let mut message = crafted(1, 1, 1, vec![challenge]);
        message.announced.reservation = Some(Reservation {
            rate: Rate::from_bps(1),
            share: Share::from_ppm(1),
            ticket: 1,
            claim: Share::WHOLE,
            short: true,
        });
        victim.handle_datagram(now, &codec.encode(&message));
        victim.handle_tick(victim.next_tick(), None, &[]);
        assert!(!victim.admits(StationId(1)));
    }

    a_message_under_the_receivers_name_is_only_counted,
    "be taken for the station itself",
    "a message under the receiver's own name is only counted" => {
        let codec = Codec::new(&ether::KEY);
        let mut victim = station(Instant::ZERO, 0, 1);
        let (now, challenge) = challenge_of(&mut victim);
        let namesakes: Vec<Vec<u8>> = (1..=1_000)
            .map(|sequence| codec.encode(&crafted(0, 9, sequence, vec![challenge])))
            .collect();
        only_counts(&mut victim, now, &namesakes, |c| &mut c.duplicate_id);
    }
}
