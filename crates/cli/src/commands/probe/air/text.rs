//! The result as text.

use std::fmt::{Display, Write as _};

use wakeai_agent::{Link, PhyRate, Survey, Traffic};
use wakeai_units::Duration;

use super::AirStation;
use super::interval::Interval;

/// The column in which the values begin.
const INDENT: usize = 14;
/// The width of a row. A longer row continues on the next line.
const WIDTH: usize = 80;

pub(super) fn render(station: &AirStation) -> String {
    let AirStation { link, interval, does_not_tell } = station;
    let expected = link.expected.map(|rate| format!("{:.1} Mbit/s", rate.as_mbps_f64()));
    let untold = match does_not_tell.as_slice() {
        [] => vec![Some("nothing".to_owned())],
        names => names.iter().map(|name| Some((*name).to_owned())).collect(),
    };
    let (over, happened) = match interval {
        Some(interval) => (format!("in {:.2} s", interval.elapsed_ms / 1e3), between(interval)),
        None => {
            ("interval".to_owned(), vec![Some("none: the association is a new one".to_owned())])
        }
    };
    let rows = [
        ("interface", head(link)),
        ("channel", channel(link)),
        ("signal", signal(link)),
        ("TX bitrate", link.tx.rate.as_ref().map_or_else(Vec::new, phy)),
        ("sent", [traffic(&link.tx), repeated(link)].concat()),
        ("RX bitrate", link.rx.rate.as_ref().map_or_else(Vec::new, phy)),
        ("received", traffic(&link.rx)),
        ("expected", vec![expected]),
        ("last frame", vec![link.inactive_ms.map(|ms| format!("{ms} ms ago"))]),
        (&*over, happened),
        ("does not tell", untold),
    ];
    rows.into_iter().map(|(name, parts)| row(name, parts.into_iter().flatten())).collect()
}

/// A row with the parts, separated by commas. The row is empty if there are no parts.
fn row(name: &str, parts: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut column = 0;
    for part in parts {
        let width = part.chars().count();
        if text.is_empty() {
            let _ = write!(text, "{name:<INDENT$}");
            column = INDENT;
        } else if column + 2 + width >= WIDTH {
            let _ = write!(text, ",\n{:INDENT$}", "");
            column = INDENT;
        } else {
            text.push_str(", ");
            column += 2;
        }
        text.push_str(&part);
        column += width;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn head(link: &Link) -> Vec<Option<String>> {
    let ssid = link.ssid.as_ref().map(|ssid| format!("SSID {ssid:?}"));
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
        link.beacon_losses.map(|losses| format!("beacons lost {losses} times")),
    ]
}

fn traffic(traffic: &Traffic) -> Vec<Option<String>> {
    let Traffic { rate: _, packets, bytes, airtime_us } = traffic;
    vec![
        packets.map(|packets| count(packets, "packet")),
        unit(*bytes, "bytes"),
        airtime_us.map(|us| format!("{us} us on the air")),
    ]
}

fn repeated(link: &Link) -> Vec<Option<String>> {
    vec![unit(link.retries, "retries"), unit(link.failed, "failed")]
}

fn phy(rate: &PhyRate) -> Vec<Option<String>> {
    vec![
        Some(format!("{:.1} Mbit/s", rate.rate.as_mbps_f64())),
        Some(rate.standard.to_owned()),
        rate.mcs.map(|mcs| format!("MCS {mcs}")),
        rate.streams.map(|streams| count(streams.into(), "stream")),
        unit(rate.width_mhz, "MHz"),
        rate.guard_interval_ns.map(|ns| format!("guard interval {ns} ns")),
    ]
}

fn between(interval: &Interval) -> Vec<Option<String>> {
    let percent = |what: &str, share: Option<f64>| {
        share.map(|share| format!("{what} {:.1} % of the time", share * 100.0))
    };
    let Interval { tx_packets, rx_packets, retries_per_packet, failed_per_packet, .. } = interval;
    vec![
        tx_packets.map(|packets| format!("{} sent", count(packets, "packet"))),
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

fn count(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_told_is_shown_and_the_rest_is_named() {
        let mut link = Link { interface: "wlan0".to_owned(), ..Link::default() };
        link.ssid = Some("caf\u{e9}\u{1b}[2J".to_owned());
        link.tx.packets = Some(7);
        let station = AirStation { link, interval: None, does_not_tell: vec!["signal", "noise"] };
        let expected = "\
interface     wlan0, SSID \"caf\u{e9}\\u{1b}[2J\"
sent          7 packets
interval      none: the association is a new one
does not tell signal, noise
";
        assert_eq!(render(&station), expected, "and a name cannot move the cursor");
    }

    #[test]
    fn a_long_row_goes_on_below_its_values() {
        let parts = vec!["12345678901234567890".to_owned(); 5];
        let lines = row("sent", parts.into_iter());
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{lines:?}");
        assert_eq!(lines[1], "              12345678901234567890, 12345678901234567890");
        assert_eq!(row("sent", [].into_iter()), "");
    }
}
