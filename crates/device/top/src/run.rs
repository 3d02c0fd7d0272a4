//! Runs the screen: readings and keys come in, frames go out.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration as Span, Instant as Clock};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::reading::Reading;
use crate::record::{MOST_SHOWN, RecordError, Recorder, Replay, ReplayError, SHOWN};
use crate::screen::{Status, draw};
use crate::source::Live;
use crate::view::{Action, View};

/// Why a screen ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The terminal cannot be used.
    #[error("cannot use the terminal: {0}; `--once` and `--json` need none")]
    Terminal(#[from] io::Error),
    /// The recording ended.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A recording cannot be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// The longest time until the screen notices a signal or a reading.
const PATIENCE: Span = Span::from_millis(200);

/// Reads this machine at an interval on a thread of its own, and records what is read.
#[derive(Debug)]
pub struct LiveFeed {
    updates: Receiver<Arc<Reading>>,
    failures: Receiver<RecordError>,
    /// The thread ends when this is dropped.
    ending: Sender<()>,
    thread: JoinHandle<Result<(), RecordError>>,
}

impl LiveFeed {
    /// Starts the thread, which makes the first reading at once.
    pub fn start(live: Live, recorder: Option<Recorder>, interval: Span) -> Self {
        let (to_updates, updates) = channel();
        let (to_failures, failures) = channel();
        let (ending, ended) = channel();
        let thread = std::thread::spawn(move || {
            read_all(live, recorder, interval, &to_updates, &to_failures, &ended)
        });
        Self { updates, failures, ending, thread }
    }

    /// The next reading; `None` if there is none within `patience`.
    pub fn next(&self, patience: Span) -> Option<Arc<Reading>> {
        self.updates.recv_timeout(patience).ok()
    }

    /// Ends the readings and completes the recording.
    ///
    /// # Errors
    ///
    /// The recording could not be written, now or before.
    pub fn finish(self) -> Result<(), RecordError> {
        drop(self.ending);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        self.failures.try_recv().map_or(Ok(()), Err)
    }
}

fn read_all(
    mut live: Live,
    mut recorder: Option<Recorder>,
    interval: Span,
    updates: &Sender<Arc<Reading>>,
    failures: &Sender<RecordError>,
    ended: &Receiver<()>,
) -> Result<(), RecordError> {
    let mut due = Clock::now();
    loop {
        let reading = Arc::new(live.read());
        if let Some(recording) = &mut recorder
            && let Err(error) = recording.push(Arc::clone(&reading))
        {
            recorder = None;
            let _ = failures.send(error); // sending fails only if the feed has ended
        }
        let _ = updates.send(reading);
        // If a reading takes longer than the interval, the next one follows at once. Missed
        // readings are left out.
        due = (due + interval).max(Clock::now());
        let wait = due.saturating_duration_since(Clock::now());
        if ended.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
            return recorder.map_or(Ok(()), Recorder::finish);
        }
    }
}

/// Shows the readings of a feed until the user quits or `stop` holds.
///
/// # Errors
///
/// The terminal cannot be used, or the recording ended. If the recording ends, the screen continues and shows a
/// message, and the error is returned at the end.
pub fn watch_on_screen(
    feed: LiveFeed,
    is_recorded: bool,
    mut view: View,
    stop: &dyn Fn() -> bool,
) -> Result<(), RunError> {
    let mut terminal = ratatui::try_init()?;
    let shown = watch(&mut terminal, &feed, is_recorded, &mut view, stop);
    let restored = ratatui::try_restore();
    let recorded = feed.finish();
    let failed = shown?;
    restored?;
    recorded?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Returns the error that ended the recording, if one did.
fn watch(
    terminal: &mut DefaultTerminal,
    feed: &LiveFeed,
    is_recorded: bool,
    view: &mut View,
    stop: &dyn Fn() -> bool,
) -> io::Result<Option<RecordError>> {
    let (mut window, mut held): (Vec<Arc<Reading>>, Option<Vec<Arc<Reading>>>) = (Vec::new(), None);
    let (mut failed, mut is_old) = (None, true);
    while !stop() {
        while let Ok(reading) = feed.updates.try_recv() {
            window.push(reading);
            forget(&mut window);
            is_old = true;
        }
        if let Ok(error) = feed.failures.try_recv() {
            failed = Some(error);
        }
        let shown = held.as_ref().unwrap_or(&window);
        if is_old {
            let status = live_status(held.is_some(), is_recorded, failed.as_ref());
            terminal.draw(|frame| draw(frame, view, shown, &status))?;
        }
        let input = next_input(PATIENCE)?;
        is_old = input.is_some();
        let Some(Event::Key(key)) = input else { continue };
        let nothing = Arc::new(Reading::default());
        match view.handle_key(key, shown.last().unwrap_or(&nothing)) {
            Action::Quit => break,
            Action::Hold => held = if held.is_some() { None } else { Some(window.clone()) },
            _ => {}
        }
    }
    Ok(failed)
}

fn live_status(is_held: bool, is_recorded: bool, failed: Option<&RecordError>) -> Status {
    let mode = match (is_held, is_recorded && failed.is_none()) {
        (false, false) => "live",
        (false, true) => "live, recording",
        (true, false) => "held",
        (true, true) => "held, recording",
    };
    let message = failed.map(|error| format!("The recording has ended: {error}"));
    Status { mode: mode.to_owned(), message }
}

/// Removes the readings that are too old for the screen.
fn forget(window: &mut Vec<Arc<Reading>>) {
    let Some(end) = window.last().map(|reading| reading.at) else { return };
    let old = window.partition_point(|reading| end.saturating_since(reading.at) > SHOWN);
    let old = old.max(window.len().saturating_sub(MOST_SHOWN));
    window.drain(..old);
}

/// Waits for a key or a change of the terminal's size; `None` if neither comes within `patience`.
fn next_input(patience: Span) -> io::Result<Option<Event>> {
    let end = Clock::now() + patience;
    while event::poll(end.saturating_duration_since(Clock::now()))? {
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Release => {}
            input @ (Event::Key(_) | Event::Resize(..)) => return Ok(Some(input)),
            _ => {}
        }
    }
    Ok(None)
}

