//! The acknowledgements of applications that write at a steady rate.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

mod common;

use common::{DOWN, UP, scenario, simulate};
use wakeai_medium::{Destination, Node};
use wakeai_sim::{Observer, Seen};
use wakeai_units::Duration;

/// Counts the data segments that reach the receiver, those of them with PSH, and the acknowledgements that it sends.
#[derive(Default)]
struct Counts {
    data: u32,
    pushed: u32,
    acks: u32,
}

impl Observer for Counts {
    fn on_sent(&mut self, _: Duration, _: Node, _: Destination, packet: Seen<'_>) {
        let Seen::Segment { to_sender, segment, .. } = packet else { return };
        self.acks += u32::from(to_sender && !segment.flags.syn);
    }

    fn on_received(&mut self, _: Duration, _: Node, _: Node, packet: Seen<'_>) {
        let Seen::Segment { to_sender, segment, .. } = packet else { return };
        let is_data = !to_sender && segment.len > 0;
        self.data += u32::from(is_data);
        self.pushed += u32::from(is_data && segment.flags.psh);
    }
}

/// What an upload of an application with the limit `limit` shows in 10 s: acknowledgements per
/// 100 segments, and the RTT's median in ms.
fn upload(limit: &str, tcp: &str) -> (u32, f64) {
    let flow = format!("{UP}\nlimit = \"{limit}\"");
    let profile = ("stations.tablet.tcp".to_owned(), tcp.to_owned());
    let scenario = scenario("802.11n", 1, &flow, "").with_overrides(&[profile]).unwrap();
    let (outcome, counts) = simulate(&scenario, 1, Counts::default());
    let rtt = outcome.outcome.rtt[0].percentile(50.0).unwrap().as_millis_f64();
    (100 * counts.acks / counts.data, rtt)
}

#[test]
fn linux_acknowledges_the_writes_of_a_slow_application_at_once() {
    // A write is one segment up to 2.3 Mbit/s, two at 4, three at 6, and nine at 20 Mbit/s. Each
    // write is acknowledged at its end. The ACKs of the lab on Linux 6.18 are in
    // docs/decisions/027.
    for (limit, expected) in
        [("100kbit/s", 100), ("500kbit/s", 100), ("2Mbit/s", 100), ("4Mbit/s", 50), ("6Mbit/s", 66)]
    {
        let (acks, rtt) = upload(limit, "linux");
        assert!((expected..expected + 8).contains(&acks), "{limit}: {acks} ACKs of 100 segments");
        assert!(rtt < 5.0, "{limit}: {rtt} ms");
    }
}

#[test]
fn the_server_sends_packets_of_several_segments_and_stations_send_single_ones() {
    // PSH is at the end of each packet of several segments (decision 043). Of single ones few have it.
    let per_100 = |flow| {
        let counts = simulate(&scenario("802.11n", 1, flow, ""), 1, Counts::default()).1;
        assert!(counts.data > 10_000, "{} segments", counts.data);
        100 * counts.pushed / counts.data
    };
    let (up, down) = (per_100(UP), per_100(DOWN));
    assert!(up < 1, "{up} of 100 segments of an upload");
    assert!((2..=50).contains(&down), "{down} of 100 segments of a download");
}

#[test]
fn the_classic_receiver_delays_the_acks_of_a_slow_application() {
    let (acks, rtt) = upload("500kbit/s", "classic");
    assert!((49..=52).contains(&acks), "{acks} ACKs of 100 segments");
    assert!(rtt > 20.0, "{rtt} ms");
}
