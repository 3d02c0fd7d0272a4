//! The event loop.

mod agents;
mod traffic;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;

use wakeai_medium::{Delivery, Node, StationId};
use wakeai_units::{Duration, Instant};
use wakeai_world::{Change, Changes};

use crate::agent::Agent;
use crate::carrier::{Carrier, Observer};
use crate::connection::Connection;
use crate::flow::{FlowState, Reserving};
use crate::packet::Packet;
use crate::sampler::{QUEUE_STEP, Sampler};
use crate::senders::Senders;
use crate::timers::Timers;

/// Between two reports of how far the run is.
const REPORT: Duration = Duration::from_secs(1);

/// A run.
///
/// Every event belongs to one connection, flow or agent, and touches no other; what happens at the
/// same instant happens in a fixed order (changes, the medium, timers by their number).
#[derive(Debug)]
pub(crate) struct Simulation<O> {
    pub(crate) carrier: Carrier<O>,
    pub(crate) timers: Timers,
    /// Who sleeps under which number.
    pub(crate) timer_owners: Vec<TimerOwner>,
    pub(crate) flows: Vec<FlowState>,
    pub(crate) stations: Vec<Station>,
    /// By id; gone when both ends are done.
    pub(crate) connections: Vec<Option<Box<Connection>>>,
    pub(crate) changes: Changes,
    pub(crate) senders: Senders,
    /// Where there are records.
    pub(crate) sampler: Option<Sampler>,
    /// Flows that have not completed and can.
    pub(crate) unfinished: usize,
}

/// Who is woken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimerOwner {
    Flow(u32),
    Agent(u32),
    Sender(u32),
    Receiver(u32),
    Sampler(u32),
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
        if let Some(sampler) = &mut self.sampler {
            sampler.sample_end(end, &self.carrier.network);
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
        let change = self.changes.next_timeout().map(|at| (at, Next::Change));
        let medium = self.carrier.network.next_timeout().map(|at| (at, Next::Medium));
        let timer = self.timers.next().map(|at| (at, Next::Timer));
        [change, medium, timer].into_iter().flatten().min()
    }

    fn change(&mut self, now: Instant) {
        let Some(timed) = self.changes.poll(now) else { return };
        let agent = self.stations[timed.station.index()].agent.as_mut();
        if let (Some(agent), Change::Rate(rate)) = (agent, timed.change) {
            agent.set_link_rate(rate);
        }
        let changed = timed.apply(&mut self.carrier.network, now);
        changed.expect("the scenario's values were checked when it was read");
    }

    fn medium(&mut self, now: Instant) {
        self.carrier.network.handle_timeout(now);
        while let Some(delivery) = self.carrier.network.poll_delivery() {
            self.deliver(now, &delivery);
        }
        while let Some(departure) = self.carrier.network.poll_departure() {
            self.departed(now, &departure);
        }
    }

    fn wake(&mut self, now: Instant) {
        let Some(timer) = self.timers.wake() else { return };
        match self.timer_owners[timer as usize] {
            TimerOwner::Flow(flow) => self.wake_flow(now, flow),
            TimerOwner::Agent(station) => self.wake_agent(now, station),
            TimerOwner::Sender(id) => self.wake_sender(now, id),
            TimerOwner::Receiver(id) => self.wake_receiver(now, id),
            TimerOwner::Sampler(timer) => self.wake_sampler(now, timer),
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

    fn wake_sampler(&mut self, now: Instant, timer: u32) {
        if let Some(sampler) = &mut self.sampler {
            sampler.sample(now, &self.carrier.network);
            self.timers.set(timer, Some(now + QUEUE_STEP));
        }
    }
}
