//! `wakeai top`.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wakeai_host::NetnsId;
use wakeai_top::{Filter, Live, LiveFeed, Reading, Recorder, Replay, RunChoice, View};

use super::agents;
use super::monitor::netns;
use crate::args::TopArguments;
use crate::failure::{Failure, note};
use crate::interrupt::Interrupt;
use crate::output::{self, OutputReader};

pub(crate) fn run(arguments: &TopArguments) -> Result<(), Failure> {
    let needs_terminal = !arguments.once && !arguments.json;
    if needs_terminal && !std::io::stdout().is_terminal() {
        return Err(Failure::usage(anyhow::anyhow!(
            "standard output is no terminal: use --once for a table, or --json"
        )));
    }
    match &arguments.replay {
        Some(_) => replay(arguments),
        None => live(arguments),
    }
}

fn live(arguments: &TopArguments) -> Result<(), Failure> {
    let namespace = |name: &String| netns(name).map(|inode| NetnsId(inode.into()));
    let namespaces: Result<Vec<_>, _> = arguments.netns.iter().map(namespace).collect();
    let namespaces = namespaces.map_err(Failure::usage)?;
    let interval = arguments.interval.into();
    let interrupt = Interrupt::install()?;
    let deadline = arguments.duration.map(|duration| Instant::now() + Duration::from(duration));
    let is_over =
        || interrupt.is_asked() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let live = Live::open(namespaces, agents::sockets, interval).map_err(Failure::failed)?;
    let recorder = arguments.record.as_ref();
    let recorder = recorder.map(|directory| Recorder::create(directory, arguments.interval));
    let recorder = recorder.transpose().map_err(|error| match error {
        wakeai_top::RecordError::InTheWay(_) => Failure::usage(error),
        wakeai_top::RecordError::Write { .. } => Failure::failed(error),
    })?;
    let is_recorded = recorder.is_some();
    let feed = LiveFeed::start(live, recorder, interval);
    if !arguments.once && !arguments.json {
        return wakeai_top::watch_on_screen(feed, is_recorded, view(arguments), &is_over)
            .map_err(Failure::failed);
    }
    let printed = print_live(arguments, &feed, &is_over);
    feed.finish().map_err(Failure::failed)?;
    printed
}

/// The longest time until a signal is noticed.
const PATIENCE: Duration = Duration::from_millis(200);

fn print_live(
    arguments: &TopArguments,
    feed: &LiveFeed,
    is_over: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let view = view(arguments);
    let mut window = VecDeque::new();
    while !is_over() {
        let Some(reading) = feed.next(PATIENCE) else { continue };
        window.push_back(reading);
        // Rates are known from the second reading on.
        if arguments.once && window.len() < 2 {
            continue;
        }
        if window.len() > 2 {
            window.pop_front();
        }
        if print(arguments, &view, window.make_contiguous())? == OutputReader::Gone
            || arguments.once
        {
            break;
        }
    }
    Ok(())
}

fn replay(arguments: &TopArguments) -> Result<(), Failure> {
    let directory = arguments.replay.as_ref().expect("the caller has checked it");
    let choice = RunChoice { condition: arguments.condition.clone(), repeat: arguments.repeat };
    let mut replay = Replay::open(directory, &choice).map_err(Failure::usage)?;
    let mut view = view(arguments);
    view.filter.namespaces.clone_from(&arguments.netns);
    let interrupt = Interrupt::install()?;
    let is_over = || interrupt.is_asked();
    if !arguments.once && !arguments.json {
        return wakeai_top::replay_on_screen(replay, view, arguments.speed, &is_over)
            .map_err(Failure::failed);
    }
    let last = replay.times().len() - 1;
    let first = if arguments.once { last } else { 0 };
    for index in first..=last {
        let window = replay.window(index).map_err(Failure::failed)?;
        if is_over() || print(arguments, &view, &window)? == OutputReader::Gone {
            break;
        }
    }
    Ok(())
}

/// Prints the last of these readings.
fn print(
    arguments: &TopArguments,
    view: &View,
    window: &[Arc<Reading>],
) -> Result<OutputReader, Failure> {
    let Some(reading) = window.last() else { return Ok(OutputReader::There) };
    if arguments.json {
        let line = wakeai_top::to_json(view, reading).map_err(Failure::failed)?;
        return output::write(&(line + "\n"));
    }
    for missing in &reading.missing {
        note(format_args!("not shown: {missing}"));
    }
    let width = terminal_size::terminal_size().map_or(usize::MAX, |(width, _)| width.0.into());
    output::write(&wakeai_top::table(view, window, width))
}

fn view(arguments: &TopArguments) -> View {
    let filter = Filter {
        networks: arguments.network.clone(),
        ports: arguments.port.clone(),
        ..Filter::default()
    };
    View { filter, sort: arguments.sort, reversed: arguments.reverse, ..View::default() }
}
