//! A station asks the others at its access point for their figures.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ether;

use ether::{Ether, only_counts, peers, seconds, sending, station};
use wakeai_control::presence::{
    AIR_PARTS, ANSWER_LEN, AgentFigures, FleetAnswer, FleetCodec, Label, QUERY_LEN, airtime_of,
};
use wakeai_control::{Controller, StationId};
use wakeai_units::{Duration, Instant, Rate};

const BASIC: Rate = Rate::from_mbps(6);

fn figures(software: &str) -> AgentFigures {
    AgentFigures {
        software: Label::new(software),
        state: Label::new("controlling"),
        law: Label::new("airtime"),
        uptime: seconds(90),
        faults: std::array::from_fn(|kind| u32::from(kind == 4) * 3),
        lasting: 1 << 4,
    }
}

fn fleet(count: u64) -> Ether {
    Ether::new((0..count).map(|id| station(Instant::ZERO, id, 1)).collect())
}

fn answers(station: &Controller) -> Vec<FleetAnswer> {
    station.fleet_answers().collect()
}

fn air(datagram: &[u8]) -> Duration {
    airtime_of(datagram.len(), BASIC, None)
}

#[test]
fn every_station_answers_with_its_figures_and_its_clock() {
    let mut ether = fleet(3);
    for (place, ahead) in [(0, 0), (1, 250), (2, 0)] {
        let unix = seconds(1_700_000_000) + Duration::from_millis(ahead);
        ether.stations[place].set_unix_at_epoch(unix);
        ether.stations[place].set_agent_figures(figures(&format!("0.{place}.0")));
    }
    ether.own[1] = (Some(Rate::from_mbps(54)), vec![sending(20, Duration::from_millis(30))]);
    ether.run(seconds(5));
    assert_eq!(ether.stations[0].fleet_query(), None);
    assert_eq!(ether.ask(0), 1);
    assert_eq!(ether.ask(0), 1, "it is under way");
    ether.run(seconds(5));
    assert!(ether.stations[0].fleet_query().unwrap().done);
    let found = answers(&ether.stations[0]);
    assert_eq!(found.iter().map(|of| of.station.0).collect::<Vec<_>>(), [1, 2]);
    let (sender, other) = (&found[0].figures, &found[1].figures);
    assert_eq!((sender.agent, other.agent), (figures("0.1.0"), figures("0.2.0")));
    assert_eq!((sender.announced.up.active, sender.senders, sender.peers), (true, 1, 2));
    assert_eq!(
        (sender.announced.link_rate, other.announced.up.active),
        (Some(Rate::from_mbps(54)), false)
    );
    assert_eq!(sender.announced.up.min_rtt, Some(Duration::from_millis(30)));
    // The medium of this test has no delay, and the times in an answer have whole microseconds.
    for (of, ahead) in found.iter().zip([250_000_000, 0]) {
        let clock = of.clock.unwrap();
        assert!((clock.ahead_nanos - ahead).abs() <= 1_000, "{clock:?}");
        assert!(clock.error <= Duration::from_micros(1), "{clock:?}");
    }
    assert!(answers(&ether.stations[1]).is_empty(), "it has not asked");
    assert_eq!(ether.stations[1].counters().unasked, 1);
    assert_eq!(ether.stations[1].counters().queries, 1);
    assert_eq!(peers(&ether.stations[0]), [1, 2]);
}

#[test]
fn two_stations_that_ask_at_the_same_time_both_get_all_answers() {
    let mut ether = fleet(8);
    ether.run(seconds(10));
    ether.ask(2);
    ether.ask(5);
    ether.run(seconds(20));
    for (asks, others) in [(2, [0, 1, 3, 4, 5, 6, 7]), (5, [0, 1, 2, 3, 4, 6, 7])] {
        let found: Vec<u64> =
            answers(&ether.stations[asks]).iter().map(|of| of.station.0).collect();
        assert_eq!(found, others);
    }
}

#[test]
fn a_station_whose_answer_is_lost_is_shown_with_its_earlier_one() {
    let mut ether = fleet(4);
    ether.run(seconds(10));
    ether.ask(0);
    ether.run(seconds(10));
    assert_eq!(answers(&ether.stations[0]).len(), 3);
    assert_eq!(ether.ask(0), 2);
    let done = |station: &Controller| station.fleet_query().unwrap().done;
    ether.run_where(Duration::from_millis(1_200), |from, _| from != 3);
    assert!(!done(&ether.stations[0]), "it waits for the third");
    ether.run_where(seconds(2), |from, _| from != 3);
    assert!(done(&ether.stations[0]), "its time is over");
    let by_query: Vec<u64> = answers(&ether.stations[0]).iter().map(|of| of.query).collect();
    assert_eq!(by_query, [2, 2, 1]);
    ether.run(seconds(601));
    assert!(answers(&ether.stations[0]).is_empty(), "after ten minutes they are too old");
}