/// Shows a replay until the user quits or `stop` holds. At `speed` 1 the replay takes as long as the recording did.
///
/// # Errors
///
/// The terminal cannot be used, or a file cannot be read.
pub fn replay_on_screen(
    mut replay: Replay,
    mut view: View,
    speed: f64,
    stop: &dyn Fn() -> bool,
) -> Result<(), RunError> {
    let mut terminal = ratatui::try_init()?;
    // A damaged file has to end the replay with an error. A reported panic would restore the terminal and disturb the
    // screen.
    wakeai_tables::keep_guarded_panics_quiet();
    let shown = play(&mut terminal, &mut replay, &mut view, speed, stop);
    let restored = ratatui::try_restore();
    shown?;
    Ok(restored?)
}

/// The place in a replay.
#[derive(Clone, Copy, Debug)]
struct ReplayPlace {
    index: usize,
    last: usize,
    speed: f64,
    is_playing: bool,
    is_backward: bool,
}

/// The limits of the speed.
const SLOWEST: f64 = 1.0 / 16.0;
const FASTEST: f64 = 64.0;

impl ReplayPlace {
    fn apply(&mut self, action: Action) {
        match action {
            Action::Hold => {
                // At the end the replay begins again.
                if !self.is_playing && self.next().is_none() {
                    self.index = if self.is_backward { self.last } else { 0 };
                }
                self.is_playing = !self.is_playing;
            }
            Action::Step(by) => {
                self.is_playing = false;
                self.index = self.index.saturating_add_signed(by as isize).min(self.last);
            }
            Action::First => self.index = 0,
            Action::Last => self.index = self.last,
            Action::Faster => self.speed = (self.speed * 2.0).min(FASTEST),
            Action::Slower => self.speed = (self.speed / 2.0).max(SLOWEST),
            Action::Turn => self.is_backward = !self.is_backward,
            Action::Draw | Action::Quit => {}
        }
    }

    /// The index of the reading that is played next.
    fn next(&self) -> Option<usize> {
        if self.is_backward {
            self.index.checked_sub(1)
        } else {
            (self.index < self.last).then_some(self.index + 1)
        }
    }

    fn mode(&self) -> String {
        let way = match (self.is_playing, self.is_backward) {
            (false, _) => " held",
            (true, true) => " backward",
            (true, false) => "",
        };
        format!("replay {}/{} x{}{way}", self.index + 1, self.last + 1, self.speed)
    }
}

fn play(
    terminal: &mut DefaultTerminal,
    replay: &mut Replay,
    view: &mut View,
    speed: f64,
    stop: &dyn Fn() -> bool,
) -> Result<(), RunError> {
    let last = replay.times().len() - 1;
    let mut place = ReplayPlace { index: 0, last, speed, is_playing: true, is_backward: false };
    let mut since = Clock::now();
    while !stop() {
        let window = replay.window(place.index)?;
        let status = Status { mode: place.mode(), message: None };
        terminal.draw(|frame| draw(frame, view, &window, &status))?;
        let next = place.next().filter(|_| place.is_playing);
        let left = next.map(|next| {
            let times = replay.times();
            let (a, b) = (times[place.index].min(times[next]), times[place.index].max(times[next]));
            let span = Span::from_nanos(b.saturating_since(a).as_nanos());
            span.div_f64(place.speed).saturating_sub(since.elapsed())
        });
        let patience = left.unwrap_or(PATIENCE).min(PATIENCE);
        if let Some(Event::Key(key)) = next_input(patience)? {
            let nothing = Arc::new(Reading::default());
            match view.handle_key(key, window.last().unwrap_or(&nothing)) {
                Action::Quit => break,
                action => {
                    place.apply(action);
                    since = Clock::now();
                }
            }
        } else if let (Some(next), Some(left)) = (next, left)
            && left <= patience
        {
            place.index = next;
            since = Clock::now();
        } else if next.is_none() {
            place.is_playing = false;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_goes_both_ways_and_stays_within_its_readings() {
        let mut place =
            ReplayPlace { index: 0, last: 2, speed: 1.0, is_playing: true, is_backward: false };
        place.apply(Action::Step(-1));
        assert_eq!((place.index, place.is_playing), (0, false));
        place.apply(Action::Step(5));
        assert_eq!((place.index, place.next()), (2, None));
        place.apply(Action::Hold);
        assert_eq!((place.index, place.is_playing), (0, true), "it begins again");
        place.apply(Action::Turn);
        assert_eq!(place.next(), None);
        place.apply(Action::Last);
        assert_eq!(place.next(), Some(1));
        (0..20).for_each(|_| place.apply(Action::Faster));
        assert!((place.speed - FASTEST).abs() < 1e-9);
        assert_eq!(place.mode(), "replay 3/3 x64 backward");
    }
}
