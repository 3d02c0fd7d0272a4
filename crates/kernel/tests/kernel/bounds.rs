//! Bounds are obeyed, by whom they should be, and for as long as they should be.

use std::time::{Duration, Instant};

use wakeai_kernel::{
    Control, Filter, Figures, Monitor, MonitorConfig, Record, SocketBounds, move_connections,
    snapshot,
};

use crate::path::PathConfig;
use crate::rig::{Rig, kernel};

const PATH: PathConfig = PathConfig {
    one_way_delay: Duration::from_millis(10),
    bits_per_second: 40_000_000,
    queue_packets: 100,
    loss_ppm: 0,
};

/// The registration, removed at the end of the test also where it fails.
struct Registration(Control);

impl Registration {
    fn open() -> Self {
        Self(Control::open().unwrap())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let removed = Control::unload();
        assert!(std::thread::panicking() || removed.unwrap());
    }
}

/// Every sample of the sender's connections over `span`, with a heartbeat in every step.
fn watch(rig: &Rig, control: Option<&Control>, span: Duration) -> Vec<Figures> {
    let (cookie, interface) = rig.interface("wire");
    let filter = Filter { netns_cookies: vec![cookie], ..Filter::default() };
    let config = MonitorConfig { every_ack: true, filter, ..MonitorConfig::default() };
    let mut monitor = Monitor::open(&config).unwrap();
    let mut samples = Vec::new();
    let until = Instant::now() + span;
    while Instant::now() < until {
        if let Some(control) = control {
            control.heartbeat(cookie, interface).unwrap();
        }
        let mut keep = |record| {
            if let Record::Sample(sample) = record {
                samples.push(sample.figures);
            }
        };
        monitor.poll(Duration::from_millis(10), &mut keep).unwrap();
    }
    assert_eq!(monitor.lost(), 0);
    assert!(!samples.is_empty());
    samples
}

fn bounds(floor: u32, ceiling: u32) -> SocketBounds {
    SocketBounds { floor, ceiling, pacing_bytes_per_second: 0 }
}

#[test]
fn a_ceiling_holds_from_the_first_flight_on() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PATH);
    let (cookie, interface) = rig.interface("wire");
    registration.0.set_interface(cookie, interface, bounds(0, 7)).unwrap();
    registration.0.heartbeat(cookie, interface).unwrap();
    let _flow = rig.flow(77, Control::ALGORITHM);
    let samples = watch(&rig, Some(&registration.0), Duration::from_secs(2));
    assert!(samples.iter().all(|figures| figures.cwnd.get() <= 7));
    assert!(samples.iter().any(|figures| figures.cwnd.get() == 7));
}
