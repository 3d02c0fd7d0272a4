//! The event loop: the next of medium, timers and the scenario's events, and what follows from it.

mod agents;
mod quic;
mod traffic;
mod turns;

pub(crate) use agents::Agent;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use wakeai_medium::{Arrival, Change, Delivery, Receivers};
use wakeai_units::{Duration, Instant};
use wakeai_world::Changes;

use crate::broadcasts::Broadcasts;
use crate::carrier::{Carrier, Observer};
use crate::connection::{Connection, Senders};
use crate::flow::{FlowState, Reserving};
use crate::packet::Packet;
use crate::sampler::{QUEUE_STEP, Sampler};
use crate::timers::{TimerOwner, Timers};

/// The simulated time between two reports of progress.
const REPORT: Duration = Duration::from_secs(1);

/// A run.
///
/// Every event belongs to one connection, flow or agent, and changes no other. Events of the same
/// instant are handled in a fixed order: changes of the scenario first, then the medium, then
/// timers by their number.
pub(crate) struct Simulation<O> {
    pub(crate) carrier: Carrier<O>,
    pub(crate) timers: Timers,
    pub(crate) flows: Vec<FlowState>,
    pub(crate) stations: Vec<Station>,
    /// The connections by id; `None` once both ends of one have finished.
    pub(crate) connections: Vec<Option<Box<Connection>>>,
    pub(crate) changes: Changes,
    pub(crate) senders: Senders,
    /// The sampler of queues and airtime with its timer; `None` without records.
    pub(crate) sampler: Option<(Sampler, u32)>,
    /// The number of flows that have not completed and still can.
    pub(crate) unfinished: usize,
    /// The broadcasts of agents that have arrived.
    pub(crate) broadcasts: Broadcasts,
}

/// A station's host.
#[derive(Default)]
pub(crate) struct Station {
    pub(crate) agent: Option<Box<Agent>>,
    /// The ids of the connections over which the station sends or receives data.
    pub(crate) connections: Vec<u32>,
    /// The UDP flows that keep the station's queue full. The first one sends next.
    pub(crate) saturating: VecDeque<u32>,
    /// The UDP and QUIC flows that the station sends, where its agent limits their rates.
    pub(crate) datagrams: Vec<u32>,
    pub(crate) reserving: Reserving,
    /// The flows that have begun, have not ended and wait for the station's turns.
    pub(crate) in_turns: Vec<u32>,
}

/// Called with the simulated time that a run has reached. It breaks where the run has to end.
pub(crate) type Reached<'a> = dyn FnMut(Duration) -> ControlFlow<()> + 'a;

/// The kind of the next event. The order is that of handling at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Change,
    Medium,
    Timer,
}

impl<O: Observer> Simulation<O> {
    /// Runs until all flows have completed, or to the end of the scenario's duration. Returns the
    /// time of the end; `None` where `reached` breaks.
    pub(crate) fn run(&mut self, reached: &mut Reached<'_>) -> Option<Instant> {
        let span = self.carrier.span;
        let mut now = Instant::ZERO;
        let mut report = span.origin + REPORT;
        while self.unfinished > 0 {
            let Some((at, next)) = self.next_event() else { return Some(span.end) };
            if at > span.end {
                return Some(span.end);
            }
            debug_assert!(now <= at, "an event of {at} after one of {now}");
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
        let medium = self.carrier.medium.next_timeout().map(|at| (at, Next::Medium));
        let timer = self.timers.next().map(|at| (at, Next::Timer));
        [change, medium, timer].into_iter().flatten().min()
    }

    fn change(&mut self, now: Instant) {
        let Some(timed) = self.changes.poll(now) else { return };
        if let Change::Rate(rate) = timed.change {
            self.catch_up(now, timed.station.0);
            if let Some(agent) = &mut self.stations[timed.station.index()].agent {
                agent.link_rate = Some(rate);
            }
        }
        let changed = self.carrier.medium.change(timed.station, timed.change);
        changed.expect("the scenario's values were checked when it was read");
    }

    fn medium(&mut self, now: Instant) {
        self.carrier.medium.handle_timeout(now);
        while let Some(arrival) = self.carrier.medium.poll_arrival() {
            self.arrive(now, arrival);
        }
        while let Some(departure) = self.carrier.medium.poll_departure() {
            self.departed(now, &departure);
        }
    }

    fn wake(&mut self, now: Instant) {
        let Some(owner) = self.timers.expire() else { return };
        match owner {
            TimerOwner::Flow(flow) => self.wake_flow(now, flow),
            TimerOwner::Agent(station) => self.wake_agent(now, station),
            TimerOwner::Sender(id) => self.wake_sender(now, id),
            TimerOwner::Receiver(id) => self.wake_receiver(now, id),
            TimerOwner::Quic(flow, is_receiver) => self.wake_quic(now, flow, is_receiver),
            TimerOwner::Policer(flow) => self.wake_policer(now, flow),
            TimerOwner::Sampler => self.wake_sampler(now),
        }
    }

    fn arrive(&mut self, now: Instant, arrival: Arrival<Packet>) {
        let Arrival { at, from, to, packet } = arrival;
        match (to, packet) {
            (Receivers::Stations(to), Packet::Presence(bytes)) => {
                self.presence(now, (at, from, &to), &bytes);
            }
            (Receivers::Node(to), packet) => {
                self.deliver(now, &Delivery { at, to, from, packet });
            }
            (Receivers::Stations(_), _) => unreachable!("only presence messages are broadcasts"),
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
            Packet::Quic { flow, to_sender, packet } => {
                self.carrier.show(delivery, (*flow, 0));
                self.quic_packet(now, (*flow, *to_sender), packet);
            }
            Packet::Presence(_) => unreachable!("presence messages are broadcasts"),
        }
    }

    fn wake_sampler(&mut self, now: Instant) {
        if let Some((sampler, timer)) = &mut self.sampler {
            sampler.sample(now, &self.carrier.medium);
            self.timers.set(*timer, Some(now + QUEUE_STEP));
        }
    }
}
