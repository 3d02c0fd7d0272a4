//! `wakeai status --all`: the stations of an access point in one table.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use wakeai_api::{AskError, Body, Fleet, FleetStation, Holds, Request};

use super::super::agents;
use crate::failure::note;
use crate::output;

/// The time from the end of a query to the next query, if the table is repeated.
pub(super) const PAUSE: Duration = Duration::from_secs(10);
/// The time between two questions to the agent.
const EVERY: Duration = Duration::from_millis(200);
/// The command waits at most this long until the agent sends the query; then it prints what the agent
/// already knows. Beside 1024 stations, the agent's share of airtime can delay the query for longer.
const MOST_WAIT: Duration = Duration::from_mins(2);

/// The view of one agent, as JSON.
#[derive(Serialize)]
pub(super) struct View<'a> {
    socket: &'a Path,
    pub(super) fleet: Fleet,
}

/// Asks every agent. All queries are begun before the answers to the first one are awaited.
pub(super) fn ask_all(
    sockets: &[PathBuf],
) -> impl ExactSizeIterator<Item = Result<View<'_>, AskError>> {
    let begun: Vec<_> = sockets
        .iter()
        .map(|socket| (socket, ask(socket, Request::Fleet { query: None })))
        .collect();
    begun.into_iter().map(|(socket, begun)| {
        let fleet = wait(socket, begun?)?;
        Ok(View { socket, fleet })
    })
}

fn ask(socket: &Path, request: Request) -> Result<Fleet, AskError> {
    // The agent answers from its event loop, which may be busy with a tick.
    match wakeai_api::ask(socket, request, agents::PATIENCE * 2)? {
        Body::Fleet(fleet) => Ok(fleet),
        _ => Err(AskError::other_answer(socket)),
    }
}

/// Waits for the end of the query.
fn wait(socket: &Path, mut fleet: Fleet) -> Result<Fleet, AskError> {
    let began = Instant::now();
    let mut told = false;
    while !fleet.done {
        if fleet.left_s.is_none() && began.elapsed() > MOST_WAIT {
            note("the agent could not send its query yet, so the table has what it knows already");
            break;
        }
        if let Some(left) = fleet.left_s.filter(|left| *left > 3.0 && !told) {
            told = true;
            if std::io::stderr().is_terminal() {
                let peers = fleet.stations.len() - 1;
                note(format!("asking {peers} stations takes up to {left:.0} s"));
            }
        }
        std::thread::sleep(EVERY);
        fleet = ask(socket, Request::Fleet { query: Some(fleet.query) })?;
    }
    Ok(fleet)
}

/// The stations as a table, with the remarks about it.
pub(super) fn render(fleet: &Fleet) -> String {
    let others = || fleet.stations.iter().filter(|station| !station.own);
    let answered = others().filter(|station| station.answered).count();
    let count = others().count();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "access point {}: {} of {count} other stations answered",
        fleet.bssid, answered
    );
    let head = [
        "station",
        "answer",
        "version",
        "state",
        "law",
        "sending",
        "Mbit/s",
        "received",
        "share",
        "queueing ms",
        "window",
        "peers",
        "clock ms",
        "up",
        "faults",
    ];
    text.push_str(&output::table("  ", head, 6, fleet.stations.iter().map(row)));
    let without: Vec<&str> = others()
        .filter(|station| station.answer_age_s.is_none())
        .map(|station| station.station.as_str())
        .collect();
    if !without.is_empty() {
        let _ = writeln!(
            text,
            "  without an answer: {}. An agent of an older version does not answer, and an answer can get lost: ask \
             again",
            without.join(", ")
        );
    }
    for other in &fleet.other_versions {
        let _ = writeln!(text, "  {}", other.words());
    }
    for other in &fleet.other_laws {
        let _ = writeln!(text, "  {}", other.words());
    }
    text
}

fn row(station: &FleetStation) -> [String; 15] {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let name = |value: &Option<String>| match value.as_deref() {
        None | Some("") => "-".to_owned(),
        Some(value) => value.to_owned(),
    };
    [
        station.station.clone(),
        match (station.own, station.answered, station.answer_age_s) {
            (true, ..) => "itself".to_owned(),
            (_, true, _) => "yes".to_owned(),
            (_, false, Some(age)) => format!("{age:.0} s ago"),
            (_, false, None) => "none".to_owned(),
        },
        name(&station.software),
        name(&station.state),
        law(station),
        if station.sending { "yes" } else { "no" }.to_owned(),
        format!("{:.2}", station.delivery_rate_mbps),
        number(station.received.as_ref().map(|of| of.rate_mbps)),
        number(station.share_mbps),
        format!("{:.1}", station.growth_ms),
        window(station),
        station.peers.map_or("-".to_owned(), |peers| peers.to_string()),
        match (station.clock_ahead_ms, station.clock_error_ms) {
            (Some(ahead), Some(error)) => format!("{ahead:+.1} ±{error:.1}"),
            _ => "-".to_owned(),
        },
        station.uptime_s.map_or("-".to_owned(), uptime),
        faults(station),
    ]
}

