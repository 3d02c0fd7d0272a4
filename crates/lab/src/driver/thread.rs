//! The driver's loop.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use nix::sys::eventfd::EventFd;
use rand_pcg::Pcg64Mcg;
use wakeai_medium::{Destination, Medium, Node, StationId, WifiConfig};
use wakeai_units::{Duration, Instant};
use wakeai_world::{Change, TimedChange};

use super::poller::Poller;
use super::{Command, DriverReport, Lateness, Port, Strays, realtime};
use crate::clock;
use crate::host::Steering;
use crate::packet::{Frame, Pool, destination};

/// The poller's token of the command bell; the others are indices into the ports.
const BELL: u64 = u64::MAX;

/// Packets read from one host before the next one and the clock have their turn.
const READ_BURST: usize = 32;

/// Busy time after which the thread pauses, whatever waits: a guard for a machine that is too
/// slow for the scenario, where a real-time thread would leave nothing to the others.
const BUSY_LIMIT: Duration = Duration::from_millis(100);
const BUSY_PAUSE: std::time::Duration = std::time::Duration::from_micros(500);

pub(super) struct Setup {
    pub(super) config: WifiConfig,
    pub(super) rng: Pcg64Mcg,
    pub(super) ports: Vec<Port>,
    pub(super) broadcast: Ipv4Addr,
    pub(super) bell: Arc<EventFd>,
    pub(super) inbox: Receiver<Command>,
    pub(super) realtime: bool,
    pub(super) steering: Option<Steering>,
}

pub(super) fn run(setup: Setup) -> io::Result<DriverReport> {
    let mut lacks = Vec::new();
    if let Some(Err(error)) = setup.steering.map(Steering::pin_driver) {
        lacks.push(format!("the medium has no processor of its own ({error})"));
    }
    if setup.realtime {
        if let Err(error) = realtime::enter() {
            lacks.push(format!("no real-time scheduling (SCHED_FIFO: {error})"));
        }
    } else {
        lacks.push("no real-time scheduling (no limit on runaway threads)".to_owned());
    }
    let mut looped = Loop::new(setup)?;
    looped.run()?;
    lacks.append(&mut looped.lacks);
    Ok(DriverReport {
        lateness: looped.lateness,
        counters: looped.medium.counters().clone(),
        strays: looped.strays,
        lacks,
    })
}

struct Loop {
    medium: Medium<Frame>,
    ports: Vec<Port>,
    /// Whether something may be left to read: edges are told once.
    readable: Vec<bool>,
    by_address: BTreeMap<Ipv4Addr, Node>,
    by_node: BTreeMap<Node, usize>,
    broadcast: Ipv4Addr,
    poller: Poller,
    bell: Arc<EventFd>,
    inbox: Receiver<Command>,
    changes: BinaryHeap<Reverse<Pending>>,
    /// The medium's time zero.
    epoch: Instant,
    /// From when on lateness is recorded, in the medium's time.
    measured_from: Option<Instant>,
    lateness: Lateness,
    strays: Strays,
    lacks: Vec<String>,
    pool: Pool,
    buffer: Vec<u8>,
}

