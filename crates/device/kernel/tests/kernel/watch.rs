//! Collects the monitor's samples of the sender's connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wakeai_kernel::{Control, Figures, Filter, Monitor, MonitorConfig, Record, snapshot};

use crate::rig::Rig;

/// A monitor of the sender's namespace, with a sample for every ACK.
pub(crate) fn monitor(rig: &Rig) -> Monitor {
    let filter = Filter { netns_cookies: vec![rig.interface("wire").0], ..Filter::default() };
    Monitor::open(&MonitorConfig { every_ack: true, filter, ..MonitorConfig::default() }).unwrap()
}

/// Polls the monitor once, and appends its samples to `samples`.
pub(crate) fn poll(monitor: &mut Monitor, samples: &mut Vec<Record>) {
    let mut keep = |record: Record| {
        if record.event.is_none() {
            samples.push(record);
        }
    };
    monitor.poll(Duration::from_millis(10), &mut keep).unwrap();
    assert_eq!(monitor.lost(), 0);
}

/// Every sample of the sender's connections over `span`. If `heartbeat` is given, bounds stay valid
/// meanwhile.
fn samples(rig: &Rig, heartbeat: Option<&Control>, span: Duration) -> Vec<Record> {
    let (cookie, interface) = rig.interface("wire");
    let mut samples = Vec::new();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if let Some(control) = heartbeat {
            // The heartbeats have a thread of their own, because loading the monitor may take
            // longer than bounds stay valid.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    control.heartbeat(cookie, interface).unwrap();
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
        }
        let _over = Over(&is_over);
        let mut monitor = monitor(rig);
        let until = Instant::now() + span;
        // A connection that sends only a few segments per second may be silent for longer than
        // `span`.
        while Instant::now() < until || samples.is_empty() {
            assert!(Instant::now() < until + Duration::from_secs(30), "nothing was acknowledged");
            poll(&mut monitor, &mut samples);
        }
    });
    samples
}

/// Ends the heartbeats, even if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The figures of all connections, in the order of arrival.
pub(crate) fn watch(rig: &Rig, heartbeat: Option<&Control>, span: Duration) -> Vec<Figures> {
    samples(rig, heartbeat, span).into_iter().map(|sample| sample.figures).collect()
}

/// The figures of the connections of each algorithm.
pub(crate) fn watch_each(
    rig: &Rig,
    heartbeat: Option<&Control>,
    span: Duration,
) -> BTreeMap<String, Vec<Figures>> {
    let samples = samples(rig, heartbeat, span);
    let connections = rig.sender.run(|| snapshot(None)).unwrap().unwrap();
    let figures_of = |cookie| {
        let own = samples.iter().filter(move |sample| sample.socket.cookie == cookie);
        own.map(|sample| sample.figures).collect::<Vec<_>>()
    };
    let named = connections
        .into_iter()
        .map(|connection| (connection.algorithm.to_string(), figures_of(connection.socket.cookie)));
    let by_algorithm: BTreeMap<_, _> = named.collect();
    assert!(by_algorithm.values().all(|figures| !figures.is_empty()));
    by_algorithm
}

pub(crate) fn largest(samples: &[Figures]) -> u32 {
    samples.iter().map(|figures| figures.cwnd.get()).max().unwrap()
}
