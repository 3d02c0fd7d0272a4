//! What is checked inside the guest. There is nothing but a loopback interface.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use wakeai_kernel::features::{self, CongControl};
use wakeai_kernel::{
    Control, EventKind, Monitor, MonitorConfig, Record, SocketBounds, move_connections,
    netns_cookie, snapshot,
};

/// The loopback interface's index in any namespace.
const LOOPBACK: u32 = 1;

const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";

pub(crate) fn run() {
    let found = features::detect();
    println!("guest: Linux {}", found.kernel_release);
    assert_eq!(found.cong_control, Some(CongControl::Short));
    assert!(!found.struct_ops_link);
    assert!(found.can_bound() && found.can_monitor(), "{found:?}");
    let control = Control::open().unwrap();
    let mut monitor =
        Monitor::open(&MonitorConfig { every_ack: true, ..MonitorConfig::default() }).unwrap();
    let control = registration_is_shared_and_found_again(control);
    let (mut sender, mut receiver) = connection();
    moved_connection_obeys_a_ceiling(&control, &mut monitor, &mut sender, &mut receiver);
    drop((sender, receiver));
    nothing_is_left();
    println!("guest: all checks made");
}

/// Pins that are lost, as when a process dies half-way, leave a registration that is found by its
/// name: there is no link that would take it along.
fn registration_is_shared_and_found_again(first: Control) -> Control {
    drop(first);
    let second = Control::open().unwrap();
    drop(second);
    std::fs::remove_dir_all("/sys/fs/bpf/wakeai").unwrap();
    assert!(wakeai_host::read_sysctl(AVAILABLE).unwrap().contains(Control::ALGORITHM));
    Control::open().unwrap()
}

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (sender, listener.accept().unwrap().0)
}

fn moved_connection_obeys_a_ceiling(
    control: &Control,
    monitor: &mut Monitor,
    sender: &mut TcpStream,
    receiver: &mut TcpStream,
) {
    let cookie = netns_cookie().unwrap();
    let port = sender.local_addr().unwrap().port();
    let bounds = SocketBounds { ceiling: 4, ..SocketBounds::NONE };
    control.set_interface(cookie, LOOPBACK, bounds).unwrap();
    control.heartbeat(cookie, LOOPBACK).unwrap();
    let moved = move_connections(&["cubic"], Control::ALGORITHM, Some(LOOPBACK)).unwrap();
    assert!(moved.moved >= 2 && moved.failed == 0, "{moved:?}");
    transfer(control, cookie, sender, receiver);
    let mut windows = Vec::new();
    let mut opened = 0;
    let mut keep = |record| match record {
        Record::Sample(sample) if sample.socket.local.port() == port => {
            windows.push(sample.figures.cwnd.get());
        }
        Record::Event(event) if event.kind == EventKind::Opened => opened += 1,
        _ => {}
    };
    monitor.poll(Duration::from_millis(10), &mut keep).unwrap();
    assert_eq!(monitor.lost(), 0);
    assert_eq!(opened, 2);
    assert!(windows.len() > 10, "{} samples", windows.len());
    assert!(windows[1..].iter().all(|&cwnd| cwnd <= 4), "{windows:?}");
    assert!(snapshot(Some(LOOPBACK)).unwrap().iter().all(|c| c.algorithm == Control::ALGORITHM));
}

fn transfer(control: &Control, cookie: u64, sender: &mut TcpStream, receiver: &mut TcpStream) {
    let mut buffer = vec![0; 16384];
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        control.heartbeat(cookie, LOOPBACK).unwrap();
        sender.write_all(&buffer).unwrap();
        receiver.read_exact(&mut buffer).unwrap();
    }
}

fn nothing_is_left() {
    assert!(Control::unload().unwrap());
    assert!(!Control::unload().unwrap());
    assert!(!wakeai_host::read_sysctl(AVAILABLE).unwrap().contains(Control::ALGORITHM));
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains("/sys/fs/bpf"), "{mounts}");
}
