//! Draws the screen: a function of the readings of the last minute, of the user's view, and of the status.
//!
//! The screen has bold and reversed text and no colours, so it looks the same on every terminal.

mod agents;
mod detail;
mod table;

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use wakeai_units::Rate;

use crate::reading::{Limit, Reading};
use crate::view::{Page, View};

pub use table::text as table_text;

/// What the screen shows besides the readings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// What is shown: `live`, or the place of a replay.
    pub mode: String,
    /// Something that the user has to know, such as the end of a recording.
    pub message: Option<String>,
}

/// The page of the keys.
const HELP: &str = "\
q, Ctrl-C      quit
up, down       select a connection (also j and k; Page Up, Page Down)
enter          the last minute of the selected connection; again: back
s, S           sort by the next, by the previous column
r              reverse the order
/              type a text or a network such as 10.0.0.0/8: only rows that contain
               it stay; enter ends, Esc removes it
space          hold: the screen stays as it is; again: go on
a              the agents and their peers
Esc            back to the table

In a replay:
left, right    one reading back, forward
Home, End      the first, the last reading
b              play backward, or forward again
+, -           twice as fast, half as fast

EV 1/2/3/4 counts congestion events since the watch began: reordering,
overflow of the local queue, fast recovery, timeout.";

pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// The largest number of lines that say what is missing.
const MISSING_LINES: u16 = 2;

/// Draws the last reading of `window`, which has the readings of the last minute.
pub fn draw(frame: &mut Frame<'_>, view: &View, window: &[Arc<Reading>], status: &Status) {
    let nothing = Arc::new(Reading::default());
    let reading = window.last().unwrap_or(&nothing);
    let width = usize::from(frame.area().width);
    let agents = agents::lines(reading, width);
    let missing = missing(reading, status);
    let missing_lines = match missing.chars().count() {
        0 => 0,
        length => (length.div_ceil(width.max(1)) as u16).min(MISSING_LINES),
    };
    let rows = [
        Constraint::Length(1),
        Constraint::Length(agents.len() as u16),
        Constraint::Min(1),
        Constraint::Length(missing_lines),
        Constraint::Length(1),
    ];
    let [top, agent, body, lower, bottom] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(heading(reading, status, width), top);
    frame.render_widget(Paragraph::new(agents), agent);
    match view.page {
        Page::Table => table::draw(frame, body, view, window),
        Page::Detail => detail::draw(frame, body, view, window),
        Page::Agents => agents::draw(frame, body, reading),
        Page::Help => frame.render_widget(Paragraph::new(HELP), body),
    }
    frame.render_widget(Paragraph::new(missing).wrap(Wrap { trim: true }), lower);
    frame.render_widget(keys(view, width), bottom);
}

/// The first line: as many of its parts as there is room for, and the mode at the right.
fn heading(reading: &Reading, status: &Status, width: usize) -> Line<'static> {
    let all = &reading.connections;
    let sending = all.iter().filter(|one| one.limit.is_some_and(|limit| limit != Limit::Idle));
    let sum = |of: fn(&crate::SeenConnection) -> Option<Rate>| -> Rate {
        all.iter().filter_map(of).sum()
    };
    let parts = [
        clock(reading),
        format!("{} connections", all.len()),
        format!("{} sending", sending.count()),
        format!("sent {:#}", sum(|one| one.sent)),
        format!("received {:#}", sum(|one| one.received)),
    ];
    let mode = status.mode.chars().count();
    let text = extended("wakeai top".to_owned(), "  ", &parts, width.saturating_sub(mode + 2));
    let gap = width.saturating_sub(text.chars().count() + mode);
    Line::from(vec![
        Span::styled(text, BOLD),
        Span::raw(" ".repeat(gap)),
        Span::styled(status.mode.clone(), REVERSED),
    ])
}

/// The text with as many of the parts behind it as `width` characters have room for.
fn extended(mut text: String, separator: &str, parts: &[String], width: usize) -> String {
    for part in parts.iter().filter(|part| !part.is_empty()) {
        if text.chars().count() + separator.len() + part.chars().count() > width {
            break;
        }
        text = text + separator + part;
    }
    text
}

/// The time of day; in a simulation the time since the start of the run.
fn clock(reading: &Reading) -> String {
    let seconds = reading.at.as_nanos() / 1_000_000_000;
    match reading.clock_s {
        Some(clock) => {
            let day = clock % 86_400;
            format!("{:02}:{:02}:{:02} UTC", day / 3600, day / 60 % 60, day % 60)
        }
        None => format!("{}:{:02}", seconds / 60, seconds % 60),
    }
}

fn missing(reading: &Reading, status: &Status) -> String {
    let missing =
        (!reading.missing.is_empty()).then(|| format!("Not shown: {}", reading.missing.join("; ")));
    status.message.iter().cloned().chain(missing).collect::<Vec<_>>().join("; ")
}

/// The last line: the keys, or the text of the filter while it is typed.
fn keys(view: &View, width: usize) -> Line<'static> {
    if view.typing {
        return Line::from(vec![
            Span::styled("filter: ", BOLD),
            Span::raw(view.filter.text.clone()),
            Span::styled(" ", REVERSED),
        ]);
    }
    let filter = match view.filter.text.as_str() {
        "" => String::new(),
        text => format!("  filter: {text}"),
    };
    let long = "q quit  ? keys  s sort  r reverse  / filter  space hold  enter detail  a agents";
    let short = "q quit  ? keys";
    let text = if long.len() + filter.chars().count() <= width { long } else { short };
    Line::from(vec![Span::raw(text), Span::styled(filter, BOLD)])
}

/// A line of `width` characters at most. What does not fit is left out, and `…` stands for it.
pub(crate) fn fitting(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// The part of `area` below its first `rows` rows.
pub(crate) fn below(area: Rect, rows: u16) -> Rect {
    let [_, rest] = Layout::vertical([Constraint::Length(rows), Constraint::Min(0)]).areas(area);
    rest
}
