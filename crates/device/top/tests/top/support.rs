//! Readings without a machine, and a terminal that shows them.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use wakeai_connection::{Bounds, CongestionState, Figures};
use wakeai_top::{ConnectionId, End, Events, Limit, Reading, SeenConnection, Status, View, draw};
use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

/// The sizes of the terminals: columns and rows.
pub(crate) const SMALL: (u16, u16) = (80, 24);
pub(crate) const LARGE: (u16, u16) = (200, 60);

/// A minute of readings of `count` connections, one per second, which vary over time.
pub(crate) fn minute(count: u64) -> Vec<Arc<Reading>> {
    (0..60).map(|second| Arc::new(reading(second, count))).collect()
}

/// The reading of one second.
pub(crate) fn reading(second: u64, count: u64) -> Reading {
    Reading {
        at: Instant::ZERO + Duration::from_secs(second),
        clock_s: Some(1_767_258_000 + second),
        connections: (0..count).map(|number| connection(number, second)).collect(),
        agents: Vec::new(),
        missing: Vec::new(),
    }
}

fn connection(number: u64, second: u64) -> SeenConnection {
    // The window of each connection is a sawtooth with its own period, and every seventh connection
    // is idle.
    let phase = (second * (number % 5 + 1) + number * 7) % 30;
    let cwnd = 20 + phase as u32 * 3;
    let is_idle = number % 7 == 6;
    let rate = Rate::from_bps(if is_idle { 0 } else { 200_000 * (phase + 5) * (number % 11 + 1) });
    let local = SocketAddr::from(([192, 168, 1, 20], 40_000 + (number % 20_000) as u16));
    let remote = SocketAddr::from(([203, 0, (number / 250) as u8, (number % 250) as u8], 443));
    let limits = [Limit::Window, Limit::Ceiling, Limit::Application, Limit::Receiver];
    let figures = Figures {
        cwnd: Segments::new(cwnd),
        ssthresh: Segments::new(if number.is_multiple_of(3) { 0x7fff_ffff } else { 20 }),
        smoothed_rtt: Some(Duration::from_micros(20_000 + phase * 700 + number % 13 * 110)),
        min_rtt: Some(Duration::from_micros(12_300 + number % 13 * 100)),
        congestion_state: CongestionState::from_number(u8::from(phase == 0) * 3),
        packets_out: Segments::new(if is_idle { 0 } else { cwnd }),
        send_queue: Bytes::new(if is_idle { 0 } else { u64::from(cwnd) * 2896 }),
        delivered: second * 100,
        delivery_rate: Some(Rate::from_bps(rate.bits_per_second() / 8 * 8)),
        pacing_rate: (!is_idle).then(|| Rate::from_bps(rate.bits_per_second() * 6 / 5 / 8 * 8)),
        mss: Bytes::new(1448),
        interface: 2,
        ..Figures::default()
    };
    SeenConnection {
        id: ConnectionId { netns: 4_026_531_840, cookie: number + 1 },
        namespace: "".into(),
        owner: ["iperf3", "curl", "put", "browser"][number as usize % 4].into(),
        pid: Some(1000 + number as u32 / 8),
        local: End::Address(local),
        remote: End::Address(remote),
        algorithm: "wakeai_cubic".into(),
        figures,
        bounds: Bounds::from_numbers(10, 120, 0, 0),
        sent: (second > 0).then_some(rate),
        received: (second > 0).then(|| Rate::from_bps(rate.bits_per_second() / 40)),
        limit: (second > 0)
            .then(|| if is_idle { Limit::Idle } else { limits[number as usize % 4] }),
        events: Some(Events { counts: [second / 9, 0, second * (number % 3) / 20, number % 2] }),
        retransmits: second * (number % 3) / 4,
    }
}

/// The bytes that a terminal gets.
#[derive(Clone, Default)]
struct Wire(Rc<RefCell<Vec<u8>>>);

impl io::Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The status of a live screen.
pub(crate) fn live() -> Status {
    Status { mode: "live".to_owned(), message: None }
}

/// A terminal that was given these frames one after another.
pub(crate) fn terminal(
    view: &View,
    frames: &[&[Arc<Reading>]],
    status: &Status,
    (columns, rows): (u16, u16),
) -> vt100::Parser {
    let wire = Wire::default();
    let options = TerminalOptions { viewport: Viewport::Fixed(Rect::new(0, 0, columns, rows)) };
    let mut terminal =
        Terminal::with_options(CrosstermBackend::new(wire.clone()), options).unwrap();
    let size = |side| NonZero::new(side).unwrap();
    let mut parser = vt100::Parser::new(size(rows), size(columns), 0);
    for window in frames {
        terminal.draw(|frame| draw(frame, view, window, status)).unwrap();
        parser.process(&wire.0.take());
    }
    parser
}

/// What the terminal shows, without the spaces at the ends of its lines.
pub(crate) fn text(parser: &vt100::Parser) -> String {
    let contents = parser.screen().contents();
    contents.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}
