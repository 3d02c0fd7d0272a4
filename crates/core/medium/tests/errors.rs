//! Frame errors, retries and the retry limit.

mod common;

use common::{Datagram, TO_SERVER, config, contend, drain, medium, saturate_uplink, station};
use wakeai_medium::{Change, StationId};
use wakeai_units::{Duration, Instant, Rate};
use wakeai_wifi::Standard;

const ALWAYS: u32 = 1_000_000;

/// 1500 bytes at 100 Gbit/s.
const WIRE: Duration = Duration::from_nanos(120);

fn packet(id: u64) -> Datagram {
    Datagram { id, length: 1_500 }
}

#[test]
fn a_frame_is_given_up_after_the_retry_limit() {
    for (standard, limit) in [(Standard::G, 7), (Standard::N, 7), (Standard::G, 1)] {
        let mut config = config(standard, 1);
        config.access_points[0].bss.retry_limit = limit;
        config.stations[0].frame_error_ppm = ALWAYS;
        let mut medium = medium(&config, 1);
        for id in 0..3 {
            medium.enqueue(Instant::ZERO, station(0), TO_SERVER, packet(id)).unwrap();
        }
        assert_eq!(drain(&mut medium).len(), 0);
        let counters = &medium.counters().stations[0];
        let limit = u64::from(limit);
        assert_eq!((counters.retry_drops, counters.delivered), (3, 0));
        assert_eq!((counters.mpdus, counters.mpdu_failures), (3 * limit, 3 * limit));
        // DCF tries the three frames one after the other. An A-MPDU tries all three at once.
        let accesses = if standard == Standard::G { 3 * limit } else { limit };
        assert_eq!((counters.attempts, counters.failures), (accesses, accesses));
        assert_eq!(medium.packets_inside(), 0);
    }
}

#[test]
fn the_share_of_damaged_frames_is_the_one_configured() {
    for standard in [Standard::A, Standard::Ac] {
        let mut config = config(standard, 1);
        config.stations[0].frame_error_ppm = 100_000;
        let measured = Duration::from_secs(10);
        let run = saturate_uplink(&config, 1_500, Duration::ZERO, measured, 1);
        let counters = &run.medium.counters().stations[0];
        let share = counters.mpdu_failures as f64 / counters.mpdus as f64;
        assert!((share - 0.1).abs() < 0.01, "{standard}: {share:.4}");
    }
}

#[test]
fn an_ampdu_with_errors_is_acknowledged_in_part_and_arrives_in_order() {
    let mut config = config(Standard::N, 1);
    config.stations[0].frame_error_ppm = 300_000;
    let mut medium = medium(&config, 1);
    for id in 0..500 {
        medium.enqueue(Instant::ZERO, station(0), TO_SERVER, packet(id)).unwrap();
    }
    let arrived: Vec<u64> = drain(&mut medium).iter().map(|delivery| delivery.packet.id).collect();
    assert!(arrived.is_sorted(), "the receiver's reorder buffer");
    let counters = &medium.counters().stations[0];
    assert!(counters.mpdu_failures > 100, "{}", counters.mpdu_failures);
    assert_eq!(counters.failures, 0, "some frame of each A-MPDU got through");
    // The expected number of lost frames is 0.3^7 of 500, or 0.1.
    assert_eq!(arrived.len() as u64 + counters.retry_drops, 500);
}

#[test]
fn after_a_damaged_frame_the_others_wait_eifs_and_the_sender_comes_first() {
    // Every frame of station 0 arrives damaged. Where station 1 only saw a busy medium, it would
    // begin DIFS after a frame. But it receives these frames with errors, so it waits EIFS, while
    // station 0 begins after its ACK timeout. Both draw their backoff from 0 alone, so the station
    // that begins to count first sends first.
    let mut config = config(Standard::A, 2);
    config.stations[0].frame_error_ppm = ALWAYS;
    let window = wakeai_wifi::Contention { aifsn: 2, cw_min: 0, cw_max: 0, txop: Duration::ZERO };
    contend(&mut config, window);
    let mut medium = medium(&config, 1);
    let idle = Instant::ZERO + Duration::from_millis(1);
    medium.enqueue(idle, station(0), TO_SERVER, packet(0)).unwrap();
    let start = medium.next_timeout().unwrap();
    medium.handle_timeout(start);
    medium.enqueue(start, station(1), TO_SERVER, packet(1)).unwrap();
    let arrived = drain(&mut medium);
    // Seven attempts take 248 us each. After each but the last come the ACK timeout of 16 + 9 + 20
    // = 45 us and DIFS of 34 us. After the last, station 1 waits EIFS: 16 + 44 us, in whole slots
    // 63 us, and DIFS.
    let air = Duration::from_micros(7 * 248 + 6 * (45 + 34) + 63 + 34 + 248);
    let expected = start + air + WIRE;
    assert_eq!(arrived.iter().map(|delivery| delivery.at).collect::<Vec<_>>(), [expected]);
}

#[test]
fn rate_and_errors_change_in_mid_run() {
    let mut medium = medium(&config(Standard::G, 1), 1);
    let airtime_of_one = |medium: &mut wakeai_medium::Medium<Datagram>, at: u64| {
        let before = medium.counters().airtime.data;
        let now = Instant::ZERO + Duration::from_secs(at);
        medium.enqueue(now, station(0), TO_SERVER, packet(0)).unwrap();
        drain(medium);
        (medium.counters().airtime.data - before).as_micros()
    };
    let id = StationId(0);
    assert_eq!(airtime_of_one(&mut medium, 1), 254);
    medium.change(id, Change::Rate(Rate::from_mbps(6))).unwrap();
    // 12310 bits at 24 a symbol: 513 symbols.
    assert_eq!(airtime_of_one(&mut medium, 3), 20 + 513 * 4 + 6);
    medium.change(id, Change::FrameErrorPpm(ALWAYS)).unwrap();
    assert_eq!(airtime_of_one(&mut medium, 4), 7 * (20 + 513 * 4 + 6));
    let refused = medium.change(id, Change::Rate(Rate::from_mbps(7))).unwrap_err().to_string();
    assert!(refused.contains("7Mbit/s") && refused.contains("6Mbit/s, 9Mbit/s"), "{refused}");
    assert!(medium.change(id, Change::FrameErrorPpm(ALWAYS + 1)).is_err());
    assert!(medium.change(StationId(1), Change::WiredDelay(Duration::ZERO)).is_err());
    assert_eq!(airtime_of_one(&mut medium, 5), 7 * (20 + 513 * 4 + 6), "nothing has changed");
}

#[test]
fn a_rate_that_changes_under_a_frame_on_the_air_leaves_that_frame_alone() {
    let mut config = config(Standard::G, 1);
    config.access_points[0].bss.protection = wakeai_wifi::Protection::RtsCts;
    let mut medium = medium(&config, 1);
    medium.enqueue(Instant::ZERO, station(0), TO_SERVER, packet(0)).unwrap();
    let start = medium.next_timeout().unwrap();
    medium.handle_timeout(start);
    medium.change(StationId(0), Change::Rate(Rate::from_mbps(6))).unwrap();
    let arrived = drain(&mut medium);
    assert_eq!(arrived[0].at, start + Duration::from_micros(34 + 10 + 34 + 10 + 254) + WIRE);
}
