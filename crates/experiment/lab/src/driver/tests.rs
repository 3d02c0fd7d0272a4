//! Tests of the driver between real namespaces. They need root.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time;

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use wakeai_host::{Lease, Role};
use wakeai_medium::{MediumConfig, StationId, WifiConfig};
use wakeai_scenario::Scenario;
use wakeai_units::{Duration, Instant};
use wakeai_wifi::Standard;
use wakeai_world::{SERVER_ADDRESS, STATION_BROADCAST, station_address};

use super::{Driver, DriverReport};
use crate::clock;
use crate::host::{Host, Steering};

const PORT: u16 = 19_000;

/// A medium of stations and a server, taken down by [`Lab::end`].
struct Lab {
    lease: Lease,
    hosts: Vec<Host>,
    driver: Driver,
    /// Keeps other tests waiting, because a process has only one lease.
    _alone: MutexGuard<'static, ()>,
}

impl Lab {
    fn new(stations: u32) -> Option<Self> {
        let steering = Steering::plan();
        let (alone, lease) = lease()?;
        let (server, tun) = Host::server(&lease, steering).unwrap();
        let mut ports = vec![server.port(tun)];
        let mut hosts = vec![server];
        for id in 0..stations {
            let (host, tun) =
                Host::station(&lease, &format!("s{id}"), StationId(id), 100, steering).unwrap();
            ports.push(host.port(tun));
            hosts.push(host);
        }
        let config = MediumConfig::Wifi(WifiConfig::new(Standard::G, stations as usize));
        let rng = Pcg64Mcg::seed_from_u64(1);
        let driver = Driver::start(config, rng, ports, (false, false), steering).unwrap();
        driver.measure(Some(clock::now()));
        Some(Self { lease, hosts, driver, _alone: alone })
    }

    /// A UDP socket of host `index` (0 is the server), bound to `address` or to any address.
    fn socket(&self, index: usize, address: Ipv4Addr) -> UdpSocket {
        let bind = || UdpSocket::bind((address, PORT)).unwrap();
        let socket = self.hosts[index].namespace.run(bind).unwrap();
        socket.set_read_timeout(Some(time::Duration::from_secs(5))).unwrap();
        socket
    }

    fn end(self) -> DriverReport {
        let report = self.driver.stop().unwrap();
        let failed = self.lease.release(&[]);
        assert!(failed.is_empty(), "{failed:?}");
        report
    }
}

/// The lease of this process (the record of its changes on the host). Without root or TUN it prints
/// a line and returns `None`.
fn lease() -> Option<(MutexGuard<'static, ()>, Lease)> {
    static ALONE: Mutex<()> = Mutex::new(());
    let able = nix::unistd::geteuid().is_root() && std::path::Path::new("/dev/net/tun").exists();
    if !able {
        assert!(std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none(), "root and TUN are needed");
        println!("skipped: this needs root and /dev/net/tun");
        return None;
    }
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Some((alone, Lease::take(Role::Lab).unwrap()))
}

fn station(index: u32) -> Ipv4Addr {
    station_address(StationId(index))
}

#[test]
fn datagrams_cross_the_medium_both_ways() {
    let Some(lab) = Lab::new(1) else { return };
    let server = lab.socket(0, SERVER_ADDRESS);
    let station_socket = lab.socket(1, station(0));
    let mut buffer = [0; 2_000];
    station_socket.send_to(&[7; 1_472], (SERVER_ADDRESS, PORT)).unwrap();
    let (length, from) = server.recv_from(&mut buffer).unwrap();
    assert_eq!((length, from.ip()), (1_472, station(0).into()));
    server.send_to(b"back", from).unwrap();
    assert_eq!(station_socket.recv(&mut buffer).unwrap(), 4);
    drop((server, station_socket));
    let report = lab.end();
    assert_eq!(report.lateness.count(), 2);
    assert_eq!(report.counters.stations[0].delivered, 1);
}

#[test]
fn every_packet_arrives_in_its_order_and_what_a_host_refuses_is_counted() {
    let Some(lab) = Lab::new(2) else { return };
    let sender = lab.socket(1, station(0));
    let receivers =
        [(0, SERVER_ADDRESS), (2, station(1))].map(|(host, address)| lab.socket(host, address));
    for batch in 0..10_u32 {
        let numbers = || batch * 20..(batch + 1) * 20;
        for number in numbers() {
            for address in [SERVER_ADDRESS, station(1)] {
                sender.send_to(&number.to_be_bytes(), (address, PORT)).unwrap();
            }
        }
        for receiver in &receivers {
            let arrived = numbers().map(|_| {
                let mut buffer = [0; 4];
                receiver.recv(&mut buffer).unwrap();
                u32::from_be_bytes(buffer)
            });
            assert!(arrived.eq(numbers()));
        }
    }
    let down = || Command::new("ip").args(["link", "set", "wlan0", "down"]).status().unwrap();
    assert!(lab.hosts[2].namespace.run(down).unwrap().success());
    sender.send_to(b"refused", (station(1), PORT)).unwrap();
    sender.send_to(b"last", (SERVER_ADDRESS, PORT)).unwrap();
    assert_eq!(receivers[0].recv(&mut [0; 10]).unwrap(), 4);
    drop((sender, receivers));
    let report = lab.end();
    assert_eq!(report.misrouted, super::Misrouted { undelivered: 1, ..Default::default() });
    assert_eq!(report.lateness.count(), 402);
}

