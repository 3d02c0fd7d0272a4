//! The driver's thread, and the hosts' TUN devices as the ends of the medium (the emulated radio and wire).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use nix::sys::eventfd::EventFd;
use rand_pcg::Pcg64Mcg;
use wakeai_air::hwsim::{self, AirFrame, Radios};
use wakeai_air::{Clock, Drive, Ends, Host, Poller, enter_realtime};
use wakeai_medium::{Counters, Destination, Medium, MediumConfig, Node};
use wakeai_scenario::Experiment;
use wakeai_units::Instant;
use wakeai_world::STATION_BROADCAST;

use super::{Command, DriverReport, PacketsDigest};
use crate::host::{Port, Steering, radio_address};
use crate::packet::{Frame, Pool, destination};

/// The largest number of packets that are read from a host before the loop handles the next host.
const READ_BURST: usize = 32;

/// The broadcast address of the stations' network, and the limited broadcast address (RFC 919
/// section 7).
const BROADCASTS: [Ipv4Addr; 2] = [STATION_BROADCAST, Ipv4Addr::BROADCAST];

/// What the medium is between.
pub(super) enum Between {
    /// Hosts with TUN devices.
    Hosts(Box<MediumConfig>, Vec<Port>),
    /// The access point and the stations of an experiment as radios of `mac80211_hwsim`.
    Radios(Box<Experiment>),
}

pub(super) struct Setup {
    pub(super) between: Between,
    pub(super) rng: Pcg64Mcg,
    /// The time at which the medium's clock is zero.
    pub(super) epoch: Instant,
    /// Is told once the medium runs.
    pub(super) ready: Sender<()>,
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
    let Setup { between, rng, epoch, ready, bell, inbox, .. } = setup;
    let clock = Clock::since(epoch);
    match between {
        Between::Hosts(config, ports) => {
            let medium = Medium::new(&config, rng).map_err(io::Error::other)?;
            let hosts = Hosts::new(ports, report, setup.steering);
            let drive = Drive::new(medium, hosts, clock, Some(bell.as_ref()))?;
            let _ = ready.send(()); // somebody waits for it, or nobody needs it any more
            let (hosts, counters) = between_hosts(drive, &bell, &inbox)?;
            Ok(DriverReport { counters, ..hosts.report })
        }
        Between::Radios(experiment) => {
            let (medium, radios) = open(&experiment, rng)?;
            let drive = Drive::new(medium, radios, clock, Some(bell.as_ref()))?;
            let _ = ready.send(());
            between_radios(drive, clock, report, &bell, &inbox)
        }
    }
}

fn between_hosts(
    mut drive: Drive<Hosts>,
    bell: &EventFd,
    inbox: &Receiver<Command>,
) -> io::Result<(Hosts, Counters)> {
    let is_over = |drive: &mut Drive<Hosts>| {
        take_commands(inbox, |command| match command {
            Command::Schedule(changes) => drive.changes = changes,
            Command::Measure(from) => drive.ends.measured_from = from,
            Command::Stop => {}
        })
    };
    drive.run(is_over, || taken(bell))?;
    drive.ends.report.missing.append(&mut drive.failed_changes);
    let counters = drive.medium.counters().clone();
    Ok((drive.ends, counters))
}

/// The air of radios whose addresses the driver counts upwards: first the access point's, then the stations'.
fn open(experiment: &Experiment, rng: Pcg64Mcg) -> io::Result<(Medium<AirFrame>, Radios)> {
    let stations = experiment.expand_stations().into_iter().map(|station| station.name);
    let names = std::iter::once("access_point".to_owned()).chain(stations);
    let radios = names.enumerate().map(|(number, name)| (name, radio_address(number)));
    hwsim::open(experiment, rng, &radios.collect::<Vec<_>>()).map_err(io::Error::other)
}

fn between_radios(
    mut drive: Drive<Radios>,
    clock: Clock,
    report: DriverReport,
    bell: &EventFd,
    inbox: &Receiver<Command>,
) -> io::Result<DriverReport> {
    let measured_from = Rc::new(Cell::new(None::<Instant>));
    let report = Rc::new(RefCell::new(report));
    let (from, seen) = (Rc::clone(&measured_from), Rc::clone(&report));
    drive.ends.observe(move |seen_at, late, frame| {
        let mut report = seen.borrow_mut();
        if from.get().is_some_and(|from| seen_at >= from) {
            report.lateness.record(late);
        }
        if let Some(digest) = &mut report.digest {
            digest.add(seen_at, frame);
        }
    });
    let is_over = |drive: &mut Drive<Radios>| {
        take_commands(inbox, |command| match command {
            Command::Schedule(changes) => drive.changes = drive.ends.changes(changes),
            Command::Measure(from) => measured_from.set(from),
            Command::Stop => {}
        })
    };
    drive.run(is_over, || taken(bell))?;
    drive.ends.end(&mut drive.medium, clock);
    let mut report = report.take();
    report.missing.append(&mut drive.failed_changes);
    let lost = drive.ends.not_carried();
    report.misrouted.malformed = lost.malformed;
    report.misrouted.refused = lost.socket_full + lost.freed_by_driver;
    report.misrouted.unroutable = lost.unknown_radio;
    report.misrouted.undelivered = lost.refused_by_receiver;
    Ok(DriverReport { counters: drive.medium.counters().clone(), ..report })
}

/// The bell only wakes the thread; each round reads the inbox.
fn taken(bell: &EventFd) {
    let _ = bell.read();
}

/// Hands the commands in the inbox to `obey`. Returns whether the driver is to stop.
fn take_commands(inbox: &Receiver<Command>, mut obey: impl FnMut(Command)) -> bool {
    while let Ok(command) = inbox.try_recv() {
        let stops = matches!(command, Command::Stop);
        obey(command);
        if stops {
            return true;
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
    /// What each host does inside the driver's calls; `None` where other processors do it.
    handled_in_call: Option<Vec<Host>>,
    report: DriverReport,
    pool: Pool,
    buffer: Vec<u8>,
}

impl Hosts {
    fn new(ports: Vec<Port>, report: DriverReport, steering: Option<Steering>) -> Self {
        Self {
            handled_in_call: steering.is_none().then(|| vec![Host::default(); ports.len()]),
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
            let Some(&index) = self.by_node.get(&delivery.to) else { continue };
            let begun = clock.now();
            if self.ports[index].tun.write(delivery.packet.bytes()).is_err() {
                self.report.misrouted.undelivered += 1;
            }
            if self.measured_from.is_some_and(|from| delivery.at >= from) {
                let done = clock.now();
                let late = match &mut self.handled_in_call {
                    Some(hosts) => hosts[index].delay(delivery.at, begun, done),
                    None => done.saturating_since(delivery.at),
                };
                self.report.lateness.record(late);
            }
            if let Some(digest) = &mut self.report.digest {
                digest.add(begun, delivery.packet.bytes());
            }
        }
    }
}
