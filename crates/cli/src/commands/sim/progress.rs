//! How far the simulations are: one bar over all runs, on a terminal only.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wakeai_sim::Progress;
use wakeai_units::Duration;

use crate::failure::note;
use crate::interrupt::Interrupt;

/// The bar.
pub(super) struct Bar {
    drawn: Option<ProgressBar>,
    state: Mutex<State>,
    interrupt: Interrupt,
}

#[derive(Default)]
struct State {
    /// By run: how long it lasts at the most, and how far it is.
    runs: Vec<(Duration, Duration)>,
    ended: usize,
}

impl Bar {
    pub(super) fn new(interrupt: Interrupt) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{prefix} {msg} [{wide_bar}] {eta}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { drawn: bar, state: Mutex::default(), interrupt }
    }

    pub(super) fn clear(&self) {
        if let Some(bar) = &self.drawn {
            bar.finish_and_clear();
        }
    }

    /// Changes the state, and shows it.
    fn update(&self, change: impl FnOnce(&mut State)) {
        let Some(bar) = &self.drawn else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        bar.set_prefix(format!("{} of {} runs", state.ended, state.runs.len()));
        bar.set_length(state.runs.iter().map(|(length, _)| length.as_millis()).sum());
        bar.set_position(state.runs.iter().map(|(_, reached)| reached.as_millis()).sum());
    }
}

impl Progress for Bar {
    fn runs(&self, lengths: &[Duration]) {
        let runs = lengths.iter().map(|length| (*length, Duration::ZERO)).collect();
        self.update(|state| state.runs = runs);
    }

    fn begins(&self, _: usize, name: &str) {
        if let Some(bar) = &self.drawn {
            bar.set_message(name.to_owned());
        }
    }

    fn reached(&self, run: usize, elapsed: Duration) {
        self.update(|state| state.runs[run].1 = elapsed);
    }

    fn ends(&self, run: usize) {
        self.update(|state| {
            state.runs[run].1 = state.runs[run].0;
            state.ended += 1;
        });
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.is_asked()
    }

    fn note(&self, text: &str) {
        match &self.drawn {
            Some(bar) => bar.suspend(|| note(text)),
            None => note(text),
        }
    }
}
