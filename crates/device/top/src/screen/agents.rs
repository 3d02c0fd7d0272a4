//! The agents: a line each above the table, and a page with their peers.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use wakeai_api::{Answers, Peer};
use wakeai_units::Rate;

use super::{BOLD, extended, fitting};
use crate::reading::Reading;

/// The largest number of agents that have a line above the table.
const MOST: usize = 3;

/// A line for each of the first agents, and a line with the number of the others.
pub(super) fn lines(reading: &Reading, width: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<_> = reading
        .agents
        .iter()
        .take(MOST)
        .map(|agent| Line::raw(fitting(&summary(agent, &place(agent, reading), width), width)))
        .collect();
    if reading.agents.len() > MOST {
        let more = reading.agents.len() - MOST;
        lines.push(Line::raw(format!("and {more} more agents: key a")));
    }
    lines
}

/// The agent in a line: its parts, the most important first, as far as `width` has room.
fn summary(agent: &Answers, place: &str, width: usize) -> String {
    let Answers { status, bounds, targets, peers, .. } = agent;
    let window = match (bounds.floor, bounds.ceiling) {
        (None, None) => "no bounds".to_owned(),
        (floor, Some(ceiling)) => format!("window {}..{ceiling}", floor.unwrap_or(0)),
        (Some(floor), None) => format!("window {floor}.."),
    };
    let parts = [
        format!("law {}", bounds.law),
        format!("{} of {} stations sending", targets.senders, peers.len() + 1),
        window,
        targets.share_mbps.map(|share| format!("share {}", rate(share))).unwrap_or_default(),
        format!("delivers {}", rate(status.delivery_rate_mbps)),
        status.growth_ms.map(|ms| format!("queueing delay {ms:.1} ms")).unwrap_or_default(),
    ];
    extended(format!("{place}: {}", status.state.words()), ", ", &parts, width)
}

/// The agent's interface and namespace. The namespace's name is known only if the reading has a
/// connection in that namespace.
fn place(agent: &Answers, reading: &Reading) -> String {
    let interface = &agent.status.interface;
    let mut there = reading.connections.iter().filter(|one| one.id.netns == agent.status.netns);
    match there.next().map(|one| &*one.namespace) {
        None | Some("") => interface.clone(),
        Some(namespace) => format!("{interface} in {namespace}"),
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, reading: &Reading) {
    let mut lines = Vec::new();
    if reading.agents.is_empty() {
        lines.push(Line::raw(
            "No agent of this machine can be asked (`wakeai agent --config FILE` starts one).",
        ));
    }
    for agent in &reading.agents {
        let Answers { status, bounds, .. } = agent;
        lines.push(Line::styled(
            format!("{} (pid {}): {}", place(agent, reading), status.pid, status.state.words()),
            BOLD,
        ));
        lines.push(Line::raw(format!(
            "  station {} at access point {}",
            status.station,
            status.bssid.as_deref().unwrap_or("none")
        )));
        let why =
            if bounds.why.is_empty() { "no reason yet".to_owned() } else { bounds.why.join("; ") };
        lines.push(Line::raw(format!("  {why}")));
        if !agent.peers.is_empty() {
            let head = format!(
                "  {:<18}{:>8}{:>10}{:>10}{:>10}{:>8}",
                "PEER", "SENDING", "Mb/s", "ALONE", "QUEUE ms", "AGE s"
            );
            lines.push(Line::from(Span::styled(head, BOLD)));
        }
        lines.extend(agent.peers.iter().map(|peer| Line::raw(row(peer))));
        lines.push(Line::raw(""));
    }
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

fn row(peer: &Peer) -> String {
    let alone = peer.max_mbps.map_or("-".to_owned(), |mbps| format!("{mbps:.2}"));
    format!(
        "  {:<18}{:>8}{:>10.2}{alone:>10}{:>10.1}{:>8.1}",
        peer.station,
        if peer.sending { "yes" } else { "no" },
        peer.delivery_rate_mbps,
        peer.growth_ms,
        peer.age_ms / 1000.0
    )
}

fn rate(mbps: f64) -> String {
    format!("{:#}", Rate::from_mbps_f64(mbps))
}
