//! The driver's thread, and the hosts' TUN devices as the ends of the medium (the emulated radio and wire).

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use nix::sys::eventfd::EventFd;
use rand_pcg::Pcg64Mcg;
use wakeai_air::{Clock, Drive, Ends, Poller, enter_realtime};
use wakeai_medium::{Destination, Medium, MediumConfig, Node};
use wakeai_units::Instant;
use wakeai_world::STATION_BROADCAST;

use super::{Command, DriverReport, PacketsDigest};
use crate::host::{Port, Steering};
use crate::packet::{Frame, Pool, destination};

/// The largest number of packets that are read from a host before the loop handles the next host.
const READ_BURST: usize = 32;

/// The broadcast address of the stations' network, and the limited broadcast address (RFC 919
/// section 7).
const BROADCASTS: [Ipv4Addr; 2] = [STATION_BROADCAST, Ipv4Addr::BROADCAST];

pub(super) struct Setup {
    pub(super) config: MediumConfig,
    pub(super) rng: Pcg64Mcg,
    /// The time at which the medium's clock is zero.
    pub(super) epoch: Instant,
    pub(super) ports: Vec<Port>,
    pub(super) bell: Arc<EventFd>,
    pub(super) inbox: Receiver<Command>,
    pub(super) realtime: bool,
    pub(super) digests: bool,
    pub(super) steering: Option<Steering>,
}

pub(super) fn run(setup: Setup) -> io::Result<DriverReport> {
    let digest = setup.digests.then_some(PacketsDigest::EMPTY);
    let mut report = DriverReport { digest, ..DriverReport::default() };
    let missing = &mut report.missing;
    if let Some(Err(error)) = setup.steering.map(Steering::pin_driver) {
        missing.push(format!("the medium has no processor of its own ({error})"));
    }
    if setup.realtime {
        if let Err(error) = enter_realtime() {
            missing.push(format!("no real-time scheduling (SCHED_FIFO: {error})"));
        }
    } else {
        missing.push("no real-time scheduling (no limit on runaway threads)".to_owned());
    }
    let Setup { config, rng, epoch, ports, bell, inbox, .. } = setup;
    let medium = Medium::new(&config, rng).map_err(io::Error::other)?;
    let hosts = Hosts::new(ports, report);
    let mut drive = Drive::new(medium, hosts, Clock::since(epoch), Some(bell.as_ref()))?;
    // The bell only wakes the thread; each round reads the inbox.
    drive.run(
        |drive| take_commands(drive, &inbox),
        || {
            let _ = bell.read();
        },
    )?;
    let mut report = drive.ends.report;
    report.missing.append(&mut drive.failed_changes);
    Ok(DriverReport { counters: drive.medium.counters().clone(), ..report })
}

/// Handles the commands in the inbox. Returns whether the driver is to stop.
fn take_commands(drive: &mut Drive<Hosts>, inbox: &Receiver<Command>) -> bool {
    while let Ok(command) = inbox.try_recv() {
        match command {
            Command::Schedule(changes) => drive.changes = changes,
            Command::Measure(from) => drive.ends.measured_from = from,
            Command::Stop => return true,
        }
    }
    false
}

/// The hosts' TUN devices.
struct Hosts {
    ports: Vec<Port>,
    /// For each port, whether it may have unread packets. The loop has to remember this, because
    /// edge-triggered epoll reports new packets only once.
    readable: Vec<bool>,
    by_address: BTreeMap<Ipv4Addr, Node>,
    by_node: BTreeMap<Node, usize>,
    /// The lateness is recorded from this time on (on the medium's clock).
    measured_from: Option<Instant>,
    report: DriverReport,
    pool: Pool,
    buffer: Vec<u8>,
}

impl Hosts {
    fn new(ports: Vec<Port>, report: DriverReport) -> Self {
        Self {
            readable: vec![true; ports.len()],
            by_address: ports.iter().flat_map(Port::addresses).collect(),
            by_node: ports.iter().enumerate().map(|(i, port)| (port.node, i)).collect(),
            ports,
            measured_from: None,
            report,
            pool: Pool::new(),
            buffer: vec![0; 65_536],
        }
    }

    /// The number of packets that may be read from a host now. While a station's queue in the
    /// medium is full, none of its packets are read, so that the host's own queue fills and
    /// overflows, as it would in front of a real radio. The server's packets are always read, and
    /// dropped if the wire's queue is full.
    fn allowance(medium: &Medium<Frame>, node: Node) -> usize {
        match node {
            Node::Server => READ_BURST,
            Node::Station(_) => medium.room(node),
        }
    }

    fn read_host(
        &mut self,
        medium: &mut Medium<Frame>,
        clock: Clock,
        index: usize,
        room: usize,
    ) -> io::Result<()> {
        let node = self.ports[index].node;
        for _ in 0..room {
            let Some(packet) = self.ports[index].tun.read(&mut self.buffer)? else {
                self.readable[index] = false;
                break;
            };
            let Some(address) = destination(packet) else {
                self.report.misrouted.malformed += 1;
                continue;
            };
            let to = match self.by_address.get(&address) {
                Some(to) => Destination::Unicast(*to),
                None if node != Node::Server && BROADCASTS.contains(&address) => {
                    Destination::Broadcast
                }
                None => {
                    self.report.misrouted.unroutable += 1;
                    continue;
                }
            };
            let Some(frame) = self.pool.frame(packet) else {
                self.report.misrouted.malformed += 1; // the packet is longer than the device's MTU
                continue;
            };
            let refused = medium.enqueue(clock.now(), node, to, frame).is_err();
            if refused && node != Node::Server {
                self.report.misrouted.refused += 1;
            }
        }
        Ok(())
    }
}

impl Ends for Hosts {
    type Packet = Frame;

    /// The tokens are the indices of the ports.
    fn register(&self, poller: &Poller) -> io::Result<()> {
        (0..).zip(&self.ports).try_for_each(|(token, port)| poller.add(&port.tun, token))
    }

    fn ready(&mut self, token: u64) {
        let port = usize::try_from(token).ok().and_then(|port| self.readable.get_mut(port));
        if let Some(readable) = port {
            *readable = true;
        }
    }

    fn is_unread(&self, medium: &Medium<Frame>) -> bool {
        let mut ports = self.ports.iter().zip(&self.readable);
        ports.any(|(port, readable)| *readable && Self::allowance(medium, port.node) > 0)
    }

    /// Reads packets from every host for which the medium has room.
    fn read(&mut self, medium: &mut Medium<Frame>, clock: Clock) -> io::Result<()> {
        for index in 0..self.ports.len() {
            if self.readable[index] {
                let room = Self::allowance(medium, self.ports[index].node).min(READ_BURST);
                self.read_host(medium, clock, index, room)?;
            }
        }
        Ok(())
    }

    /// Hands every due packet to its receiver, and records the lateness.
    fn release(&mut self, medium: &mut Medium<Frame>, clock: Clock) {
        while let Some(delivery) = medium.poll_delivery() {
            if let Some(port) = self.by_node.get(&delivery.to).map(|index| &self.ports[*index])
                && port.tun.write(delivery.packet.bytes()).is_err()
            {
                self.report.misrouted.undelivered += 1;
            }
            let measured = self.measured_from.is_some_and(|from| delivery.at >= from);
            if !measured && self.report.digest.is_none() {
                continue;
            }
            let now = clock.now();
            if measured {
                self.report.lateness.record(now.saturating_since(delivery.at));
            }
            if let Some(digest) = &mut self.report.digest {
                digest.add(now, delivery.packet.bytes());
            }
        }
    }
}