#[test]
fn forged_queries_and_answers_are_only_counted() {
    let mut ether = fleet(3);
    ether.run(seconds(5));
    ether.ask(0);
    ether.run(seconds(5));
    let now = ether.now;
    let fleet_messages = ether.recorded.iter().filter(|(_, of)| of.starts_with(b"WKFL"));
    let genuine: Vec<Vec<u8>> = fleet_messages.map(|(_, of)| of.clone()).collect();
    assert_eq!(genuine.len(), 3, "one query and two answers");
    let with = |at: usize| {
        let change = |of: &Vec<u8>| {
            let mut bytes = of.clone();
            bytes[at] ^= 0x80;
            bytes
        };
        genuine.iter().map(change).collect::<Vec<_>>()
    };
    let victim = &mut ether.stations[0];
    for at in [6, 12, 20, 40, 50, 60, 75] {
        only_counts(victim, now, &with(at), |c| &mut c.forged);
    }
    only_counts(victim, now, &with(4), |c| &mut c.wrong_version);
    only_counts(
        victim,
        now,
        &genuine.iter().map(|of| of[..70].to_vec()).collect::<Vec<_>>(),
        |c| &mut c.malformed,
    );
    let strange = FleetCodec::accepting(&[1; 32], &[]);
    let codec = FleetCodec::accepting(&ether::KEY, &[]);
    let of_others = |of: &Vec<u8>| strange.encode(&codec.decode(of).unwrap());
    let foreign: Vec<_> = genuine.iter().map(of_others).collect();
    only_counts(victim, now, &foreign, |c| &mut c.forged);
}

/// Measures the airtime of all messages of a hundred stations. Four of them ask as often as they
/// can.
#[test]
fn a_hundred_stations_answer_within_half_a_percent_of_the_air() {
    const STATIONS: u64 = 100;
    let mut ether = fleet(STATIONS);
    ether.run(seconds(400));
    assert!(ether.stations.iter().all(|station| peers(station).len() == 99));

    let begin = ether.now;
    let first = ether.recorded.len();
    ether.ask(0);
    ether.run(seconds(60));
    let query = ether.stations[0].fleet_query().unwrap();
    assert!(query.done);
    assert_eq!(answers(&ether.stations[0]).len(), 99);
    let once: Vec<&Vec<u8>> = ether.recorded[first..].iter().map(|(_, of)| of).collect();
    let length = |wanted: usize| once.iter().filter(move |of| of.len() == wanted).count();
    assert_eq!((length(QUERY_LEN), length(ANSWER_LEN)), (1, 99));
    println!("one query: {} of airtime for 99 answers", air(&[0; ANSWER_LEN]) * 99);

    let span = seconds(600);
    let mut queries = 0;
    let from = ether.recorded.len();
    let mut times: Vec<(Instant, usize)> = Vec::new();
    for _ in 0..span.as_millis() / 500 {
        for place in [0, 20, 40, 60] {
            queries = queries.max(ether.ask(place));
        }
        ether.run(Duration::from_millis(500));
        times.push((ether.now, ether.recorded.len()));
    }
    let recorded = &ether.recorded[from..];
    let taken: Duration = recorded.iter().map(|(_, of)| air(of)).sum();
    let answers = recorded.iter().filter(|(_, of)| of.len() == ANSWER_LEN);
    let answers: Duration = answers.map(|(_, of)| air(of)).sum();
    let debt = air(&[0; ANSWER_LEN]) * 5 * STATIONS;
    let percent = |part: Duration| part.as_secs_f64() * 100.0 / span.as_secs_f64();
    println!(
        "{queries} queries of a station in {span}: all messages take {:.3} % of the air, answers {:.3} %",
        percent(taken),
        percent(answers)
    );
    assert!(taken <= span / AIR_PARTS + debt, "{taken}");
    assert!(answers <= span / AIR_PARTS, "{answers}");
    assert!(queries > 5, "{queries}");
    for station in &ether.stations {
        assert_eq!(peers(station).len(), 99, "nobody is taken for gone");
    }
    assert!(begin < ether.now);
    assert_eq!(ether.stations[0].counters().forged, 0);
    assert!(ether.stations[7].peers().any(|peer| peer.station == StationId(0)));
}
