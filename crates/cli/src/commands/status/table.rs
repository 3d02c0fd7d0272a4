//! The state of an agent as text.

use std::fmt::Write as _;

use wakeai_api::{Answers, Holds, Status};
use wakeai_units::Rate;

use super::alone;
use crate::output;

/// One agent: a paragraph, a table of its connections and a table of its peers.
pub(super) fn render(said: &Answers) -> String {
    let mut text = head(&said.status);
    text.push_str(&alone::words(&said.status));
    text.push_str(&bounds(said));
    text.push_str(&notes(said));
    text.push_str(&connections(said));
    text.push_str(&datagrams(&said.status));
    text.push_str(&peers(said));
    text
}

/// The agent, its station, and what the station measures.
fn head(status: &Status) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} (namespace {}, pid {}): {}, law {}",
        status.interface,
        status.netns,
        status.pid,
        status.state.words(),
        status.law
    );
    let _ = writeln!(
        text,
        "  station {} at access point {}, link {}",
        status.station,
        status.bssid.as_deref().unwrap_or("none"),
        rate(status.link_rate_mbps)
    );
    let _ = writeln!(
        text,
        "  {} stations sending, {} peers; delivery rate {}, RTT {} (minimum {}, queueing delay {})",
        status.senders,
        status.peers,
        rate(Some(status.delivery_rate_mbps)),
        time(status.rtt_ms),
        time(status.min_rtt_ms),
        time(status.growth_ms)
    );
    if let Some(of) = &status.received {
        let _ = writeln!(
            text,
            "  receiving {} (minimum RTT {}, queueing delay {})",
            rate(Some(of.rate_mbps)),
            time(of.min_rtt_ms),
            time(Some(of.growth_ms))
        );
    }
    text
}

/// The rate from which on what no rule bounds is shown, Mbit/s.
const NOT_GOVERNED_SHOWN: f64 = 0.1;

/// The station's bounds, its share and its reservation.
fn bounds(said: &Answers) -> String {
    let bounds = &said.bounds;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "  window {}..{} segments, receive window {}, pacing {}{}: {}",
        bounds.floor.unwrap_or(0),
        bounds.ceiling.map_or("unbounded".to_owned(), |ceiling| ceiling.to_string()),
        bounds.receive.map_or("unbounded".to_owned(), |window| window.to_string()),
        bounds.pacing_mbps.map_or("none".to_owned(), |mbps| rate(Some(mbps))),
        bounds.unwindowed_mbps.map_or(String::new(), |mbps| format!(", UDP {}", rate(Some(mbps)))),
        if bounds.why.is_empty() { "no reason yet".to_owned() } else { bounds.why.join("; ") }
    );
    let _ = writeln!(
        text,
        "  share {}, of {} of all stations together",
        rate(said.targets.share_mbps),
        rate(Some(said.targets.total_mbps))
    );
    if let Some(own) = &said.status.reservation {
        let _ = writeln!(
            text,
            "  reservation of {}: {}{}",
            rate(Some(own.rate_mbps)),
            own.why,
            if own.short { "; the station delivers less" } else { "" }
        );
    }
    text
}

/// What went wrong, and what differs from what the agent expects.
fn notes(said: &Answers) -> String {
    let status = &said.status;
    let mut text = String::new();
    let faults: Vec<_> = said
        .metrics
        .iter()
        .filter(|(name, count)| name.starts_with("faults_") && **count > 0)
        .map(|(name, count)| format!("{} {count}", &name["faults_".len()..]))
        .collect();
    if !faults.is_empty() {
        let _ = writeln!(text, "  faults since the start: {}", faults.join(", "));
    }
    if let Some(departs) = status.departure_times {
        let how = if departs { "wait for their departure" } else { "are marked and dropped" };
        let _ = writeln!(text, "  datagrams above their flow's rate {how}");
    }
    if let Some(mbps) = status.not_governed_mbps.filter(|mbps| *mbps >= NOT_GOVERNED_SHOWN) {
        let of = "tunnels, containers or tethering";
        let _ = writeln!(text, "  not governed: {} of {of}", rate(Some(mbps)));
    }
    for drift in &status.drifts {
        let _ = writeln!(text, "  {}", drift.words());
    }
    for other in &status.other_versions {
        let _ = writeln!(text, "  {}", other.words());
    }
    for other in &status.other_laws {
        let _ = writeln!(text, "  {}", other.words());
    }
    text
}

fn connections(said: &Answers) -> String {
    let rows = said.status.connections.iter().map(|connection| {
        [
            connection.local.to_string(),
            connection.remote.to_string(),
            connection.algorithm.clone(),
            if connection.sending { "yes" } else { "no" }.to_owned(),
            connection.cwnd.to_string(),
            format!("{:.1}", connection.rtt_ms),
        ]
    });
    let mut text =
        table(["connection", "to", "algorithm", "sending", "cwnd", "RTT ms"], rows.collect());
    let left_out = said.status.connections_left_out;
    if left_out > 0 {
        let _ = writeln!(text, "  and {left_out} idle connections");
    }
    text
}

/// The flows of UDP that send something now.
fn datagrams(status: &Status) -> String {
    let flows = status.datagrams.iter().flatten();
    let flows = flows.filter(|flow| flow.rate_mbps > 0.0 || flow.bound_mbps.is_some());
    let rows = flows.map(|flow| {
        [
            flow.local.clone(),
            flow.remote.clone(),
            if flow.tunnel { "tunnel" } else { "" }.to_owned(),
            format!("{:.2}", flow.rate_mbps),
            flow.bound_mbps.map_or("-".to_owned(), |mbps| format!("{mbps:.2}")),
            flow.marked.to_string(),
            flow.dropped.to_string(),
        ]
    });
    table(["UDP from", "to", "", "Mbit/s", "bound", "marked", "dropped"], rows.collect())
}

fn peers(said: &Answers) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    let rows = said.peers.iter().map(|peer| {
        [
            peer.station.clone(),
            if peer.sending { "yes" } else { "no" }.to_owned(),
            format!("{:.2}", peer.delivery_rate_mbps),
            number(peer.received.as_ref().map(|of| of.rate_mbps)),
            number(peer.max_mbps),
            number(Some(peer.growth_ms)),
            reserved(peer.reserved_mbps, peer.admitted),
            peer.holds.map_or("-", Holds::name).to_owned(),
            format!("{:.1}", peer.age_ms / 1000.0),
        ]
    });
    let head = [
        "peer",
        "sending",
        "Mbit/s",
        "received",
        "alone",
        "queueing ms",
        "reserved",
        "law",
        "age s",
    ];
    table(head, rows.collect())
}

fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    output::table("  ", head, 3, rows)
}

/// The rate that a peer asks for, in parentheses if it is not admitted.
fn reserved(mbps: Option<f64>, admitted: bool) -> String {
    match mbps {
        None => "-".to_owned(),
        Some(mbps) if admitted => format!("{mbps:.2}"),
        Some(mbps) => format!("({mbps:.2})"),
    }
}

fn rate(mbps: Option<f64>) -> String {
    mbps.map_or("unknown".to_owned(), |mbps| format!("{:#}", Rate::from_mbps_f64(mbps)))
}

fn time(ms: Option<f64>) -> String {
    ms.map_or("unknown".to_owned(), |ms| format!("{ms:.1} ms"))
}
