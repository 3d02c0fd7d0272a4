//! One saturated station, compared with the airtime of its exchanges, which is added up by hand.
//!
//! Nothing here uses the crate's arithmetic. Every term is written out from the standard's figures
//! for 1500-byte IP packets that carry 1472 bytes of UDP payload.

mod common;

use common::{config, contend, saturate_uplink};
use wakeai_medium::{WifiConfig, WifiStationConfig};
use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{Contention, GuardInterval, Protection, Standard, Width};

/// Mean backoff: 7.5 slots of 9 us, drawn from 0 to 15.
const BACKOFF_US: f64 = 67.5;

fn mbps(config: &WifiConfig) -> f64 {
    let (warmup, measured) = (Duration::from_millis(100), Duration::from_secs(20));
    saturate_uplink(config, 1_500, warmup, measured, 1).mbps(1_472)
}

/// The rate in Mbit/s of `packets` packets of 1472 bytes in `exchange_us`.
fn by_hand(packets: f64, exchange_us: f64) -> f64 {
    packets * 1_472.0 * 8.0 / exchange_us
}

#[track_caller]
fn assert_within_3_percent(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.03, "found {found:.2}, by hand {expected:.2}");
}

#[test]
fn dcf_at_54_mbps_with_and_without_protection() {
    // MPDU: 24 MAC + 8 LLC/SNAP + 1500 + 4 FCS = 1536 bytes.
    // 16 service + 12288 + 6 tail = 12310 bits. At 216 bits per symbol they are 57 symbols: 228 us.
    // The preamble takes 20 us. ACK and CTS have 14 bytes, or 134 bits: at 96 bits per symbol 2
    // symbols. An RTS has 20 bytes, or 182 bits: 2 symbols.
    let a = 34.0 + BACKOFF_US + (20.0 + 228.0) + 16.0 + (20.0 + 8.0);
    assert_within_3_percent(mbps(&config(Standard::A, 1)), by_hand(1.0, a));
    // Each ERP-OFDM frame ends with 6 us of signal extension; SIFS is 10 us, DIFS 28 us.
    let g = 28.0 + BACKOFF_US + 254.0 + 10.0 + 34.0;
    assert_within_3_percent(mbps(&config(Standard::G, 1)), by_hand(1.0, g));
    let mut protected = config(Standard::G, 1);
    protected.access_points[0].bss.protection = Protection::CtsToSelf;
    assert_within_3_percent(mbps(&protected), by_hand(1.0, g + 34.0 + 10.0));
    protected.access_points[0].bss.protection = Protection::RtsCts;
    assert_within_3_percent(mbps(&protected), by_hand(1.0, g + 34.0 + 10.0 + 34.0 + 10.0));
}

#[test]
fn n_at_65_mbps_fills_the_longest_ppdu() {
    // MPDU: 26 MAC with QoS + 8 LLC/SNAP + 1500 + 4 FCS = 1538 bytes. With its delimiter it has
    // 1542 bytes, padded to 1544. A PPDU of 5484 us has 5484 - 36 = 5448 us for data, or 1362
    // symbols of 260 bits: 354120 bits. Less 22 bits of service and tail these are 44262 bytes. 28
    // frames fit: 27 * 1544 + 1542 = 43230 bytes. Their 345840 + 22 = 345862 bits take 1331
    // symbols, or 5324 us.
    let data = 36.0 + 5_324.0;
    // A BlockAck has 32 bytes, or 278 bits: at 96 bits per symbol 3 symbols. AIFS is 16 + 3 * 9 =
    // 43 us.
    let exchange = 43.0 + BACKOFF_US + data + 16.0 + (20.0 + 12.0);
    assert_within_3_percent(mbps(&config(Standard::N, 1)), by_hand(28.0, exchange));
}

#[test]
fn ac_at_390_mbps_fills_65535_bytes() {
    // Every subframe is padded to 1544 bytes, so 42 of them are 64848 bytes. These 518784 + 22 =
    // 518806 bits are 333 symbols of 4 us, at 1560 bits per symbol. The VHT preamble takes 40 us.
    let exchange = 43.0 + BACKOFF_US + (40.0 + 1_332.0) + 16.0 + (20.0 + 12.0);
    assert_within_3_percent(mbps(&config(Standard::Ac, 1)), by_hand(42.0, exchange));
}

#[test]
fn ax_at_600_mbps_fills_65535_bytes_or_256_subframes() {
    // 518784 + 16 = 518800 bits are 64 symbols of 13.6 us, at 8166 bits per symbol. The HE preamble
    // with one 2x training field takes 43.2 us. A BlockAck for 256 frames has 56 bytes, or 470
    // bits: 5 symbols.
    let spaces = 43.0 + BACKOFF_US + 16.0 + (20.0 + 20.0);
    let exchange = spaces + 43.2 + 64.0 * 13.6;
    assert_within_3_percent(mbps(&config(Standard::Ax, 1)), by_hand(42.0, exchange));
    // 256 * 1544 = 395264 bytes are 3162128 bits or 388 symbols: 5320 us, which is within 5484 us.
    let mut long = config(Standard::Ax, 1);
    long.access_points[0].bss.ampdu = Bytes::new(4_194_303);
    let exchange = spaces + 43.2 + 388.0 * 13.6;
    assert_within_3_percent(mbps(&long), by_hand(256.0, exchange));
}