/// The name of the law, and whether the station holds something else than the one that was asked.
fn law(station: &FleetStation) -> String {
    let name = station.law.as_deref().filter(|law| !law.is_empty()).unwrap_or("-");
    match station.holds {
        Some(holds @ (Holds::Other | Holds::Unannounced)) => format!("{name} ({})", holds.name()),
        Some(Holds::Same) | None => name.to_owned(),
    }
}

fn window(station: &FleetStation) -> String {
    match (station.floor, station.ceiling) {
        _ if station.software.is_none() => "-".to_owned(),
        (None, None) => "unbounded".to_owned(),
        (floor, ceiling) => {
            let ceiling = ceiling.map_or(String::new(), |ceiling| ceiling.to_string());
            format!("{}..{ceiling}", floor.unwrap_or(0))
        }
    }
}

fn uptime(seconds: f64) -> String {
    match seconds {
        less if less < 120.0 => format!("{less:.0} s"),
        less if less < 7_200.0 => format!("{:.0} min", less / 60.0),
        less if less < 172_800.0 => format!("{:.0} h", less / 3_600.0),
        more => format!("{:.0} d", more / 86_400.0),
    }
}

/// The counts by kind. A fault that lasts has an exclamation mark.
fn faults(station: &FleetStation) -> String {
    let Some(faults) = &station.faults else { return "-".to_owned() };
    if faults.is_empty() {
        return "none".to_owned();
    }
    let words = faults.iter().map(|(kind, count)| {
        let lasts = if station.lasting_faults.contains(kind) { "!" } else { "" };
        format!("{kind} {count}{lasts}")
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeai_api::Received;

    fn fleet() -> Fleet {
        let own = FleetStation {
            station: format!("{:016x}", 1),
            own: true,
            answered: true,
            answer_age_s: Some(0.0),
            software: Some("0.2.0".to_owned()),
            state: Some("controlling".to_owned()),
            law: Some("airtime".to_owned()),
            uptime_s: Some(90.0),
            faults: Some([("send".to_owned(), 3), ("late_tick".to_owned(), 1)].into()),
            lasting_faults: vec!["send".to_owned()],
            floor: Some(4),
            ceiling: Some(40),
            peers: Some(2),
            ..FleetStation::default()
        };
        let other = FleetStation {
            station: format!("{:016x}", 2),
            own: false,
            answer_age_s: Some(0.4),
            clock_ahead_ms: Some(-250.04),
            clock_error_ms: Some(1.25),
            faults: Some(std::collections::BTreeMap::new()),
            ..own.clone()
        };
        let silent = FleetStation {
            station: format!("{:016x}", 3),
            sending: true,
            delivery_rate_mbps: 7.5,
            received: Some(Received {
                rate_mbps: 31.0,
                max_mbps: None,
                min_rtt_ms: None,
                growth_ms: 4.0,
            }),
            ..FleetStation::default()
        };
        Fleet {
            bssid: "02:00:5e:10:00:01".to_owned(),
            stations: vec![own, other, silent],
            ..Fleet::default()
        }
    }

    #[test]
    fn one_line_has_a_station_and_silent_stations_are_named() {
        let text = render(&fleet());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "access point 02:00:5e:10:00:01: 1 of 2 other stations answered");
        assert!(lines[2].contains("itself") && lines[2].contains("late_tick 1, send 3!"), "{text}");
        assert!(lines[3].contains("-250.0 ±1.2") && lines[3].ends_with("none"), "{text}");
        assert!(lines[4].contains("7.50     31.00") && lines[4].contains(" none "), "{text}");
        assert!(lines[5].contains("without an answer: 0000000000000003."), "{text}");
    }

    #[test]
    fn a_station_of_another_law_has_a_mark_and_a_line() {
        let mut fleet = fleet();
        fleet.stations[1].holds = Some(Holds::Other);
        fleet.stations[2].holds = Some(Holds::Unannounced);
        fleet.other_laws = vec![wakeai_api::OtherLaw {
            stations: vec![fleet.stations[2].station.clone()],
            law: None,
            law_version: None,
            differs: Vec::new(),
        }];
        let text = render(&fleet);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].contains(" airtime ") && lines[3].contains("airtime (other)"), "{text}");
        assert!(lines[4].contains("- (unannounced)"), "{text}");
        assert!(text.contains("station 0000000000000003 announces no law"), "{text}");
    }

    #[test]
    fn an_earlier_answer_has_its_age() {
        let mut fleet = fleet();
        fleet.stations[1].answered = false;
        fleet.stations[1].answer_age_s = Some(31.7);
        let text = render(&fleet);
        assert!(text.contains("0 of 2 other stations answered"), "{text}");
        assert!(text.contains(" 32 s ago "), "{text}");
        assert!(!text.contains("answer: 0000000000000002"), "{text}");
    }
}
