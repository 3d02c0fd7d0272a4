//! The table of connections, on the screen and as plain text.

use std::fmt::Write as _;
use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{BOLD, REVERSED};
use crate::columns::{Column, SPARKS, choose};
use crate::reading::{Reading, SeenConnection};
use crate::view::View;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View, window: &[Arc<Reading>]) {
    let Some(reading) = window.last() else { return };
    let rows = view.arrange(reading);
    if rows.is_empty() {
        let text = if reading.connections.is_empty() {
            "There are no TCP connections."
        } else {
            "No connection fits the filter (Esc removes its text)."
        };
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let columns = choose(&rows, usize::from(area.width));
    let mut lines = vec![head(&columns, view)];
    let room = usize::from(area.height).saturating_sub(1);
    // The selected row is always on the screen.
    let selected = rows.iter().position(|row| Some(row.id) == view.selected);
    let first = selected.map_or(0, |row| (row + 1).saturating_sub(room));
    for row in rows.iter().skip(first).take(room) {
        let style = if Some(row.id) == view.selected { REVERSED } else { Style::new() };
        lines.push(Line::styled(line(row, &columns, window), style));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// The table of the last reading in `window` as text, for a terminal of `width` columns.
pub fn text(view: &View, window: &[Arc<Reading>], width: usize) -> String {
    let Some(reading) = window.last() else { return String::new() };
    let rows = view.arrange(reading);
    if rows.is_empty() {
        return String::new();
    }
    let columns = choose(&rows, width);
    let mut text = head(&columns, view).to_string().trim_end().to_owned() + "\n";
    for row in rows {
        let _ = writeln!(text, "{}", line(row, &columns, window).trim_end());
    }
    text
}

fn head(columns: &[(Column, usize)], view: &View) -> Line<'static> {
    let mut spans = Vec::new();
    for (column, width) in columns {
        let mark = match (*column == view.sort, view.reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        let text = format!("{}{mark}", column.head());
        let style = if mark.is_empty() { BOLD } else { BOLD.patch(REVERSED) };
        spans.push(Span::styled(aligned(*column, &text, *width), style));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

fn line(row: &SeenConnection, columns: &[(Column, usize)], window: &[Arc<Reading>]) -> String {
    let recent = &window[window.len().saturating_sub(SPARKS + 1)..];
    let past: Vec<_> = recent.iter().map(|reading| reading.find(row.id)).collect();
    columns.iter().fold(String::new(), |text, (column, width)| {
        text + &aligned(*column, &column.cell(row, &past), *width) + " "
    })
}

fn aligned(column: Column, text: &str, width: usize) -> String {
    if column.is_number() { format!("{text:>width$}") } else { format!("{text:<width$}") }
}
