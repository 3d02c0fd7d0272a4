//! A window of packets with acknowledgements on the way back, against ns-3's TCP.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

use common::{Datagram, TO_SERVER, config, medium, station, to_station};
use wakeai_medium::{Node, WifiConfig};
use wakeai_units::{Bytes, Duration, Instant, Rate};
use wakeai_wifi::{Protection, Standard};

/// The payload of a full TCP segment with timestamps, the length of the segment, and the length of
/// an acknowledgement without data.
const MSS: u64 = 1_448;
const SEGMENT: usize = 1_500;
const ACKNOWLEDGEMENT: usize = 52;

/// The number of packets in flight. It is more than the air ever holds, and less than the access
/// point's buffer.
const WINDOW: u64 = 250;

/// The goodput in Mbit/s of one connection whose window is always full. An acknowledgement of every
/// second segment allows the next two segments.
fn goodput(config: &WifiConfig, upload: bool) -> f64 {
    let mut medium = medium(config, 1);
    let (sender, receiver) =
        if upload { (station(0), Node::Server) } else { (Node::Server, station(0)) };
    let (forth, back) =
        if upload { (TO_SERVER, to_station(0)) } else { (to_station(0), TO_SERVER) };
    let segment = Datagram { id: 0, length: SEGMENT };
    let acknowledgement = Datagram { id: 1, length: ACKNOWLEDGEMENT };
    for _ in 0..WINDOW {
        medium.enqueue(Instant::ZERO, sender, forth, segment).unwrap();
    }
    let mut received = 0;
    let end = Instant::ZERO + Duration::from_secs(10);
    while let Some(now) = medium.next_timeout().filter(|now| *now < end) {
        medium.handle_timeout(now);
        while let Some(delivery) = medium.poll_delivery() {
            if delivery.packet == acknowledgement {
                for _ in 0..2 {
                    medium.enqueue(delivery.at, sender, forth, segment).unwrap();
                }
            } else {
                received += 1;
                if received % 2 == 0 {
                    medium.enqueue(delivery.at, receiver, back, acknowledgement).unwrap();
                }
            }
        }
    }
    (received * MSS * 8) as f64 / 10e6
}

fn bss(standard: Standard, protection: Protection) -> WifiConfig {
    let mut config = config(standard, 1);
    config.access_points[0].wired.rate = Rate::from_mbps(1_000);
    config.access_points[0].wired.delay = Duration::from_millis(1);
    config.access_points[0].bss.protection = protection;
    config.access_points[0].bss.rts_threshold = Bytes::ZERO;
    config
}

#[test]
fn rts_ahead_of_data_alone_spares_the_acknowledgements() {
    // ns-3 3.37 with RTS above 500 bytes has 20.3 Mbit/s down (some of it is lost to TCP) and 20.8
    // up.
    let mut config = bss(Standard::G, Protection::RtsCts);
    config.access_points[0].bss.rts_threshold = Bytes::new(500);
    for (upload, expected) in [(false, 20.3), (true, 20.8)] {
        let found = goodput(&config, upload);
        let off = (found / expected - 1.0).abs();
        assert!(off < 0.04, "{found:.2}, ns-3 {expected}");
    }
}

#[test]
fn one_connection_gets_what_tcp_gets_in_ns3() {
    // The figures of ns-3 3.37: one endless CUBIC connection, 1 ms of wire, download and upload in
    // Mbit/s. With RTS, an RTS precedes every unicast frame. Unlike TCP, the fixed window here has
    // no losses and no timeouts. They cost ns-3's download with RTS some percent.
    let cases = [
        (Standard::G, Protection::None, 24.4, 24.2, 0.02),
        (Standard::G, Protection::RtsCts, 18.8, 19.3, 0.04),
        (Standard::N, Protection::None, 52.7, 50.7, 0.03),
        (Standard::Ac, Protection::None, 271.9, 259.5, 0.03),
    ];
    for (standard, protection, down, up, tolerance) in cases {
        let config = bss(standard, protection);
        for (upload, expected) in [(false, down), (true, up)] {
            let found = goodput(&config, upload);
            let off = (found / expected - 1.0).abs();
            assert!(off < tolerance, "{standard} {protection:?}: {found:.1}, ns-3 {expected:.1}");
        }
    }
}
