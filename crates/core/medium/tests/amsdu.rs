//! A-MSDU: several packets in one MPDU.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

use common::{Datagram, TO_SERVER, config, drain, medium, saturate_uplink, station};
use wakeai_medium::WifiConfig;
use wakeai_units::{Bytes, Duration, Instant};
use wakeai_wifi::{Protection, Standard};

/// Stations of 802.11n with this A-MSDU, in A-MPDUs of at most so many MPDUs.
fn joining(stations: usize, subframes: u16, amsdu: u64) -> WifiConfig {
    let mut config = config(Standard::N, stations);
    let bss = &mut config.access_points[0].bss;
    (bss.ampdu_subframes, bss.amsdu) = (subframes, Bytes::new(amsdu));
    config
}

/// The goodput in Mbit/s of stations that always have packets, with 1472 bytes of payload each.
fn mbps(config: &WifiConfig) -> f64 {
    saturate_uplink(config, 1_500, Duration::from_secs(1), Duration::from_secs(5), 1).mbps(1_472)
}

/// The figures of ns-3 3.37 are from `validation/ns3/reference.json`: stations, MPDUs in an A-MPDU, longest A-MSDU.
#[test]
fn the_goodput_is_that_of_ns3() {
    for (stations, subframes, amsdu, ns3) in [
        (1, 1, 0, 30.71),
        (1, 1, 3_839, 41.17),
        (1, 1, 7_935, 51.78),
        (1, 64, 3_839, 59.77),
        (1, 64, 7_935, 60.13),
        (5, 1, 7_935, 46.40),
        (5, 64, 3_839, 49.52),
        (5, 64, 7_935, 49.42),
    ] {
        let found = mbps(&joining(stations, subframes, amsdu));
        let off = found / ns3 - 1.0;
        println!("{stations} stations, {subframes} MPDUs, {amsdu} bytes: {found:.2} of {ns3}");
        assert!(off.abs() < 0.05, "{stations}, {subframes}, {amsdu}: {found} of {ns3}");
    }
}

/// The packets of an A-MSDU arrive together, and the MPDU of two packets of 1500 bytes has 26 bytes of header, two
/// subframes of 22 and 1500, padding of 2 and a check sequence of 4.
#[test]
fn an_mpdu_has_the_packets_that_fit() {
    let mut medium = medium(&joining(1, 1, 3_839), 1);
    for id in 0..5 {
        let packet = Datagram { id, length: 1_500 };
        medium.enqueue(Instant::ZERO, station(0), TO_SERVER, packet).unwrap();
    }
    let arrived = drain(&mut medium);
    assert_eq!(arrived.iter().map(|d| d.packet.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let counters = &medium.counters().stations[0];
    // The first packet is alone: it is sent before the others come.
    assert_eq!((counters.mpdus, counters.delivered), (3, 5));
    let of = |bytes: u64| 36_000 + (16 + 8 * bytes + 6).div_ceil(260) * 4_000;
    let all = of(1_538) + 2 * of(26 + 1_522 + 2 + 1_522 + 4);
    assert_eq!(counters.airtime.data.as_nanos(), all);
}

/// A damaged MPDU loses all its packets, its retry has the same ones, and each packet arrives once and in order.
#[test]
fn a_retry_has_the_same_packets() {
    for (subframes, protection) in
        [(1, Protection::None), (8, Protection::None), (8, Protection::RtsCts)]
    {
        let mut config = joining(3, subframes, 3_839);
        config.access_points[0].bss.protection = protection;
        config.access_points[0].bss.retry_limit = 60;
        for one in &mut config.stations {
            one.frame_error_ppm = 400_000;
        }
        let mut medium = medium(&config, 2);
        for id in 0..600 {
            let packet = Datagram { id, length: 200 + (id as usize * 37) % 1_300 };
            medium.enqueue(Instant::ZERO, station(id as usize % 3), TO_SERVER, packet).unwrap();
        }
        let arrived = drain(&mut medium);
        for first in 0..3 {
            let ids = arrived.iter().map(|d| d.packet.id).filter(|id| id % 3 == first);
            assert_eq!(
                ids.collect::<Vec<_>>(),
                (0..200).map(|n| 3 * n + first).collect::<Vec<_>>()
            );
        }
        assert_eq!(medium.packets_inside(), 0);
        let counters = &medium.counters().stations;
        let [mpdus, failures, delivered] = [
            counters.iter().map(|one| one.mpdus).sum::<u64>(),
            counters.iter().map(|one| one.mpdu_failures).sum(),
            counters.iter().map(|one| one.delivered).sum(),
        ];
        assert!(delivered > 2 * (mpdus - failures), "{mpdus} {failures} {delivered}");
    }
}
