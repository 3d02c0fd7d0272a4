//! Tests with nl80211 messages of the kernel, byte by byte. The numbers are in
//! include/uapi/linux/nl80211.h.

use proptest::prelude::*;
use wl_nl80211::Nl80211Command;

use super::*;
use crate::wifi::message::{
    CHANNEL_WIDTH, IFNAME, MAC, SSID, STA_INFO, SURVEY_INFO, WIPHY_FREQ, attributes,
};

/// A netlink attribute: length, kind, value, and padding to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len() + 4).unwrap();
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn u32s(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

fn u64s(kind: u16, value: u64) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

fn message(bytes: &[u8]) -> Nl80211Message {
    Nl80211Message { cmd: Nl80211Command::GetInterface, attributes: attributes(bytes) }
}

fn interface() -> Vec<u8> {
    [
        attribute(IFNAME, b"wlan0\0"),
        attribute(SSID, b"school"),
        u32s(WIPHY_FREQ, 5180),
        u32s(CHANNEL_WIDTH, 3),
    ]
    .concat()
}

fn station(fields: &[Vec<u8>]) -> Vec<u8> {
    [attribute(MAC, &[2, 0, 0, 0, 0, 1]), attribute(STA_INFO, &fields.concat())].concat()
}

fn link(station: &[u8]) -> Link {
    Link::read(&message(&interface()), Some(&message(station)), &[])
}

/// A message with all fields of the access point.
fn full_station() -> Vec<u8> {
    let rate = [u32s(5, 8_667), attribute(6, &[9]), attribute(7, &[2]), attribute(8, &[])];
    let fields = [
        u32s(1, 20),                  // INACTIVE_TIME
        u32s(2, 7),                   // RX_BYTES
        u64s(23, 4_294_967_303),      // RX_BYTES64
        u64s(24, 8_000),              // TX_BYTES64
        u32s(3, 8_000),               // TX_BYTES
        attribute(7, &[196]),         // SIGNAL
        attribute(8, &rate.concat()), // TX_BITRATE
        u32s(9, 90),                  // RX_PACKETS
        u32s(10, 100),                // TX_PACKETS
        u32s(11, 30),                 // TX_RETRIES
        u32s(12, 2),                  // TX_FAILED
        attribute(13, &[195]),        // SIGNAL_AVG
        attribute(14, &rate[0]),      // RX_BITRATE
        u32s(16, 61),                 // CONNECTED_TIME
        u32s(18, 1),                  // BEACON_LOSS
        u32s(27, 300_000),            // EXPECTED_THROUGHPUT
        u64s(32, 5_000),              // RX_DURATION
        u64s(39, 6_000),              // TX_DURATION
        attribute(250, &[1, 2, 3]),   // a later kernel's field
    ];
    station(&fields)
}

/// An attribute with all fields of the channel in use.
fn full_survey() -> Vec<u8> {
    let survey = [
        u32s(1, 5180),
        attribute(2, &[161]), // NOISE
        attribute(3, &[]),    // IN_USE
        u64s(4, 1_000),       // TIME
        u64s(5, 400),         // TIME_BUSY
        u64s(7, 300),         // TIME_RX
        u64s(8, 50),          // TIME_TX
    ];
    attribute(SURVEY_INFO, &survey.concat())
}

#[test]
fn all_that_a_driver_can_tell_is_read() {
    let elsewhere = attribute(SURVEY_INFO, &[u32s(1, 2412), u64s(4, 9)].concat());
    let channels = [message(&elsewhere), message(&full_survey())];
    let found = Link::read(&message(&interface()), Some(&message(&full_station())), &channels);
    let rate = Rate::from_bps(866_700_000);
    let sent = PhyRate {
        rate,
        standard: "802.11ac",
        mcs: Some(9),
        streams: Some(2),
        width_mhz: Some(80),
        guard_interval_ns: Some(800),
    };
    let received = PhyRate {
        rate,
        standard: "802.11a/b/g",
        mcs: None,
        streams: None,
        width_mhz: Some(20),
        guard_interval_ns: None,
    };
    let traffic = |rate, packets, bytes, airtime_us| Traffic {
        rate: Some(rate),
        packets: Some(packets),
        bytes: Some(bytes),
        airtime_us: Some(airtime_us),
    };
    let expected = Link {
        interface: "wlan0".to_owned(),
        ssid: Some("school".to_owned()),
        bssid: Some(Bssid([2, 0, 0, 0, 0, 1])),
        frequency_mhz: Some(5180),
        width_mhz: Some(80),
        signal_dbm: Some(-60),
        signal_average_dbm: Some(-61),
        tx: traffic(sent, 100, 8_000, 6_000),
        rx: traffic(received, 90, 4_294_967_303, 5_000),
        retries: Some(30),
        failed: Some(2),
        expected: Some(Rate::from_mbps(300)),
        beacon_losses: Some(1),
        connected_s: Some(61),
        inactive_ms: Some(20),
        channel: Survey {
            noise_dbm: Some(-95),
            active_ms: Some(1_000),
            busy_ms: Some(400),
            rx_ms: Some(300),
            tx_ms: Some(50),
        },
    };
    assert_eq!(found, expected);
    assert_eq!(found.not_told(), [""; 0]);
}

#[test]
fn an_airtime_of_zero_beside_packets_is_not_told() {
    let with = |packets| link(&station(&[u32s(10, packets), u64s(39, 0), u64s(32, 0)]));
    assert_eq!(with(5).tx.airtime_us, None);
    assert_eq!(with(0).tx.airtime_us, Some(0), "nothing was sent");
    assert_eq!(with(0).rx.airtime_us, None, "without a counter a zero says nothing");
    let not_told = with(5).not_told();
    assert!(not_told.contains(&"TX airtime") && not_told.contains(&"RX airtime"), "{not_told:?}");
    assert!(!not_told.contains(&"TX packets"), "{not_told:?}");
}

#[test]
fn a_channel_is_found_by_its_mark_where_the_interface_names_no_frequency() {
    let channel = |mark: &[Vec<u8>], ms| {
        let fields = [u32s(1, 2412), u64s(4, ms), mark.concat()].concat();
        message(&attribute(SURVEY_INFO, &fields))
    };
    let channels = [channel(&[], 1), channel(&[attribute(3, &[])], 2)];
    assert_eq!(Survey::of(&channels, None).active_ms, Some(2));
    assert_eq!(Survey::of(&channels[..1], None), Survey::default());
    assert_eq!(Survey::of(&channels, Some(5180)), Survey::default());
}

#[test]
fn an_active_time_of_zero_on_the_channel_in_use_is_not_told() {
    let fields = [u32s(1, 2412), attribute(2, &[161]), u64s(4, 0), u64s(5, 0)].concat();
    let found = Survey::of(&[message(&attribute(SURVEY_INFO, &fields))], Some(2412));
    assert_eq!(found, Survey { noise_dbm: Some(-95), ..Survey::default() });
}

#[test]
fn an_ssid_need_not_be_text() {
    let bytes = [attribute(IFNAME, b"wlan0\0"), attribute(SSID, b"caf\xe9\x1b[2J")].concat();
    let found = Link::read(&message(&bytes), None, &[]);
    assert_eq!(found.ssid.as_deref(), Some("caf\u{fffd}\u{1b}[2J"));
    assert!(found.not_told().contains(&"BSSID"));
}

proptest! {
    #[test]
    fn no_change_of_a_message_makes_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in prop_oneof![Just(0), 0_usize..64],
    ) {
        let changed = |mut bytes: Vec<u8>| {
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            message(&bytes)
        };
        let [interface, station, channel] = [interface(), full_station(), full_survey()].map(changed);
        Link::read(&interface, Some(&station), &[channel]).not_told();
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let all = [message(&bytes), message(&attribute(STA_INFO, &bytes))];
        let channel = message(&attribute(SURVEY_INFO, &bytes));
        for message in all {
            Link::read(&message, Some(&message), std::slice::from_ref(&channel)).not_told();
        }
    }
}

#[test]
fn a_field_of_an_unexpected_length_hides_no_other() {
    let fields = [u32s(10, 7), attribute(11, &[1]), attribute(8, &[9; 3]), u32s(12, 2)];
    let bytes = [attribute(MAC, &[2; 5]), attribute(166, &[0; 8]), station(&fields)].concat();
    let found = link(&bytes);
    assert_eq!((found.tx.packets, found.retries, found.failed), (Some(7), None, Some(2)));
    assert_eq!((found.bssid, found.tx.rate), (Some(Bssid([2, 0, 0, 0, 0, 1])), None));
}
