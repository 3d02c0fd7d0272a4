//! Samples of the senders of a run: from the kernel's monitor where that runs, else from `tcp_info`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use wakeai_connection::Figures;
use wakeai_host::{NetnsId, since_boot};
use wakeai_kernel::{Filter, Monitor, MonitorConfig, Record};
use wakeai_units::Instant;

use super::flow::Shared;
use super::sockets::Place;
use crate::protocol::{Event, Sample};

/// The time between two samples of a connection. In a minute they take some 600 kB of a helper's memory.
const BETWEEN: std::time::Duration = std::time::Duration::from_millis(10);
/// The most samples and events that are kept; later ones are counted as lost.
const MOST: usize = 1 << 21;

/// What was sampled.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) samples: Vec<Sample>,
    pub(super) events: Vec<Event>,
    pub(super) lost: u64,
    pub(super) monitored: bool,
}

/// A running thread that samples.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Watch {
    /// Starts the monitor, or what takes its place without root. Returns when it samples.
    pub(super) fn start(shared: &Arc<Shared>) -> Self {
        let (stop, shared) = (Arc::new(AtomicBool::new(false)), Arc::clone(shared));
        let (ready, started) = channel();
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let monitor = open(&shared);
            let _ = ready.send(());
            match monitor {
                Some(monitor) => by_monitor(&shared, monitor, &stopped),
                None => by_tcp_info(&shared, &stopped),
            }
        });
        let _ = started.recv();
        Self { stop, thread }
    }

    pub(super) fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn open(shared: &Shared) -> Option<Monitor> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let netns = NetnsId::current().ok()?;
    let config = MonitorConfig {
        sample_interval: BETWEEN,
        filter: Filter {
            port: Some(shared.plan.port),
            netns_inodes: vec![netns.0 as u32],
            ..Filter::default()
        },
        ..MonitorConfig::default()
    };
    match Monitor::open(&config) {
        Ok(monitor) => Some(monitor),
        Err(error) => {
            tracing::debug!(%error, "the kernel is not monitored");
            None
        }
    }
}

/// The time of this machine's clock since boot at a time of `CLOCK_MONOTONIC`, by which records are stamped.
fn since_boot_at(at: Instant) -> Instant {
    let monotonic = wakeai_host::read_clock(nix::time::ClockId::CLOCK_MONOTONIC);
    let suspended = since_boot().saturating_since(monotonic);
    at + suspended
}

fn by_monitor(shared: &Shared, mut monitor: Monitor, stop: &AtomicBool) -> Seen {
    let mut seen = Seen { monitored: true, ..Seen::default() };
    loop {
        let ends = stop.load(Ordering::Relaxed);
        let polled = monitor.poll(BETWEEN, &mut |record| seen.record(shared, &record));
        if ends || polled.is_err() {
            seen.lost += monitor.lost();
            return seen;
        }
    }
}

fn by_tcp_info(shared: &Shared, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(BETWEEN);
        let at = shared.since_origin(since_boot());
        for (place, figures) in shared.senders.figures() {
            seen.keep_sample(at, place, &figures);
        }
    }
    seen
}

impl Seen {
    fn record(&mut self, shared: &Shared, record: &Record) {
        let &Record { at, socket, figures, event } = record;
        let Some(place) = shared.senders.place(socket.local, socket.remote) else { return };
        let at = shared.since_origin(since_boot_at(at));
        match event {
            None => self.keep_sample(at, place, &figures),
            Some(_) if self.events.len() >= MOST => self.lost += 1,
            Some(kind) => self.events.push(Event::new(at, place, kind, figures.cwnd)),
        }
    }

    fn keep_sample(&mut self, at: i64, place: Place, figures: &Figures) {
        if self.samples.len() < MOST {
            self.samples.push(Sample::new(at, place, figures));
        } else {
            self.lost += 1;
        }
    }
}