#[test]
fn an_ampdu_has_no_more_subframes_than_the_access_point_says() {
    let mut config = config(Standard::N, 1);
    config.access_points[0].bss.ampdu_subframes = 4;
    // 3 * 1544 + 1542 = 6174 bytes: 49414 bits, 191 symbols.
    let exchange = 43.0 + BACKOFF_US + (36.0 + 764.0) + 16.0 + (20.0 + 12.0);
    assert_within_3_percent(mbps(&config), by_hand(4.0, exchange));
}

#[test]
fn a_station_of_an_older_standard_keeps_to_its_own_aggregates() {
    let mut config = config(Standard::Ax, 1);
    config.access_points[0].bss.width = Width::Mhz40;
    config.access_points[0].bss.streams = 4;
    config.stations[0] = WifiStationConfig::new(Standard::N, &config.access_points[0].bss);
    config.stations[0].radio.rate = Rate::from_mbps(540);
    // An HT A-MPDU ends at 65535 bytes. 41 * 1544 + 1542 = 64846 bytes are 518790 bits, or 241
    // symbols of 2160 bits. The preamble has four training fields.
    config.access_points[0].bss.ampdu = Bytes::new(1_000_000);
    let exchange = 43.0 + BACKOFF_US + (48.0 + 964.0) + 16.0 + (20.0 + 12.0);
    assert_within_3_percent(mbps(&config), by_hand(42.0, exchange));
    // An HT BlockAck is for 64 frames. A packet of 100 bytes is an MPDU of 138 bytes, or 144 with
    // delimiter and padding. 63 * 144 + 142 = 9214 bytes are 73734 bits, or 35 symbols.
    config.access_points[0].bss.ampdu_subframes = 256;
    let exchange = 43.0 + BACKOFF_US + (48.0 + 140.0) + 16.0 + (20.0 + 12.0);
    let (warmup, measured) = (Duration::from_millis(100), Duration::from_secs(20));
    let found = saturate_uplink(&config, 100, warmup, measured, 1).mbps(72);
    assert_within_3_percent(found, 64.0 * 72.0 * 8.0 / exchange);
}

#[test]
fn a_station_of_an_older_standard_has_its_own_guard_interval() {
    let mut config = config(Standard::Ax, 1);
    config.stations[0] = WifiStationConfig::new(Standard::N, &config.access_points[0].bss);
    config.access_points[0].bss.guard_interval = GuardInterval::Ns800;
    let as_ever = mbps(&config);
    for guard in [GuardInterval::Ns1600, GuardInterval::Ns3200] {
        config.access_points[0].bss.guard_interval = guard;
        assert_within_3_percent(mbps(&config), as_ever);
    }
}

#[test]
fn rts_and_cts_protect_an_ampdu_too() {
    let mut config = config(Standard::N, 1);
    config.access_points[0].bss.protection = Protection::RtsCts;
    // As in the test of 65 Mbit/s, but with RTS and CTS (28 us each at 24 Mbit/s) and a SIFS after
    // each.
    let exchange = 43.0 + BACKOFF_US + 2.0 * (28.0 + 16.0) + 5_360.0 + 16.0 + 32.0;
    assert_within_3_percent(mbps(&config), by_hand(28.0, exchange));
}

#[test]
fn a_txop_holds_as_many_exchanges_as_fit() {
    let mut config = config(Standard::N, 1);
    config.access_points[0].bss.ampdu_subframes = 1;
    let txop = Duration::from_micros(2_528);
    contend(&mut config, Contention { txop, ..Contention::of(Standard::N) });
    // One MPDU of 1538 bytes is 12326 bits, or 48 symbols of 260 bits: 36 + 192 = 228 us. With SIFS
    // and ACK an exchange takes 228 + 16 + 28 = 272 us, and a SIFS before the next makes 288 us. Of
    // 2528 us, eight exchanges take 8 * 272 + 7 * 16 = 2288 us. A ninth would end at 2576 us.
    let access = 43.0 + BACKOFF_US + 2_288.0;
    assert_within_3_percent(mbps(&config), by_hand(8.0, access));
}

#[test]
fn a_txop_shortens_an_ampdu_that_would_outlast_it() {
    let mut config = config(Standard::N, 1);
    let txop = Duration::from_micros(1_000);
    contend(&mut config, Contention { txop, ..Contention::of(Standard::N) });
    // A data frame has 1000 - 16 - 32 = 952 us, and 916 us or 229 symbols for its data: 59540 bits,
    // or 7439 bytes. 4 frames fit: 3 * 1544 + 1542 = 6174 bytes. These are 49392 + 22 bits or 191
    // symbols: 764 us. After another SIFS 152 us are left. A frame of 228 us does not fit there.
    let access = 43.0 + BACKOFF_US + 36.0 + 764.0 + 16.0 + 32.0;
    assert_within_3_percent(mbps(&config), by_hand(4.0, access));
}

#[test]
fn the_parts_of_the_airtime_add_up_to_the_time() {
    let run =
        saturate_uplink(&config(Standard::G, 1), 1_500, Duration::ZERO, Duration::from_secs(1), 1);
    let counters = run.medium.counters();
    let airtime = counters.airtime;
    let attempts = counters.stations[0].attempts;
    assert_eq!(airtime.data, Duration::from_micros(254) * attempts);
    assert_eq!(airtime.ack, Duration::from_micros(34) * attempts);
    assert_eq!(airtime.busy(), counters.stations[0].airtime.busy());
    // The last ACK ends at most an exchange before or 44 us after the end.
    let off = (airtime.busy() + airtime.idle).as_micros().abs_diff(1_000_000);
    assert!(off < 28 + 15 * 9 + 254 + 44, "{off} us");
}
