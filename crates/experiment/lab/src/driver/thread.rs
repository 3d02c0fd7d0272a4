//! The event loop of the driver, which moves packets between the hosts' TUN devices and the medium
//! (the emulated radio and wire).

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use nix::sys::eventfd::EventFd;
use rand_pcg::Pcg64Mcg;
use wakeai_medium::{Destination, Medium, MediumConfig, Node};
use wakeai_units::{Duration, Instant};
use wakeai_world::{Changes, STATION_BROADCAST};

use super::poller::Poller;
use super::{Command, DriverReport, PacketsDigest, realtime};
use crate::clock;
use crate::host::{Port, Steering};
use crate::packet::{Frame, Pool, destination};

/// The poller's token of the eventfd that announces commands. All other tokens are indices of
/// ports, each of which is a host's TUN device.
const BELL: u64 = u64::MAX;

/// The largest number of packets that are read from a host before the loop handles the next host.
const READ_BURST: usize = 32;

/// The time after which a thread that never had to wait pauses for [`BUSY_PAUSE`]. If the machine
/// is too slow for the scenario, a real-time thread would otherwise take all of a processor's time.
const BUSY_LIMIT: Duration = Duration::from_millis(100);
const BUSY_PAUSE: std::time::Duration = std::time::Duration::from_micros(500);

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
        if let Err(error) = realtime::enter() {
            missing.push(format!("no real-time scheduling (SCHED_FIFO: {error})"));
        }
    } else {
        missing.push("no real-time scheduling (no limit on runaway threads)".to_owned());
    }
    let mut looped = Loop::new(setup, report)?;
    looped.run()?;
    let counters = looped.medium.counters().clone();
    Ok(DriverReport { counters, ..looped.report })
}

struct Loop {
    medium: Medium<Frame>,
    setup: Setup,
    /// For each port, whether it may have unread packets. The loop has to remember this, because
    /// edge-triggered epoll reports new packets only once.
    readable: Vec<bool>,
    by_address: BTreeMap<Ipv4Addr, Node>,
    by_node: BTreeMap<Node, usize>,
    poller: Poller,
    changes: Changes,
    /// The lateness is recorded from this time on (on the medium's clock).
    measured_from: Option<Instant>,
    report: DriverReport,
    pool: Pool,
    buffer: Vec<u8>,
}

impl Loop {
    fn new(setup: Setup, report: DriverReport) -> io::Result<Self> {
        let medium = Medium::new(&setup.config, setup.rng.clone()).map_err(io::Error::other)?;
        let poller = Poller::new()?;
        poller.add(setup.bell.as_ref(), BELL)?;
        let ports = &setup.ports;
        for (index, port) in ports.iter().enumerate() {
            poller.add(&port.tun, index as u64)?;
        }
        Ok(Self {
            medium,
            readable: vec![true; ports.len()],
            by_address: ports.iter().flat_map(Port::addresses).collect(),
            by_node: ports.iter().enumerate().map(|(i, port)| (port.node, i)).collect(),
            setup,
            poller,
            changes: Changes::default(),
            measured_from: None,
            report,
            pool: Pool::new(),
            buffer: vec![0; 65_536],
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut busy_since = self.now();
        while !self.take_commands() {
            let now = self.now();
            self.apply_changes(now);
            self.medium.handle_timeout(now);
            self.release();
            self.read_hosts()?;
            self.release();

            let now = self.now();
            let wait = self.time_left(now);
            if wait == Some(Duration::ZERO) && now.saturating_since(busy_since) < BUSY_LIMIT {
                self.poll(Some(Duration::ZERO))?;
                continue;
            }
            if wait == Some(Duration::ZERO) {
                std::thread::sleep(BUSY_PAUSE);
            }
            self.poll(wait)?;
            busy_since = self.now();
        }
        Ok(())
    }

    /// The medium's time: the lab's clock since the medium's time zero.
    fn now(&self) -> Instant {
        Instant::ZERO + clock::now().saturating_since(self.setup.epoch)
    }

    fn poll(&mut self, wait: Option<Duration>) -> io::Result<()> {
        let Self { poller, readable, setup, .. } = self;
        poller.wait(wait, |token| match usize::try_from(token) {
            Ok(port) if port < readable.len() => readable[port] = true,
            _ => {
                let _ = setup.bell.read(); // the bell only wakes the thread; each round reads the inbox
            }
        })
    }

    /// The time until the next event; `None` if there is none.
    fn time_left(&self, now: Instant) -> Option<Duration> {
        let unread = self
            .setup
            .ports
            .iter()
            .zip(&self.readable)
            .any(|(port, readable)| *readable && self.allowance(port.node) > 0);
        if unread {
            return Some(Duration::ZERO);
        }
        let due = [self.changes.next_timeout(), self.medium.next_timeout()]
            .into_iter()
            .flatten()
            .min()?;
        Some(due.saturating_since(now))
    }

    /// Hands every due packet to its receiver, and records the lateness.
    fn release(&mut self) {
        while let Some(delivery) = self.medium.poll_delivery() {
            if let Some(port) =
                self.by_node.get(&delivery.to).map(|index| &self.setup.ports[*index])
                && port.tun.write(delivery.packet.bytes()).is_err()
            {
                self.report.misrouted.undelivered += 1;
            }
            let measured = self.measured_from.is_some_and(|from| delivery.at >= from);
            if !measured && self.report.digest.is_none() {
                continue;
            }
            let now = self.now();
            if measured {
                self.report.lateness.record(now.saturating_since(delivery.at));
            }
            if let Some(digest) = &mut self.report.digest {
                digest.add(now, delivery.packet.bytes());
            }
        }
    }

    /// Reads packets from every host for which the medium has room.
    fn read_hosts(&mut self) -> io::Result<()> {
        for index in 0..self.setup.ports.len() {
            if self.readable[index] {
                let node = self.setup.ports[index].node;
                self.read_host(index, node, self.allowance(node).min(READ_BURST))?;
            }
        }
        Ok(())
    }

    /// The number of packets that may be read from a host now. While a station's queue in the
    /// medium is full, none of its packets are read, so that the host's own queue fills and
    /// overflows, as it would in front of a real radio. The server's packets are always read, and
    /// dropped if the wire's queue is full.
    fn allowance(&self, node: Node) -> usize {
        match node {
            Node::Server => READ_BURST,
            Node::Station(_) => self.medium.room(node),
        }
    }

    fn read_host(&mut self, index: usize, node: Node, room: usize) -> io::Result<()> {
        for _ in 0..room {
            let Some(packet) = self.setup.ports[index].tun.read(&mut self.buffer)? else {
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
            let refused = self.medium.enqueue(self.now(), node, to, frame).is_err();
            if refused && node != Node::Server {
                self.report.misrouted.refused += 1;
            }
        }
        Ok(())
    }

    /// Handles the commands in the inbox. Returns whether the driver is to stop.
    fn take_commands(&mut self) -> bool {
        while let Ok(command) = self.setup.inbox.try_recv() {
            match command {
                Command::Schedule(changes) => self.changes = changes,
                Command::Measure(from) => self.measured_from = from,
                Command::Stop => return true,
            }
        }
        false
    }

    fn apply_changes(&mut self, now: Instant) {
        while let Some(change) = self.changes.poll(now) {
            if let Err(error) = self.medium.change(change.station, change.change) {
                self.report.missing.push(format!("an event had no effect: {error}"));
            }
        }
    }
}
