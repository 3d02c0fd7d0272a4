//! Messages of the kernel, byte by byte (include/uapi/linux/nl80211.h has the numbers).

use proptest::prelude::*;
use wl_nl80211::packet_core::ParseableParametrized as _;
use wl_nl80211::packet_generic::GenlHeader;

use super::*;

const IFNAME: u16 = 4;
const MAC: u16 = 6;
const STA_INFO: u16 = 21;
const WIPHY_FREQ: u16 = 38;
const SSID: u16 = 52;
const SURVEY_INFO: u16 = 84;
const CHANNEL_WIDTH: u16 = 159;
/// The kinds of attributes that are read.
const READ: [u16; 9] = [3, IFNAME, 5, MAC, STA_INFO, WIPHY_FREQ, SSID, SURVEY_INFO, CHANNEL_WIDTH];

/// An attribute of netlink: length, kind, value, padding to four bytes.
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
    parsed(bytes).unwrap()
}

fn parsed(bytes: &[u8]) -> Option<Nl80211Message> {
    Nl80211Message::parse_with_param(bytes, GenlHeader { cmd: 0, version: 1 }).ok()
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

#[test]
fn all_that_a_driver_can_tell_is_read() {
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
        attribute(250, &[1, 2, 3]),   // of a kernel to come
    ];
    let survey = [
        u32s(1, 5180),
        attribute(2, &[161]), // NOISE
        attribute(3, &[]),    // IN_USE
        u64s(4, 1_000),       // TIME
        u64s(5, 400),         // TIME_BUSY
        u64s(7, 300),         // TIME_RX
        u64s(8, 50),          // TIME_TX
    ];
    let elsewhere = attribute(SURVEY_INFO, &[u32s(1, 2412), u64s(4, 9)].concat());
    let channels = [message(&elsewhere), message(&attribute(SURVEY_INFO, &survey.concat()))];
    let found = Link::read(&message(&interface()), Some(&message(&station(&fields))), &channels);
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

/// Attributes of the kinds that are read, with fields of any kind, most of them of a length that exists.
fn attributes() -> impl Strategy<Value = Vec<u8>> {
    let value = |length| prop::collection::vec(any::<u8>(), length);
    let values = prop_oneof![value(0..1), value(1..2), value(4..5), value(8..9), value(0..24)];
    let fields = prop::collection::vec((0_u16..48, values), 0..4).prop_map(|fields| {
        fields.iter().flat_map(|(kind, value)| attribute(*kind, value)).collect::<Vec<u8>>()
    });
    let one = (prop::sample::select(READ.as_slice()), fields)
        .prop_map(|(kind, value)| attribute(kind, &value));
    prop::collection::vec(one, 0..3).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(all in prop::collection::vec(attributes(), 3), cut in prop_oneof![Just(0), 0_usize..64]) {
        let cut_off = |bytes: &Vec<u8>| parsed(&bytes[..bytes.len().saturating_sub(cut)]);
        let messages: Vec<Nl80211Message> = all.iter().filter_map(cut_off).collect();
        if let [interface, rest @ ..] = messages.as_slice() {
            Link::read(interface, rest.first(), rest).not_told();
        }
    }

    #[test]
    fn no_fields_make_it_panic(fields in prop::collection::vec(any::<u8>(), 0..200)) {
        for kind in READ {
            if let Some(message) = parsed(&attribute(kind, &fields)) {
                Link::read(&message, Some(&message), std::slice::from_ref(&message)).not_told();
            }
        }
    }
}
