//! The event loop.

mod agents;
mod connections;
mod flows;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;

use wakeai_medium::{Delivery, Node, StationId};
use wakeai_units::{Duration, Instant};
use wakeai_world::{Change, TimedChange};

use crate::agent::Agent;
use crate::carrier::Carrier;
use crate::connection::Connection;
use crate::flow::FlowState;
use crate::gauge::{Gauge, QUEUE_STEP};
use crate::observer::Observer;
use crate::packet::Packet;
use crate::reserving::Reserving;
use crate::timers::Timers;
use crate::watch::Watch;

/// Between two reports of how far the run is.
const REPORT: Duration = Duration::from_secs(1);

/// A run.
///
/// Every event belongs to one connection, flow or agent, and touches no other; what happens at the
/// same instant happens in a fixed order (changes, the medium, sleepers by their number).
#[derive(Debug)]
pub(crate) struct Simulation<O> {
    pub(crate) carrier: Carrier<O>,
    pub(crate) timers: Timers,
    /// Who sleeps under which number.
    pub(crate) sleepers: Vec<Sleeper>,
    pub(crate) flows: Vec<FlowState>,
    pub(crate) stations: Vec<Station>,
    /// By id; gone when both ends are done.
    pub(crate) connections: Vec<Option<Box<Connection>>>,
    pub(crate) changes: VecDeque<TimedChange>,
    pub(crate) watch: Watch,
    /// Where there are records.
    pub(crate) gauge: Option<Gauge>,
    /// Flows that have not completed and can.
    pub(crate) unfinished: usize,
}

/// Who is woken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sleeper {
    Flow(u32),
    Agent(u32),
    Sender(u32),
    Receiver(u32),
    Gauge(u32),
}

/// A station's host.
#[derive(Debug, Default)]
pub(crate) struct Station {
    pub(crate) agent: Option<Box<Agent>>,
    /// The connections that it sends over.
    pub(crate) senders: Vec<u32>,
    /// UDP flows that keep its queue full, the next one to send first.
    pub(crate) saturating: VecDeque<u32>,
    pub(crate) reserving: Reserving,
}

/// Hears how far a run is, and says whether it goes on.
pub(crate) type Reached<'a> = dyn FnMut(Duration) -> ControlFlow<()> + 'a;

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Change,
    Medium,
    Timer,
}

impl<O: Observer> Simulation<O> {
    /// Runs until all flows are done, or to the end. Gives that time; `reached` hears how far it is,
    /// and may break the run off.
    pub(crate) fn run(&mut self, reached: &mut Reached<'_>) -> Option<Instant> {
        let end = self.handle_events(reached)?;
        if let Some(gauge) = &mut self.gauge {
            gauge.look_at_the_end(end, &self.carrier.medium);
        }
        Some(end)
    }

    fn handle_events(&mut self, reached: &mut Reached<'_>) -> Option<Instant> {
        let span = self.carrier.span;
        let mut now = Instant::ZERO;
        let mut report = span.origin + REPORT;
        while self.unfinished > 0 {
            let Some((at, next)) = self.next_event() else { return Some(span.end) };
            if at > span.end {
                return Some(span.end);
            }
            now = at;
            if now >= report {
                if reached(span.since(now)).is_break() {
                    return None;
                }
                report = now + REPORT;
            }
            match next {
                Next::Change => self.change(now),
                Next::Medium => self.medium(now),
                Next::Timer => self.wake(now),
            }
        }
        Some(now)
    }

    fn next_event(&mut self) -> Option<(Instant, Next)> {
        let change = self.changes.front().map(|change| (change.at, Next::Change));
        let medium = self.carrier.medium.next_timeout().map(|at| (at, Next::Medium));
        let timer = self.timers.next().map(|at| (at, Next::Timer));
        [change, medium, timer].into_iter().flatten().min()
    }

    fn change(&mut self, now: Instant) {
        let Some(TimedChange { station, change, .. }) = self.changes.pop_front() else { return };
        let agent = self.stations.get_mut(station.0 as usize).and_then(|host| host.agent.as_mut());
        if let (Some(agent), Change::Rate(rate)) = (agent, &change) {
            agent.set_link_rate(*rate);
        }
        let changed = change.apply(&mut self.carrier.medium, now, station);
        changed.expect("the scenario's values were checked when it was read");
    }

    fn medium(&mut self, now: Instant) {
        self.carrier.medium.handle_timeout(now);
        while let Some(delivery) = self.carrier.medium.poll_delivery() {
            self.deliver(now, &delivery);
        }
        while let Some(departure) = self.carrier.medium.poll_departure() {
            self.departed(now, &departure);
        }
    }

    fn wake(&mut self, now: Instant) {
        let Some(sleeper) = self.timers.wake() else { return };
        match self.sleepers[sleeper as usize] {
            Sleeper::Flow(flow) => self.wake_flow(now, flow),
            Sleeper::Agent(station) => self.wake_agent(now, station),
            Sleeper::Sender(id) => self.wake_sender(now, id),
            Sleeper::Receiver(id) => self.wake_receiver(now, id),
            Sleeper::Gauge(sleeper) => self.wake_gauge(now, sleeper),
        }
    }

    fn deliver(&mut self, now: Instant, delivery: &Delivery<Packet>) {
        match &delivery.packet {
            Packet::Segment(wire) => {
                let wire = *wire;
                let Some(connection) = &self.connections[wire.connection as usize] else { return };
                self.carrier.show(delivery, (connection.flow, connection.number));
                self.segment(now, wire);
            }
            Packet::Datagram { flow, len } => {
                let (flow, len) = (*flow, u64::from(*len));
                self.carrier.show(delivery, (flow, 0));
                self.received(now, flow, len);
            }
            Packet::Presence(bytes) => {
                self.carrier.show(delivery, (0, 0));
                if let Node::Station(StationId(station)) = delivery.to {
                    let bytes = Rc::clone(bytes);
                    self.presence(now, station, &bytes);
                }
            }
        }
    }

    fn wake_gauge(&mut self, now: Instant, sleeper: u32) {
        if let Some(gauge) = &mut self.gauge {
            gauge.look(now, &self.carrier.medium);
            self.timers.set(sleeper, Some(now + QUEUE_STEP));
        }
    }
}
