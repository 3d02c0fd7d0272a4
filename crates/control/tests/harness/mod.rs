//! A small world to tune laws in: stations that upload over one channel to a server behind a
//! delay, each under a [`Controller`]. Packets, not fluid: aggregation and drops decide the result.

pub(crate) mod air;
mod random;
pub(crate) mod tcp;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wakeai_control::{
    Bounds, Controller, ControllerConfig, LawConfig, StationId, StationView, divide,
};
use wakeai_units::{Instant, Rate};

use air::{Air, AirConfig, Packet};
use random::Random;
use tcp::{MSS, Receiver, Sender};

/// An experiment.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) air: AirConfig,
    pub(crate) flows_per_station: usize,
    /// Round trip without queues, both ways through the wire, by time from which it holds.
    pub(crate) rtt_ms: Vec<(f64, f64)>,
    pub(crate) seconds: f64,
    pub(crate) warmup: f64,
    /// Stations that run an agent; the others send plain CUBIC.
    pub(crate) agents: usize,
    /// Each station's flows start this much after those of the one before.
    pub(crate) stagger_ms: u64,
    /// Whether the driver tells its PHY rate.
    pub(crate) link_rate_known: bool,
    /// Whether the actuator can pace.
    pub(crate) paces: bool,
    /// Data segments lost on the wire, one in so many; zero for none.
    pub(crate) lost_one_in: u64,
}

impl Scenario {
    pub(crate) fn uplink(stations: usize, rate_mbps: f64, rtt_ms: f64) -> Self {
        Self {
            air: AirConfig {
                rates_mbps: vec![rate_mbps; stations],
                aggregates: true,
                host_queue: 1000,
                access_point_queue: 300,
            },
            flows_per_station: 1,
            rtt_ms: vec![(0.0, rtt_ms)],
            seconds: 25.0,
            warmup: 5.0,
            agents: stations,
            stagger_ms: 0,
            link_rate_known: true,
            paces: true,
            lost_one_in: 0,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) total_mbps: f64,
    pub(crate) station_mbps: Vec<f64>,
    /// RTT above the one without queues, ms.
    pub growth_p50: f64,
    pub growth_p95: f64,
    pub(crate) ack_drops: u64,
    pub(crate) host_drops: u64,
    pub(crate) timeouts: u64,
    /// The part of all time that presence was on the air, agents' start included.
    pub(crate) presence_share: f64,
}

impl Outcome {
    pub(crate) fn jain(&self) -> f64 {
        let sum: f64 = self.station_mbps.iter().sum();
        let squares: f64 = self.station_mbps.iter().map(|x| x * x).sum();
        sum * sum / (self.station_mbps.len() as f64 * squares)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    AirFree,
    AtServer(usize, u64),
    AtAccessPoint(usize, u64, Vec<u64>),
    DelayedAck(usize),
    Timeout(usize),
    Pace(usize),
    Start(usize),
    Wake(usize),
}

/// Takes the lines of a trace: every event of every station, with its window.
pub(crate) type Trace<'a> = &'a mut dyn FnMut(&str);

pub(crate) struct World {
    now: u64,
    scenario: Scenario,
    air: Air,
    senders: Vec<Sender>,
    started: Vec<bool>,
    receivers: Vec<Receiver>,
    controllers: Vec<Option<Controller>>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    rtts: Vec<u64>,
    counted: Vec<u64>,
    random: Random,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, law: Option<&LawConfig>, seed: u64) -> Self {
        let stations = scenario.air.rates_mbps.len();
        let flows = stations * scenario.flows_per_station;
        let mut random = Random::new(seed);
        let mut world = Self {
            now: 0,
            air: Air::new(&scenario.air, Random::new(random.next())),
            senders: (0..flows).map(|flow| Sender::new(flow as u64)).collect(),
            started: vec![false; flows],
            receivers: (0..flows).map(|_| Receiver::default()).collect(),
            controllers: Vec::new(),
            events: BinaryHeap::new(),
            count: 0,
            rtts: Vec::new(),
            counted: vec![0; flows],
            random: Random::new(seed + 1),
            scenario: scenario.clone(),
        };
        for station in 0..stations {
            // Agents do not tick in step: each was started at its own time before the traffic.
            let start = random.below(500_000_000);
            let controller = law.filter(|_| station < scenario.agents).map(|law| {
                let config = ControllerConfig::new(StationId(station as u64), [2; 6], [7; 32]);
                let mut boot = [0; 16];
                boot[..8].copy_from_slice(&random.next().to_be_bytes());
                Controller::new(Instant::from_nanos(start), config, boot, law.build())
            });
            world.controllers.push(controller);
            world.at(start, Event::Wake(station));
        }
        for flow in 0..flows {
            let station = world.station(flow) as u64;
            let jitter = random.below(50_000_000);
            let start = 3_000_000_000 + jitter + station * scenario.stagger_ms * 1_000_000;
            world.at(start, Event::Start(flow));
        }
        world
    }

