//! Many members of a fleet at one place of the air: their presence messages, without their agents.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use wakeai_agent::key::GroupKeys;
use wakeai_api::config::DEFAULT_PORT;
use wakeai_connection::Figures;
use wakeai_control::{
    CommonLaw, Connection, Controller, ControllerConfig, LawConfig, LawName, Limit, StationId,
};
use wakeai_units::{Bytes, Instant, Rate, Segments};

use crate::agent::{BSSID, Fleet};
use crate::bss::{Bss, WIFI};

/// The first station of [`Members`]. Agents of a test have lower ones.
const FIRST: u64 = 1_000;
/// The time between two looks at the socket and at the timers.
const STEP: Duration = Duration::from_millis(5);
const LONGEST_DATAGRAM: usize = 512;

/// Members that send and receive presence messages until this is dropped. Each announces an upload.
pub struct Members {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Members {
    /// Starts so many members in the namespace of a station that has no agent.
    pub fn start(bss: &Bss, station: &str, fleet: &Fleet, count: u64) -> Self {
        let keys = GroupKeys::load(&fleet.path("group.key")).unwrap();
        let socket = bss.namespace(station).run(open).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let ended = Arc::clone(&ended);
            move || run(&socket, &keys.signing, count, &ended)
        });
        Self { ended, thread: Some(thread) }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn open() -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
    socket.bind_device(Some(WIFI.as_bytes())).unwrap();
    socket.set_broadcast(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, DEFAULT_PORT).into()).unwrap();
    socket.into()
}

fn run(socket: &UdpSocket, key: &[u8; 32], count: u64, ended: &AtomicBool) {
    let began = std::time::Instant::now();
    let now = || Instant::from_nanos(began.elapsed().as_nanos() as u64);
    let law = LawConfig::new(LawName::Airtime);
    let mut members: Vec<Controller> = (FIRST..FIRST + count)
        .map(|station| {
            let mut boot = [0; 16];
            boot[..8].copy_from_slice(&station.to_ne_bytes());
            let mut config = ControllerConfig::new(StationId(station), bssid(), *key);
            config.common_law = Some(CommonLaw::new(Some(&law), &config));
            Controller::new(Instant::ZERO, &config, boot, &law)
        })
        .collect();
    let to = SocketAddrV4::new(Ipv4Addr::BROADCAST, DEFAULT_PORT);
    let mut datagram = [0; LONGEST_DATAGRAM];
    while !ended.load(Ordering::Relaxed) {
        while let Ok((length, _)) = socket.recv_from(&mut datagram) {
            for member in &mut members {
                member.handle_datagram(now(), &datagram[..length]);
            }
        }
        for number in 0..members.len() {
            let member = &mut members[number];
            if member.next_tick() <= now() {
                member.handle_tick(now(), Some(Rate::from_mbps(54)), &[upload(now())]);
            }
            // A further message waits for the next step.
            if let Some(message) = member.poll_transmit(now()) {
                let _ = socket.send_to(&message, to); // as on the air a message may be lost
                for (_, other) in members.iter_mut().enumerate().filter(|(at, _)| *at != number) {
                    other.handle_datagram(now(), &message);
                }
            }
        }
        std::thread::sleep(STEP);
    }
}

/// An upload of 1 Mbit/s.
fn upload(now: Instant) -> Connection {
    let delivered = now.saturating_since(Instant::ZERO).as_micros() / 8 / 1448;
    let rtt = wakeai_units::Duration::from_millis(20);
    let figures = Figures {
        cwnd: Segments::new(10),
        mss: Bytes::new(1448),
        smoothed_rtt: Some(rtt),
        latest_rtt: Some(rtt),
        min_rtt: Some(rtt),
        packets_out: Segments::new(10),
        send_queue: Bytes::new(1 << 20),
        delivered,
        ..Figures::default()
    };
    Connection { id: 1, figures, limit: Limit::Window, ..Connection::default() }
}

fn bssid() -> [u8; 6] {
    let mut bytes = BSSID.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap());
    std::array::from_fn(|_| bytes.next().unwrap())
}
