//! How far the lab is: a bar on a terminal, a line per run elsewhere, always on standard error.

use std::cell::RefCell;
use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wakeai_lab::Progress;
use wakeai_units::Duration;

use crate::failure::note;

/// The bar of the current run.
pub(super) struct Bars {
    bar: Option<ProgressBar>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    runs: usize,
    begun: usize,
}

impl Bars {
    pub(super) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{prefix} {msg} [{wide_bar}] {pos}/{len} s");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, state: RefCell::default() }
    }

    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000)
}

impl Progress for Bars {
    fn runs(&self, count: usize) {
        self.state.borrow_mut().runs = count;
    }

    fn run_begins(&self, name: &str, length: Duration) {
        let mut state = self.state.borrow_mut();
        state.begun += 1;
        let place = format!("run {} of {}", state.begun, state.runs.max(state.begun));
        match &self.bar {
            Some(bar) => {
                bar.set_prefix(place);
                bar.set_message(name.to_owned());
                bar.set_length(seconds(length));
                bar.set_position(0);
            }
            None => note(format_args!("{place}: {name}, {length}")),
        }
    }

    fn run_reached(&self, elapsed: Duration) {
        if let Some(bar) = &self.bar {
            bar.set_position(seconds(elapsed));
        }
    }

    fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note(text)),
            None => note(text),
        }
    }
}
