//! Tests which connections have their receive windows bounded, and that the windows are put back.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::GetStruct;
use wakeai_kernel::{Bounds, Control, WindowReport};
use wakeai_units::Segments;

use crate::path::PathConfig;
use crate::rig::{Registration, Rig, connect};

/// The clamp of a socket's receive window, bytes.
#[derive(Clone, Copy)]
struct Clamp;
nix::getsockopt_impl!(Clamp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, u32, GetStruct<u32>);

/// The beginning of `tcp_info`, as far as the window that the peer offers (`tcpi_snd_wnd`).
#[derive(Clone, Copy)]
struct Info;
const INFO_BYTES: usize = 232;
type InfoBytes = [u8; INFO_BYTES];
nix::getsockopt_impl!(Info, libc::IPPROTO_TCP, libc::TCP_INFO, InfoBytes, GetStruct<InfoBytes>);

/// The receiver's maximum segment size over the rig's links: 1500 less 20, 20 and 12 bytes.
const MSS: u32 = 1448;

/// A connection that the station, the rig's receiver, has opened.
struct Download {
    sender: TcpStream,
    receiver: TcpStream,
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
}

impl Download {
    /// A connection without data. The station uses this algorithm.
    fn open(rig: &Rig, algorithm: &str) -> Self {
        let listen = || TcpListener::bind((Ipv4Addr::new(10, 77, 0, 1), 0)).unwrap();
        let listener = rig.sender.run(listen).unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = rig.receiver.run(|| connect(address, algorithm)).unwrap();
        let (sender, _) = listener.accept().unwrap();
        Self { sender, receiver, stop: Arc::default(), received: Arc::default() }
    }

    /// A connection whose peer sends as fast as TCP allows.
    fn start(rig: &Rig, algorithm: &str) -> Self {
        let this = Self::open(rig, algorithm);
        this.send();
        this.read();
        this
    }

    fn send(&self) {
        let (mut output, stop) = (self.sender.try_clone().unwrap(), Arc::clone(&self.stop));
        std::thread::spawn(move || {
            let data = vec![0; 1 << 16];
            while !stop.load(Ordering::Relaxed) && output.write_all(&data).is_ok() {}
        });
    }

    fn read(&self) {
        let (mut input, received) =
            (self.receiver.try_clone().unwrap(), Arc::clone(&self.received));
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = input.read(&mut buffer) {
                received.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
    }

    fn clamp(&self) -> u32 {
        getsockopt(&self.receiver, Clamp).unwrap()
    }

    /// The window that the sender sees, bytes.
    fn window(&self) -> u32 {
        let info = getsockopt(&self.sender, Info).unwrap();
        u32::from_ne_bytes(*info.last_chunk().unwrap())
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.receiver.shutdown(std::net::Shutdown::Both);
        let _ = self.sender.shutdown(std::net::Shutdown::Both);
    }
}

/// The agent of the station.
struct Agent<'a> {
    rig: &'a Rig,
    control: &'a Control,
    netns: u64,
    index: u32,
}

impl<'a> Agent<'a> {
    fn new(rig: &'a Rig, control: &'a Control) -> Self {
        let index = || nix::net::if_::if_nametoindex("wire").unwrap();
        let read = || (wakeai_kernel::netns_cookie().unwrap(), index());
        let (netns, index) = rig.receiver.run(read).unwrap();
        Self { rig, control, netns, index }
    }

    fn bounds(&self, segments: u32) {
        let receive = Segments::new(segments);
        let bounds = Bounds { receive, ..Bounds::NONE };
        self.control.set_interface(self.netns, self.index, bounds).unwrap();
        self.control.heartbeat(self.netns, self.index).unwrap();
    }

    fn run(&self) -> WindowReport {
        self.rig.receiver.run(|| self.control.bound_windows().unwrap()).unwrap()
    }

    /// Bounds windows until `is_done`.
    fn until(&self, what: &str, is_done: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_done() {
            assert!(began.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
            self.control.heartbeat(self.netns, self.index).unwrap();
            self.run();
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends, so that no bounds are in force any more.
    fn end(&self) -> WindowReport {
        self.control.clear_interface(self.netns, self.index).unwrap();
        self.run()
    }
}

/// The window of so many segments, in units of its scale: with a buffer of 64 MB (see [`Rig`]) that is 2048 bytes.
fn scaled(segments: u32) -> u32 {
    (segments * MSS).next_multiple_of(2048)
}

#[test]
fn the_sender_sees_smaller_and_larger_windows_and_afterwards_that_of_the_buffer() {
    let Some(registration) = Registration::share() else { return };
    // The window belongs to the receiver, so the congestion control does not matter.
    for algorithm in ["cubic", "wakeai_reno"] {
        let rig = Rig::with_path(PathConfig::CALM);
        let agent = Agent::new(&rig, &registration.0);
        let download = Download::start(&rig, algorithm);
        for (asked, even) in [(20, 20), (5, 6), (60, 60), (1, 2), (30, 30)] {
            agent.bounds(asked);
            let what = format!("the sender sees a window of {even} segments");
            agent.until(&what, || download.window() == scaled(even));
            assert_eq!(download.clamp(), scaled(even));
        }
        assert_eq!(agent.end(), WindowReport { freed: 1, ..WindowReport::default() });
        assert!(download.clamp() > 200_000, "{algorithm}: {}", download.clamp());
        agent.until("the window grows", || download.window() > 200_000);
        assert_eq!(agent.run(), WindowReport::default());
    }
}

#[test]
fn a_window_is_bounded_before_data_arrives() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let agent = Agent::new(&rig, &registration.0);
    let before = Download::open(&rig, "wakeai_cubic");
    agent.bounds(10);
    let opened = Download::open(&rig, "wakeai_cubic");
    assert_eq!(opened.clamp(), scaled(10));
    assert!(before.clamp() > 60_000, "the first tick comes later");
    assert_eq!(agent.run(), WindowReport { bound: 2, ..WindowReport::default() });
    assert_eq!(before.clamp(), scaled(10));
    agent.end();
    let after = Download::open(&rig, "wakeai_cubic");
    for one in [&opened, &before, &after] {
        assert!(one.clamp() > 60_000, "{}", one.clamp());
    }
}

#[test]
fn windows_are_put_back_when_the_algorithms_are_unloaded() {
    let Some(_kernel) = crate::rig::kernel() else { return };
    let control = Control::open().unwrap();
    let rig = Rig::with_veth();
    let agent = Agent::new(&rig, &control);
    agent.bounds(4);
    let download = Download::open(&rig, "wakeai_cubic");
    assert_eq!(download.clamp(), scaled(4));
    assert!(Control::unload().unwrap());
    assert!(download.clamp() > 60_000, "{}", download.clamp());
}
