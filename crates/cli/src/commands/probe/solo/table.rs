//! The result as text.

use std::fmt::Write as _;

use wakeai_probe::solo::{Grade, Leg, RoundTrips, SoloReport};

use super::company::Company;

pub(super) fn render(report: &SoloReport, company: &Company) -> String {
    let SoloReport { up, down, idle } = report;
    let mut text = format!("idle    {}\n", round_trips(idle));
    for (name, leg) in [("up", up), ("down", down)] {
        let Leg { goodput_mbps, slowest_second_mbps, rtt, grade } = leg;
        let _ = writeln!(
            text,
            "{name:<8}{goodput_mbps:.2} Mbit/s, {slowest_second_mbps:.2} Mbit/s in the slowest second"
        );
        let _ = writeln!(text, "        {}: {}", round_trips(rtt), words(*grade));
    }
    let _ = writeln!(text, "alone   {}", alone(company));
    text
}

fn round_trips(found: &RoundTrips) -> String {
    let RoundTrips { median_ms, p95_ms, answers, lost, .. } = found;
    let of = answers + lost;
    format!("RTT {median_ms:.1} ms, at the 95th percentile {p95_ms:.1} ms, {lost} of {of} lost")
}

fn words(grade: Grade) -> &'static str {
    match grade {
        Grade::Excellent => "excellent, the queues add less than 5 ms",
        Grade::Good => "good, the queues add less than 30 ms",
        Grade::Fair => "fair, the queues add less than 60 ms",
        Grade::Poor => "poor, the queues add up to 200 ms and a call lags",
        Grade::Bad => "bad, the queues add up to 400 ms",
        Grade::VeryBad => "very bad, the queues add 400 ms and more",
    }
}

fn alone(company: &Company) -> String {
    let Company { law, sending_peers, unsteady } = company;
    let bounded = law.as_deref().filter(|law| *law != "none").map_or_else(String::new, |law| {
        format!("; the agent's law {law} has set bounds for these connections, too")
    });
    let verdict = match (sending_peers.len(), unsteady) {
        (0, false) if law.is_some() => "yes: no peer of the agent was sending".to_owned(),
        (0, false) => "no sign of others; without an agent only the goodput can tell".to_owned(),
        (0, true) => "perhaps not: there were seconds with far less goodput".to_owned(),
        (peers, _) => {
            let names: Vec<&str> = sending_peers.iter().map(String::as_str).collect();
            format!(
                "no, this is not what the station reaches alone: {peers} peers were sending ({})",
                names.join(", ")
            )
        }
    };
    verdict + &bounded
}
