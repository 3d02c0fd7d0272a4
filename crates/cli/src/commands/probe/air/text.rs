//! The result in words.

use std::fmt::{Display, Write as _};

use wakeai_agent::{Link, PhyRate, Survey, Traffic};
use wakeai_units::Duration;

use super::Station;
use super::interval::Interval;

pub(super) fn render(station: &Station) -> String {
    let Station { link, interval, does_not_tell } = station;
    let mut text = String::new();
    let mut row = |name: &str, parts: Vec<Option<String>>| {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            let _ = writeln!(text, "{name:<14}{}", parts.join(", "));
        }
    };
    row("interface", head(link));
    row("channel", channel(link));
    row("signal", signal(link));
    row("sent", [traffic(&link.tx), repeated(link)].concat());
    row("received", traffic(&link.rx));
    let expected = link.expected.map(|rate| format!("{:.1} Mbit/s", rate.as_mbps_f64()));
    row("expected", vec![expected]);
    row("last frame", vec![link.inactive_ms.map(|ms| format!("{ms} ms ago"))]);
    match interval {
        Some(interval) => row(&format!("in {:.2} s", interval.elapsed_ms / 1e3), between(interval)),
        None => row("interval", vec![Some("none, the association is a new one".to_owned())]),
    }
    let untold =
        if does_not_tell.is_empty() { "nothing".to_owned() } else { does_not_tell.join(", ") };
    row("does not tell", vec![Some(untold)]);
    text
}

fn head(link: &Link) -> Vec<Option<String>> {
    let ssid = link.ssid.as_ref().map(|ssid| format!("SSID {:?}", ssid));
    let connected = |seconds: u32| format!("connected for {}", Duration::from_secs(seconds.into()));
    vec![
        Some(link.interface.clone()),
        ssid,
        link.bssid.map(|bssid| format!("BSSID {bssid}")),
        link.connected_s.map(connected),
    ]
}

fn channel(link: &Link) -> Vec<Option<String>> {
    let Survey { noise_dbm, active_ms, busy_ms, rx_ms, tx_ms } = link.channel;
    let time = |what: &str, ms: Option<u64>| ms.map(|ms| format!("{what} {ms} ms"));
    vec![
        unit(link.frequency_mhz, "MHz"),
        link.width_mhz.map(|width| format!("{width} MHz wide")),
        noise_dbm.map(|dbm| format!("noise {dbm} dBm")),
        time("active", active_ms),
        time("busy", busy_ms),
        time("receiving", rx_ms),
        time("sending", tx_ms),
    ]
}

fn signal(link: &Link) -> Vec<Option<String>> {
    vec![
        unit(link.signal_dbm, "dBm"),
        link.signal_average_dbm.map(|dbm| format!("{dbm} dBm on average")),
        link.beacon_losses.map(|losses| format!("{losses} beacon losses")),
    ]
}

fn traffic(traffic: &Traffic) -> Vec<Option<String>> {
    let Traffic { rate, packets, bytes, airtime_us } = traffic;
    vec![
        rate.as_ref().map(phy),
        unit(*packets, "packets"),
        unit(*bytes, "bytes"),
        airtime_us.map(|us| format!("{us} us on the air")),
    ]
}

fn repeated(link: &Link) -> Vec<Option<String>> {
    vec![unit(link.retries, "retries"), unit(link.failed, "failed")]
}

fn phy(rate: &PhyRate) -> String {
    let parts = [
        Some(rate.standard.to_owned()),
        rate.mcs.map(|mcs| format!("MCS {mcs}")),
        rate.streams
            .map(|streams| format!("{streams} stream{}", if streams == 1 { "" } else { "s" })),
        unit(rate.width_mhz, "MHz"),
        rate.guard_interval_ns.map(|ns| format!("guard interval {ns} ns")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{:.1} Mbit/s ({})", rate.rate.as_mbps_f64(), parts.join(", "))
}

fn between(interval: &Interval) -> Vec<Option<String>> {
    let percent = |what: &str, share: Option<f64>| {
        share.map(|share| format!("{what} {:.1} % of the time", share * 100.0))
    };
    let Interval { tx_packets, rx_packets, retries_per_packet, failed_per_packet, .. } = interval;
    vec![
        tx_packets.map(|packets| format!("{packets} packets sent")),
        rx_packets.map(|packets| format!("{packets} received")),
        retries_per_packet.map(|retries| format!("{retries:.2} retries per packet")),
        failed_per_packet.map(|failed| format!("{:.1} % failed", failed * 100.0)),
        percent("sending", interval.tx_airtime_share),
        percent("receiving", interval.rx_airtime_share),
        percent("channel busy", interval.busy_share),
    ]
}

fn unit(value: Option<impl Display>, unit: &str) -> Option<String> {
    value.map(|value| format!("{value} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_told_is_shown_and_the_rest_is_named() {
        let mut link = Link { interface: "wlan0".to_owned(), ..Link::default() };
        link.ssid = Some("caf\u{e9}\u{1b}[2J".to_owned());
        link.tx.packets = Some(7);
        let station = Station { link, interval: None, does_not_tell: vec!["signal", "noise"] };
        let expected = "\
interface     wlan0, SSID \"caf\u{e9}\\u{1b}[2J\"
sent          7 packets
interval      none, the association is a new one
does not tell signal, noise
";
        assert_eq!(render(&station), expected, "and a name cannot move the cursor");
    }
}