    fn station(&self, flow: usize) -> usize {
        flow / self.scenario.flows_per_station
    }

    fn at(&mut self, time: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time, self.count, event)));
    }

    /// Traffic time: agents run three seconds before it begins.
    fn seconds(&self) -> f64 {
        self.now as f64 / 1e9 - 3.0
    }

    fn base_rtt(&self) -> u64 {
        let holds = |(from, _): &&(f64, f64)| *from <= self.seconds().max(0.0);
        let rtt = self.scenario.rtt_ms.iter().rev().find(holds).expect("one holds from 0");
        (rtt.1 * 1e6) as u64
    }

    pub(crate) fn run(mut self, trace: Trace<'_>) -> Outcome {
        let end = ((self.scenario.seconds + 3.0) * 1e9) as u64;
        let warmup = ((self.scenario.warmup + 3.0) * 1e9) as u64;
        let mut warm = false;
        while let Some(Reverse((time, _, event))) = self.events.pop() {
            if time > end {
                break;
            }
            if time >= warmup && !warm {
                warm = true;
                self.rtts.clear();
                self.counted = self.receivers.iter().map(|receiver| receiver.next).collect();
            }
            self.now = time;
            self.handle(event, trace);
            if self.air.busy_until.is_none() {
                self.air.start(self.now);
                if let Some(until) = self.air.busy_until {
                    self.at(until, Event::AirFree);
                }
            }
        }
        self.outcome()
    }

    fn handle(&mut self, event: Event, trace: Trace<'_>) {
        match event {
            Event::AirFree => {
                for packet in self.air.finish() {
                    self.crossed(packet);
                }
            }
            Event::AtServer(flow, sequence) => {
                if self.receivers[flow].on_data(self.now, sequence) {
                    self.acknowledge(flow);
                } else if let Some(until) = self.receivers[flow].delayed_until {
                    self.at(until, Event::DelayedAck(flow));
                }
            }
            Event::DelayedAck(flow) => {
                if self.receivers[flow].delayed_until.is_some_and(|until| until <= self.now) {
                    self.acknowledge(flow);
                }
            }
            Event::AtAccessPoint(flow, cumulative, received) => {
                let (to, access_point) = (self.station(flow), self.air.access_point());
                self.air.enqueue(access_point, to, Packet::Ack { flow, cumulative, received });
            }
            Event::Timeout(flow) => {
                let at = self.senders[flow].rto_at;
                if at <= self.now {
                    self.senders[flow].on_timeout(self.now);
                    self.send(flow);
                }
                let at = self.senders[flow].rto_at;
                self.at(at.max(self.now + 1_000_000), Event::Timeout(flow));
            }
            Event::Start(flow) => {
                self.started[flow] = true;
                self.send(flow);
                self.at(self.now + 1_000_000_000, Event::Timeout(flow));
            }
            Event::Pace(flow) => self.send(flow),
            Event::Wake(station) => self.wake(station, trace),
        }
    }

    fn acknowledge(&mut self, flow: usize) {
        let (cumulative, received) = self.receivers[flow].ack();
        let back = self.base_rtt() - self.base_rtt() / 2;
        self.at(self.now + back, Event::AtAccessPoint(flow, cumulative, received));
    }

    fn crossed(&mut self, packet: Packet) {
        match packet {
            Packet::Data { flow, sequence } => {
                let one_in = self.scenario.lost_one_in;
                if one_in > 0 && self.random.below(one_in) == 0 {
                    return;
                }
                self.at(self.now + self.base_rtt() / 2, Event::AtServer(flow, sequence));
            }
            Packet::Ack { flow, cumulative, received } => {
                if let Some(rtt) = self.senders[flow].on_ack(self.now, cumulative, &received) {
                    self.rtts.push(rtt.saturating_sub(self.base_rtt()));
                }
                self.send(flow);
            }
            Packet::Presence { from, bytes } => {
                let access_point = self.air.access_point();
                self.air.enqueue(access_point, usize::MAX, Packet::Broadcast { from, bytes });
            }
            Packet::Broadcast { from, bytes } => {
                let now = Instant::from_nanos(self.now);
                for (station, controller) in self.controllers.iter_mut().enumerate() {
                    if let Some(controller) = controller.as_mut().filter(|_| station != from) {
                        controller.handle_datagram(now, &bytes);
                    }
                }
            }
        }
    }

    fn send(&mut self, flow: usize) {
        let station = self.station(flow);
        loop {
            match self.senders[flow].poll_send(self.now) {
                Ok(Some(sequence)) => {
                    self.air.enqueue(station, usize::MAX, Packet::Data { flow, sequence });
                }
                Ok(None) => return,
                Err(at) => {
                    self.at(at, Event::Pace(flow));
                    return;
                }
            }
        }
    }

    fn wake(&mut self, station: usize, trace: Trace<'_>) {
        let now = Instant::from_nanos(self.now);
        let Some(mut controller) = self.controllers[station].take() else {
            return;
        };
        let mut cwnd = 0.0;
        if controller.next_tick() <= now {
            let per_station = self.scenario.flows_per_station;
            let flows = station * per_station..(station + 1) * per_station;
            let view = StationView {
                link_rate: self
                    .scenario
                    .link_rate_known
                    .then(|| Rate::from_bps((self.scenario.air.rates_mbps[station] * 1e6) as u64)),
                connections: flows
                    .clone()
                    .filter(|flow| self.started[*flow])
                    .map(|flow| self.senders[flow].view())
                    .collect(),
            };
            let bounds = controller.handle_tick(now, &view);
            for sender in &mut self.senders[flows.clone()] {
                sender.bounds = Bounds::NONE;
            }
            for (id, mut part) in divide(bounds, &view.connections) {
                part.pacing = part.pacing.filter(|_| self.scenario.paces);
                self.senders[id as usize].bounds = part;
            }
            cwnd = self.senders[flows.start].cwnd();
            for flow in flows {
                if self.started[flow] {
                    self.send(flow);
                }
            }
        }
        while let Some(bytes) = controller.poll_transmit(now) {
            self.air.enqueue(station, usize::MAX, Packet::Presence { from: station, bytes });
        }
        while let Some(event) = controller.poll_event() {
            trace(&format!("{:6.2} station {station} cwnd {cwnd:5.0}: {event}", self.seconds()));
        }
        let next = controller.next_timeout().expect("a controller always ticks").as_nanos();
        self.controllers[station] = Some(controller);
        self.at(next.max(self.now + 1), Event::Wake(station));
    }

    fn outcome(mut self) -> Outcome {
        let measured = self.scenario.seconds - self.scenario.warmup;
        let mut station_mbps = vec![0.0; self.controllers.len()];
        for (flow, receiver) in self.receivers.iter().enumerate() {
            let segments = receiver.next - self.counted[flow];
            station_mbps[self.station(flow)] += (segments * MSS * 8) as f64 / measured / 1e6;
        }
        self.rtts.sort_unstable();
        let percentile = |p: usize| match self.rtts.len() {
            0 => 0.0,
            count => self.rtts[(count - 1) * p / 100] as f64 / 1e6,
        };
        Outcome {
            total_mbps: station_mbps.iter().sum(),
            station_mbps,
            growth_p50: percentile(50),
            growth_p95: percentile(95),
            ack_drops: self.air.drops(self.air.access_point()),
            host_drops: (0..self.controllers.len()).map(|at| self.air.drops(at)).sum(),
            presence_share: self.air.presence as f64 / self.now as f64,
            timeouts: self.senders.iter().map(|sender| sender.timeouts).sum(),
        }
    }
}
