//! The datagrams of a run. The end that connects to the other one announces itself, so that datagrams find their way back
//! through address translation.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::{Domain, Protocol, Socket, Type};
use wakeai_host::since_boot;
use wakeai_units::{Duration, Instant};

use super::flow::{FlowState, Shared};
use super::sockets::{PATIENCE, bind};
use crate::protocol::Way;

/// The payload of an IPv4 packet of 1500 bytes, as in the other worlds.
const DATAGRAM: usize = wakeai_world::flows::DATAGRAM.get() as usize;
/// The bytes of a datagram that say which flow it belongs to.
const HEADER: usize = 20;
/// The length of a datagram that announces a receiver.
const ANNOUNCEMENT: usize = 24;
/// The time between two announcements.
const BETWEEN: Duration = Duration::from_millis(200);
/// The longest pause between two datagrams that is slept at once; what is due meanwhile goes out together.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

fn socket(way: &Way, to: SocketAddr, port: u16) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
    bind(&socket, way, &to.ip(), port)
        .map_err(|error| io::Error::new(error.kind(), format!("open UDP port {port}: {error}")))?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// The socket at which the flows of others arrive.
pub(super) fn listen(way: &Way, port: u16) -> io::Result<UdpSocket> {
    let own = way.address.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED.into());
    socket(way, SocketAddr::new(own, port), port)
}

fn begins(shared: &Shared, flow: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..16].copy_from_slice(&shared.plan.token.bytes());
    header[16..].copy_from_slice(&flow.to_le_bytes());
    header
}

/// The flow of a datagram of this run.
fn flow_of<'a>(shared: &'a Shared, datagram: &[u8]) -> Option<&'a FlowState> {
    let (token, rest) = datagram.split_first_chunk::<16>()?;
    let number = u32::from_le_bytes(*rest.first_chunk()?);
    let known = *token == shared.plan.token.bytes();
    shared.flows.get(&number).filter(|flow| known && flow.role.udp_bps.is_some())
}

/// Serves the flows whose other end connects, until the run is over.
pub(super) fn serve(shared: &Arc<Shared>, socket: &Arc<UdpSocket>) {
    let mut buffer = [0; 2_048];
    let mut begun = Vec::new();
    while !shared.is_over() {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let Some(flow) = flow_of(shared, &buffer[..length]) else { continue };
        if !flow.role.sends {
            flow.arrived(shared.since_origin(since_boot()), length as u64);
        } else if length == ANNOUNCEMENT && !begun.contains(&flow.role.flow) {
            begun.push(flow.role.flow);
            let (socket, number) = (Arc::clone(socket), flow.role.flow);
            shared.spawn(move |shared| {
                send(shared, &shared.flows[&number], |datagram| socket.send_to(datagram, from));
            });
        }
    }
}

/// Carries a flow whose other end listens.
pub(super) fn carry(shared: &Shared, flow: &FlowState) {
    let Some((origin, to)) = shared.origin.get().zip(flow.role.to) else { return };
    if !shared.sleep_until(*origin + Duration::from_nanos(flow.role.start_ns)) {
        return;
    }
    flow.opened(shared.since_origin(since_boot()));
    let opened = socket(&shared.plan.way, to, 0).and_then(|socket| {
        socket.connect(to)?;
        Ok(socket)
    });
    match opened {
        Err(error) => flow.fails(format!("flow {} failed: {error}", flow.role.flow + 1)),
        Ok(socket) if flow.role.sends => send(shared, flow, |datagram| socket.send(datagram)),
        Ok(socket) => receive(shared, flow, &socket),
    }
}

fn receive(shared: &Shared, flow: &FlowState, socket: &UdpSocket) {
    let mut announcement = begins(shared, flow.role.flow).to_vec();
    announcement.resize(ANNOUNCEMENT, 0);
    let (mut buffer, heard) = ([0; 2_048], AtomicBool::new(false));
    let mut next = Instant::ZERO;
    while !shared.is_over() {
        if !heard.load(Ordering::Relaxed) && since_boot() >= next {
            next = since_boot() + BETWEEN;
            let _ = socket.send(&announcement); // the next one may get through
        }
        let Ok(length) = socket.recv(&mut buffer) else { continue };
        if flow_of(shared, &buffer[..length]).is_some_and(|of| of.role.flow == flow.role.flow) {
            heard.store(true, Ordering::Relaxed);
            flow.arrived(shared.since_origin(since_boot()), length as u64);
        }
    }
}

/// Sends datagrams at the flow's rate until the run is over. A full queue of the host loses them, as it does those of other
/// programs.
fn send(shared: &Shared, flow: &FlowState, write: impl Fn(&[u8]) -> io::Result<usize>) {
    let bps = flow.role.udp_bps.unwrap_or(0).max(1);
    let between = Duration::from_nanos((DATAGRAM as u64 * 8).saturating_mul(1_000_000_000) / bps);
    let mut datagram = begins(shared, flow.role.flow).to_vec();
    datagram.resize(DATAGRAM, 0);
    let mut next = since_boot();
    while !shared.is_over() {
        let now = since_boot();
        if next > now {
            let pause = next.saturating_since(now).max(SHORTEST_SLEEP);
            if !shared.sleep_until(now + pause) {
                return;
            }
        }
        while next <= since_boot() && !shared.is_over() {
            let _ = write(&datagram);
            next += between.max(Duration::from_nanos(1));
        }
    }
}
