//! The progress of an experiment, on standard error: one bar over all runs on a terminal, elsewhere a
//! line for each run of the lab.

use std::io::IsTerminal as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wakeai_units::Duration;
use wakeai_world::Progress;

use crate::failure::{Failure, note};
use crate::interrupt::Interrupt;

/// The bar; SIGINT and SIGTERM interrupt the runs that it shows.
pub(crate) struct Bar {
    drawn: Option<ProgressBar>,
    /// Whether each run prints a line if standard error is not a terminal.
    lines: bool,
    state: Mutex<BarState>,
    interrupt: Interrupt,
}

#[derive(Default)]
struct BarState {
    /// For each run, the longest time that it can last and the time that it has reached.
    runs: Vec<(Duration, Duration)>,
    ended: usize,
}

impl Bar {
    pub(crate) fn new(lines: bool) -> Result<Self, Failure> {
        let interrupt = Interrupt::install()?;
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{prefix} {msg} [{wide_bar}] {eta}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Ok(Self { drawn: bar, lines, state: Mutex::default(), interrupt })
    }

    /// The failure of a command that a signal has interrupted.
    pub(crate) fn interrupted(
        &self,
        error: impl std::error::Error + Send + Sync + 'static,
    ) -> Failure {
        Failure::with_status(self.interrupt.exit_status(), error)
    }

    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.drawn {
            bar.finish_and_clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, BarState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and shows it.
    fn update(&self, change: impl FnOnce(&mut BarState)) {
        let mut state = self.state();
        change(&mut state);
        let Some(bar) = &self.drawn else { return };
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

    fn begins(&self, run: usize, name: &str) {
        if let Some(bar) = &self.drawn {
            bar.set_message(name.to_owned());
        } else if self.lines {
            let runs = &self.state().runs;
            note(format_args!("run {} of {}: {name}, {}", run + 1, runs.len(), runs[run].0));
        }
    }

    fn reached(&self, run: usize, elapsed: Duration) {
        // A run of one station alone may be made again, and take longer.
        self.update(|state| state.runs[run].1 = elapsed.min(state.runs[run].0));
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