impl Loop {
    fn new(setup: Setup) -> io::Result<Self> {
        let Setup { config, rng, ports, broadcast, bell, inbox, realtime: _, steering: _ } = setup;
        let medium = Medium::new(&config.into(), rng).map_err(io::Error::other)?;
        let poller = Poller::new()?;
        poller.add(bell.as_ref(), BELL)?;
        for (index, port) in ports.iter().enumerate() {
            poller.add(&port.tun, index as u64)?;
        }
        Ok(Self {
            medium,
            readable: vec![true; ports.len()],
            by_address: ports.iter().flat_map(Port::addresses).collect(),
            by_node: ports.iter().enumerate().map(|(i, port)| (port.node, i)).collect(),
            ports,
            broadcast,
            poller,
            bell,
            inbox,
            changes: BinaryHeap::new(),
            epoch: clock::now(),
            measured_from: None,
            lateness: Lateness::default(),
            strays: Strays::default(),
            lacks: Vec::new(),
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

    /// The medium's time: the wall clock since the start.
    fn now(&self) -> Instant {
        self.of_medium(clock::now())
    }

    fn of_medium(&self, at: Instant) -> Instant {
        Instant::ZERO + at.saturating_since(self.epoch)
    }

    fn poll(&mut self, wait: Option<Duration>) -> io::Result<()> {
        let Self { poller, readable, bell, .. } = self;
        poller.wait(wait, |token| match usize::try_from(token) {
            Ok(port) if port < readable.len() => readable[port] = true,
            _ => {
                let _ = bell.read(); // only its ringing matters: the inbox is read every time
            }
        })
    }

    /// Time until something is due; `None` for without end.
    fn time_left(&self, now: Instant) -> Option<Duration> {
        let unread = self
            .ports
            .iter()
            .zip(&self.readable)
            .any(|(port, readable)| *readable && self.allowance(port.node) > 0);
        if unread {
            return Some(Duration::ZERO);
        }
        let change = self.changes.peek().map(|Reverse(pending)| pending.0.at);
        let due = [change, self.medium.next_timeout()].into_iter().flatten().min()?;
        Some(due.saturating_since(now))
    }

    /// Hands every due packet to its host and records how late that was.
    fn release(&mut self) {
        while let Some(delivery) = self.medium.poll_delivery() {
            if let Some(port) = self.by_node.get(&delivery.to).map(|index| &self.ports[*index])
                && port.tun.write(delivery.packet.bytes()).is_err()
            {
                self.strays.undelivered += 1;
            }
            if self.measured_from.is_some_and(|from| delivery.at >= from) {
                self.lateness.record(self.now().saturating_since(delivery.at));
            }
        }
    }

    /// Takes packets from every host that the medium has room for.
    fn read_hosts(&mut self) -> io::Result<()> {
        for index in 0..self.ports.len() {
            if self.readable[index] {
                let node = self.ports[index].node;
                self.read_host(index, node, self.allowance(node).min(READ_BURST))?;
            }
        }
        Ok(())
    }

    /// How many packets a host may send now. A station is held back while its queue in the medium
    /// is full: its host's own queue is the one that overflows. The server is not, because it has
    /// no queue of its own (DESIGN §10): what the wire cannot keep, the wire drops.
    fn allowance(&self, node: Node) -> usize {
        match node {
            Node::Server => READ_BURST,
            Node::Station(_) => self.medium.room(node),
        }
    }

    fn read_host(&mut self, index: usize, node: Node, room: usize) -> io::Result<()> {
        // RFC 919 §7: to the stations' network, or to whatever network this is.
        let broadcasts = [self.broadcast, Ipv4Addr::BROADCAST];
        for _ in 0..room {
            let Some(packet) = self.ports[index].tun.read(&mut self.buffer)? else {
                self.readable[index] = false;
                break;
            };
            let Some(address) = destination(packet) else {
                self.strays.malformed += 1;
                continue;
            };
            let to = match self.by_address.get(&address) {
                Some(to) => Destination::Unicast(*to),
                None if node != Node::Server && broadcasts.contains(&address) => {
                    Destination::Broadcast
                }
                None => {
                    self.strays.unroutable += 1;
                    continue;
                }
            };
            let Some(frame) = self.pool.frame(packet) else {
                self.strays.malformed += 1; // longer than the device's MTU
                continue;
            };
            let refused = self.medium.enqueue(self.now(), node, to, frame).is_err();
            if refused && node != Node::Server {
                self.strays.refused += 1;
            }
        }
        Ok(())
    }

    /// Reads the inbox; whether the driver is to stop.
    fn take_commands(&mut self) -> bool {
        while let Ok(command) = self.inbox.try_recv() {
            match command {
                Command::Schedule(mut change) => {
                    change.at = self.of_medium(change.at);
                    self.changes.push(Reverse(Pending(change)));
                }
                Command::Measure(from) => {
                    self.measured_from = from.map(|from| self.of_medium(from));
                }
                Command::Stop => return true,
            }
        }
        false
    }

    fn apply_changes(&mut self, now: Instant) {
        while let Some(Reverse(Pending(change))) = self.changes.peek().copied()
            && change.at <= now
        {
            self.changes.pop();
            self.apply(now, change.station, change.change);
        }
    }

    fn apply(&mut self, now: Instant, station: StationId, change: Change) {
        let applied = match change {
            Change::WiredDelay(delay) => self.medium.set_wired_delay(now, station, delay),
            Change::Rate(rate) => self.medium.set_rate(now, station, rate),
            Change::FrameErrorPpm(ppm) => self.medium.set_frame_error_rate(now, station, ppm),
        };
        if let Err(error) = applied {
            self.lacks.push(format!("an event had no effect: {error}"));
        }
    }
}

/// A change ordered by its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending(TimedChange);

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.at.cmp(&other.0.at)
    }
}