#[test]
fn a_broadcast_reaches_every_other_station_and_not_the_server() {
    let Some(lab) = Lab::new(3) else { return };
    let server = lab.socket(0, Ipv4Addr::UNSPECIFIED);
    let stations: Vec<_> = (1..=3).map(|index| lab.socket(index, Ipv4Addr::UNSPECIFIED)).collect();
    stations[0].set_broadcast(true).unwrap();
    let mut buffer = [0; 100];
    for address in [STATION_BROADCAST, Ipv4Addr::BROADCAST] {
        stations[0].send_to(b"presence", (address, PORT)).unwrap();
        for receiver in &stations[1..] {
            let (length, from) = receiver.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], from.ip()), (&b"presence"[..], station(0).into()));
        }
    }
    server.set_nonblocking(true).unwrap();
    assert_eq!(server.recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop((server, stations));
    let report = lab.end();
    assert_eq!(report.counters.access_point.broadcasts, 2);
    assert_eq!(report.lateness.count(), 4, "each broadcast has two receivers, without the server");
}

#[test]
fn packets_for_nobody_are_counted_and_dropped() {
    let Some(lab) = Lab::new(1) else { return };
    let socket = lab.socket(1, station(0));
    socket.send_to(b"lost", (Ipv4Addr::new(192, 0, 2, 1), PORT)).unwrap();
    let server = lab.socket(0, SERVER_ADDRESS);
    socket.send_to(b"found", (SERVER_ADDRESS, PORT)).unwrap();
    assert_eq!(server.recv(&mut [0; 10]).unwrap(), 5, "the datagram for nobody did no harm");
    drop((socket, server));
    let misrouted = lab.end().misrouted;
    assert_eq!(misrouted.unroutable, 1);
    assert_eq!(misrouted.malformed, 0);
}

#[test]
fn malformed_packets_are_counted_and_dropped() {
    let Some(lab) = Lab::new(1) else { return };
    let server = lab.socket(0, SERVER_ADDRESS);
    // A packet socket sends any bytes through the device. None of these are a correct IPv4 packet.
    let send = || send_raw(&[&[0x60; 40], &[0x45], &[0x45; 19], &[0x4f; 21], &[0; 60]]);
    lab.hosts[1].namespace.run(send).unwrap();
    let socket = lab.socket(1, station(0));
    socket.send_to(b"sound", (SERVER_ADDRESS, PORT)).unwrap();
    assert_eq!(server.recv(&mut [0; 10]).unwrap(), 5);
    drop((socket, server));
    assert_eq!(lab.end().misrouted.malformed, 5);
}

#[test]
fn a_change_of_delay_takes_effect_in_mid_run() {
    let Some(lab) = Lab::new(1) else { return };
    let server = lab.socket(0, SERVER_ADDRESS);
    let socket = lab.socket(1, station(0));
    let fastest = || (0..3).map(|_| echo(&socket, &server)).min().unwrap();
    let before = fastest();
    let text = "name = \"x\"\nduration = \"60s\"\naccess_point = { standard = \"802.11g\" }\n\
                stations = [{ name = \"s0\" }]\nflows = [{ from = \"s0\", to = \"server\" }]\n\
                events = [{ at = \"1ms\", station = \"s0\", wired_delay = \"150ms\" }]\n";
    lab.driver.schedule(&Scenario::parse(text).unwrap(), clock::now());
    clock::sleep(Duration::from_millis(1));
    // The driver's thread reads its inbox before it reads the next packet.
    let after = fastest();
    assert!(after >= Duration::from_millis(300), "{after} is less than twice the delay");
    assert!(before < Duration::from_millis(300), "{before}");
    drop((socket, server));
    lab.end();
}

#[test]
fn the_server_s_queue_holds_a_long_burst_and_counts_an_overflow() {
    let Some((_alone, lease)) = lease() else { return };
    let (server, nobody_reads) = Host::server(&lease, None).unwrap();
    let burst = |packets: u32| {
        let send = || {
            let socket = UdpSocket::bind((SERVER_ADDRESS, PORT)).unwrap();
            (0..packets).for_each(|_| _ = socket.send_to(b"burst", (station(0), PORT)).unwrap());
        };
        server.namespace.run(send).unwrap();
        server.overflowed().unwrap()
    };
    assert_eq!(burst(30_000), 0);
    assert_eq!(burst(3_000), 30_000 + 3_000 - 32_767);
    drop(nobody_reads);
    server.remove(&lease).unwrap();
    assert!(lease.release(&[]).is_empty());
}

/// Sends one datagram and waits for its echo; returns the round-trip time.
fn echo(socket: &UdpSocket, server: &UdpSocket) -> Duration {
    let sent: Instant = clock::now();
    let mut buffer = [0; 10];
    socket.send_to(b"there", (SERVER_ADDRESS, PORT)).unwrap();
    let (length, from) = server.recv_from(&mut buffer).unwrap();
    server.send_to(&buffer[..length], from).unwrap();
    socket.recv(&mut buffer).unwrap();
    clock::now().saturating_since(sent)
}

#[allow(unsafe_code, reason = "packet sockets have no safe wrapper here")]
fn send_raw(packets: &[&[u8]]) {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let socket =
        socket(AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).unwrap();
    let index = nix::net::if_::if_nametoindex("wlan0").unwrap();
    for packet in packets {
        let to = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_IP as u16).to_be(),
            sll_ifindex: index.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: address and packet outlive the call, and their lengths are passed.
        let sent = unsafe {
            libc::sendto(
                socket.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                0,
                (&raw const to).cast(),
                size_of_val(&to) as libc::socklen_t,
            )
        };
        assert_eq!(sent, packet.len().cast_signed(), "{}", std::io::Error::last_os_error());
    }
}
