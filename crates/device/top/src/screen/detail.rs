//! One connection: its figures, and its last minute as curves.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph};
use wakeai_connection::INFINITE_SSTHRESH;
use wakeai_units::{Duration, Rate};

use super::{BOLD, below, fitting};
use crate::columns::Column;
use crate::reading::{Reading, SeenConnection};
use crate::record::SHOWN;
use crate::view::View;

/// From this width on the curves stand side by side.
const WIDE: u16 = 120;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View, window: &[Arc<Reading>]) {
    let found = view.selected.and_then(|id| window.iter().rev().find_map(|one| one.find(id)));
    let (Some(connection), Some(last)) = (found, window.last()) else {
        frame.render_widget(Paragraph::new("The connection is gone (Esc: back)."), area);
        return;
    };
    let is_gone = last.find(connection.id).is_none();
    let facts = facts(connection, is_gone, usize::from(area.width));
    let used = facts.len() as u16;
    frame.render_widget(Paragraph::new(facts), area);
    let charts = charts(connection, window);
    let parts = vec![Constraint::Fill(1); charts.len()];
    let rest = below(area, used);
    let layout =
        if area.width >= WIDE { Layout::horizontal(parts) } else { Layout::vertical(parts) };
    for (chart, place) in charts.iter().zip(layout.split(rest).iter()) {
        draw_chart(frame, *place, chart);
    }
}

/// The connection in lines.
fn facts(connection: &SeenConnection, is_gone: bool, width: usize) -> Vec<Line<'static>> {
    let cell = |column: Column| column.cell(connection, &[]);
    let figures = &connection.figures;
    let title = format!(
        "{}  {} > {}  {}{}",
        cell(Column::Process),
        cell(Column::Local),
        cell(Column::Peer),
        cell(Column::Algorithm),
        if is_gone { "  (gone)" } else { "" }
    );
    let ssthresh = match figures.ssthresh.get() {
        INFINITE_SSTHRESH.. => "none".to_owned(),
        segments => segments.to_string(),
    };
    let rate = |rate: Option<Rate>| rate.map_or("-".to_owned(), |rate| format!("{rate:#}"));
    let events = connection.events.map_or("not seen".to_owned(), |events| {
        let [reordering, overflow, recovery, timeout] = events.counts;
        format!("reordering {reordering}, local overflow {overflow}, fast recovery {recovery}, timeout {timeout}")
    });
    let parts = [
        format!("cwnd {}", figures.cwnd.get()),
        format!("ssthresh {ssthresh}"),
        format!("bounds {}", cell(Column::Bounds)),
        format!("in flight {}", figures.in_flight().get()),
        format!("lost {}", figures.lost_out.get()),
        format!("state {}", cell(Column::State)),
        format!("limited by {}", cell(Column::Limit)),
        format!("RTT {} ms", cell(Column::Rtt)),
        format!("minimum {} ms", cell(Column::MinRtt)),
        format!("sent {}", rate(connection.sent)),
        format!("received {}", rate(connection.received)),
        format!("delivery rate {}", rate(figures.delivery_rate)),
        format!("pacing {}", rate(figures.pacing_rate)),
        format!("backlog {} kB", cell(Column::Backlog)),
        format!("MSS {} bytes", cell(Column::Mss)),
        format!("retransmitted {}", connection.retransmits),
        format!("events: {events}"),
    ];
    let lines = wrapped(&parts, width).into_iter().map(Line::raw);
    std::iter::once(Line::from(Span::styled(fitting(&title, width), BOLD))).chain(lines).collect()
}

/// The parts in lines of `width` characters, broken between parts.
fn wrapped(parts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 2 + part.chars().count() <= width => {
                line.push_str("  ");
                line.push_str(part);
            }
            _ => lines.push(fitting(part, width)),
        }
    }
    lines
}

/// Curves over the last minute.
struct Curves {
    title: String,
    /// The first curve is drawn as a line, the others as dots.
    lines: Vec<Vec<(f64, f64)>>,
}

fn charts(connection: &SeenConnection, window: &[Arc<Reading>]) -> [Curves; 3] {
    let end = window.last().map_or(0.0, |reading| reading.at.as_secs_f64());
    let series = |of: &dyn Fn(&SeenConnection) -> Option<f64>| -> Vec<(f64, f64)> {
        let point = |reading: &Arc<Reading>| {
            Some((reading.at.as_secs_f64() - end, of(reading.find(connection.id)?)?))
        };
        window.iter().filter_map(point).collect()
    };
    let segments = |count: u32| (count > 0).then(|| f64::from(count));
    let ms = |span: Option<Duration>| span.map(Duration::as_millis_f64);
    [
        Curves {
            title: "sent, Mbit/s".to_owned(),
            lines: vec![series(&|one| one.sent.map(Rate::as_mbps_f64))],
        },
        Curves {
            title: "cwnd, segments (dots: floor and ceiling)".to_owned(),
            lines: vec![
                series(&|one| Some(f64::from(one.figures.cwnd.get()))),
                series(&|one| segments(one.bounds.to_numbers().0)),
                series(&|one| segments(one.bounds.to_numbers().1)),
            ],
        },
        Curves {
            title: "RTT, ms (dots: minimum)".to_owned(),
            lines: vec![
                series(&|one| ms(one.figures.smoothed_rtt)),
                series(&|one| ms(one.figures.min_rtt)),
            ],
        },
    ]
}

fn draw_chart(frame: &mut Frame<'_>, area: Rect, curves: &Curves) {
    let values = curves.lines.iter().flatten().map(|(_, value)| *value);
    let largest = ceiling(values.fold(0.0, f64::max));
    let datasets = curves.lines.iter().enumerate().map(|(index, points)| {
        let (marker, graph) = if index == 0 {
            (Marker::Braille, GraphType::Line)
        } else {
            (Marker::Dot, GraphType::Scatter)
        };
        Dataset::default().marker(marker).graph_type(graph).data(points)
    });
    let datasets = datasets.collect();
    let minute = SHOWN.as_secs_f64();
    let chart = Chart::new(datasets)
        .block(Block::new().title(Span::styled(curves.title.clone(), BOLD)))
        .x_axis(Axis::default().bounds([-minute, 0.0]).style(Style::new()))
        .y_axis(Axis::default().bounds([0.0, largest]).labels(["0".to_owned(), label(largest)]));
    frame.render_widget(chart, area);
}

/// The end of an axis: 1, 2 or 5 times a power of ten.
fn ceiling(largest: f64) -> f64 {
    if largest <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(largest.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|end| *end >= largest).unwrap_or(largest)
}

fn label(value: f64) -> String {
    if value >= 1.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (largest, end) in [(0.0, 1.0), (0.3, 0.5), (7.0, 10.0), (10.0, 10.0), (120.0, 200.0)] {
            assert!((ceiling(largest) - end).abs() < 1e-9, "{largest}");
        }
    }
}
