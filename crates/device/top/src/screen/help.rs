//! The page of the keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::Paragraph;

const TEXT: &str = "\
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

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect) {
    frame.render_widget(Paragraph::new(TEXT), area);
}
