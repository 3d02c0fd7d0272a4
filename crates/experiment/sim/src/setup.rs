//! Builds a run from a condition: medium, stations, agents, flows and their TCP.

use std::rc::Rc;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use wakeai_connection::{Bounded, Bounds};
use wakeai_control::{CommonLaw, Controller, LawConfig, TICK};
use wakeai_medium::{Medium, Node, StationId};
use wakeai_scenario::{
    self as scenario, Chunks, Expanded, Experiment, Flow, FlowKind, FlowKnobs, HostQueue,
    ResolvedCondition, StationGroup, TcpProfile,
};
use wakeai_tcp::{Knobs, Profile, TcpConfig, algorithm_names, default_knobs};
use wakeai_units::{Bytes, Duration, Instant, Rate, Serializer};
use wakeai_world::agent::{acquaintance, controller_config};
use wakeai_world::flows::{Division, Writing, saturating_rate, sender_algorithm};
use wakeai_world::{
    Changes, ReceiverMeter, RunError, RunSink, SenderMeter, Span, StationFacts, StationQueue,
    generator, medium_config,
};

use crate::announcing::Announcing;
use crate::broadcasts::Broadcasts;
use crate::carrier::{Carrier, Observer};
use crate::connection::Senders;
use crate::flow::{Datagrams, FlowState, Source, Stream, Totals};
use crate::policer::Policer;
use crate::quic::QuicConnection;
use crate::sampler::{QUEUE_STEP, Sampler};
use crate::simulation::{Agent, Simulation, Station};
use crate::timers::{TimerOwner, Timers};

/// Keeps the agents' random numbers apart from those of the medium and of the flows' starts.
const AGENT_STREAM: u64 = 0x61_6765_6e74;

/// The SYN retransmissions of a flow that resumes: after them `wakeai put` opens another connection.
const SYN_RETRIES_OF_PUT: u32 = 3;

/// A run that is to be simulated.
#[derive(Debug)]
pub struct Job<'a> {
    /// The condition, with its scenario.
    pub condition: &'a ResolvedCondition,
    /// The seed of this repeat.
    pub seed: u64,
    /// The figures for the stations' agents, by station. Missing entries count as empty.
    pub facts: &'a [StationFacts],
    /// The records of the run.
    pub sink: Option<RunSink>,
    /// The length of a step of [`crate::FlowDetail::progress`]. With zero, no progress is kept.
    pub progress: Duration,
}

/// Builds the run at its start, and its stations and flows.
pub(crate) fn set_up<O: Observer>(
    job: &Job<'_>,
    observer: O,
) -> Result<(Simulation<O>, Expanded), RunError> {
    let experiment = &*job.condition.experiment;
    let expanded = experiment.expand(job.seed);
    let (runs, laws) = (job.condition.agents(), job.condition.laws());
    let agents = runs.iter().filter(|runs| **runs).count();
    let span = Span::new(Instant::ZERO + acquaintance(agents), experiment);
    let config = medium_config(experiment, StationQueue::of);
    let medium = Medium::new(&config, generator(job.seed))?;
    let meter = SenderMeter::new(span, &expanded, job.sink.clone());
    let senders = Senders::new(span, meter, expanded.flows.len());
    let mut simulation = Simulation {
        carrier: Carrier { medium, observer, span },
        timers: Timers::default(),
        flows: Vec::new(),
        stations: Vec::new(),
        connections: Vec::new(),
        changes: Changes::new(experiment, span.origin),
        senders,
        sampler: None,
        unfinished: expanded.flows.len(),
        broadcasts: Broadcasts::default(),
    };
    for flow in &expanded.flows {
        simulation.add_flow(job, &expanded, flow, &laws)?;
    }
    simulation.add_stations(job, &expanded, &runs, &laws);
    if let Some(sink) = &job.sink {
        let timer = simulation.timers.add(TimerOwner::Sampler);
        simulation.timers.set(timer, Some(span.origin + QUEUE_STEP));
        let sampler = Sampler::new(span, sink.clone(), expanded.stations.len());
        simulation.sampler = Some((sampler, timer));
    }
    Ok((simulation, expanded))
}

fn node(node: scenario::Node) -> Node {
    match node {
        scenario::Node::Server => Node::Server,
        scenario::Node::Station(station) => Node::Station(StationId(station as u32)),
    }
}

impl<O: Observer> Simulation<O> {
    fn add_flow(
        &mut self,
        job: &Job<'_>,
        expanded: &Expanded,
        flow: &Flow,
        laws: &[Option<LawConfig>],
    ) -> Result<(), RunError> {
        let experiment = &*job.condition.experiment;
        let span = self.carrier.span;
        let start = span.origin + flow.start;
        let source = match flow.kind {
            FlowKind::Tcp => {
                let group = &experiment.stations[expanded.stations[flow.station()].group];
                let bounded =
                    matches!(flow.from, scenario::Node::Station(from) if laws[from].is_some());
                Source::Tcp(stream(flow, group, bounded)?)
            }
            FlowKind::Udp => Source::Udp(datagrams(experiment, expanded, flow)),
            FlowKind::Quic => Source::Quic(Box::new(QuicConnection::new(flow, start))),
        };
        let meter = ReceiverMeter::new(span, flow, job.progress);
        let timer = self.timers.add(TimerOwner::Flow(self.flows.len() as u32));
        self.timers.set(timer, Some(start));
        self.flows.push(FlowState {
            from: node(flow.from),
            to: node(flow.to),
            start,
            timer,
            source,
            reserves: flow.rate.filter(|_| flow.reserve),
            meter: meter.recording(job.sink.clone(), self.flows.len() as u32),
            totals: Totals::default(),
            policer: None,
            resumes: resumes(flow),
            turns: flow.turns,
            waits: false,
            broken: false,
        });
        Ok(())
    }

    fn add_stations(
        &mut self,
        job: &Job<'_>,
        expanded: &Expanded,
        runs: &[bool],
        laws: &[Option<LawConfig>],
    ) {
        let experiment = &*job.condition.experiment;
        let mut rng = Pcg64Mcg::seed_from_u64(job.seed ^ AGENT_STREAM);
        let mut group_key = [0; 32];
        rng.fill_bytes(&mut group_key);
        for (index, (runs, law)) in runs.iter().zip(laws).enumerate() {
            let timer = self.timers.add(TimerOwner::Agent(index as u32));
            let agent = runs.then(|| {
                let facts = job.facts.get(index).copied().unwrap_or_default();
                let mut config = controller_config(job.condition, index, facts, group_key);
                config.common_law = Some(CommonLaw::new(law.as_ref(), &config));
                let mut boot_id = [0; 16];
                rng.fill_bytes(&mut boot_id);
                // The agents start at random times within one tick, as daemons do.
                let spread = u128::from(TICK.as_nanos());
                let start = (u128::from(rng.next_u64()) * spread) >> 64;
                let start = Instant::from_nanos(start as u64); // below the spread
                let law_or_none = law.as_ref().unwrap_or(&LawConfig::UNBOUND);
                let mut controller = Controller::new(start, &config, boot_id, law_or_none);
                // The clocks of all stations agree.
                controller.set_unix_at_epoch(Duration::ZERO);
                self.timers.set(timer, Some(start));
                let group = &experiment.stations[expanded.stations[index].group];
                let announcing = Announcing::new(group.announces, &group_key);
                let (binds, link_rate) = (law.is_some(), facts.link_rate);
                let default = Bounds::NONE;
                let (limits, limits_at) = (Vec::new(), None);
                Box::new(Agent {
                    controller,
                    binds,
                    link_rate,
                    announcing,
                    default,
                    limits,
                    limits_at,
                })
            });
            let start = agent.as_ref().map(|agent| agent.controller.next_tick());
            self.broadcasts.add_station(start);
            let mut host = Station { agent, ..Station::default() };
            host.reserving.flows = reserving(expanded, index);
            self.stations.push(host);
            if has_small_queue(&experiment.stations[expanded.stations[index].group]) {
                self.carrier.medium.watch_departures(StationId(index as u32));
            }
        }
        self.police(expanded, &experiment.stations);
    }

    /// Gives each flow of datagrams that a station with an agent sends a policer. The agents' timers come
    /// before those of policers.
    fn police(&mut self, expanded: &Expanded, groups: &[StationGroup]) {
        for (index, flow) in (0..).zip(&mut self.flows) {
            let (Node::Station(station), Source::Udp(_) | Source::Quic(_)) =
                (flow.from, &flow.source)
            else {
                continue;
            };
            let host = &mut self.stations[station.index()];
            if host.agent.as_ref().is_some_and(|agent| agent.binds) {
                host.datagrams.push(index);
                let timer = self.timers.add(TimerOwner::Policer(index));
                let group = &groups[expanded.stations[station.index()].group];
                let clock = group.departure_times.then(|| host_clock(station));
                flow.policer = Some(Box::new(Policer::new(timer, clock)));
            }
        }
    }
}

/// What a station's own clock is ahead of the simulation's. The clocks of hosts count from their boots, and so no two agree.
fn host_clock(station: StationId) -> Duration {
    // Multiples of the golden ratio are spread evenly over a second.
    let turn = Duration::from_nanos(618_033_989);
    Duration::from_nanos((turn * u64::from(station.0 + 1)).as_nanos() % 1_000_000_000)
}

/// The flows of a station that reserve their rates.
fn reserving(expanded: &Expanded, station: usize) -> Vec<u32> {
    let from = scenario::Node::Station(station);
    let flows = expanded.flows.iter().enumerate();
    let reserving = flows.filter(|(_, flow)| flow.reserve && flow.from == from);
    reserving.map(|(index, _)| index as u32).collect()
}

/// Whether the station has TCP small queues. A station with the classic TCP has none.
fn has_small_queue(group: &StationGroup) -> bool {
    group.host_queue != HostQueue::Fifo && group.tcp == TcpProfile::Linux
}

fn stream(flow: &Flow, group: &StationGroup, bounded: bool) -> Result<Stream, RunError> {
    let algorithm = sender_algorithm(flow, bounded).unwrap_or("cubic");
    let names = algorithm_names();
    if !names.contains(&algorithm) {
        return Err(RunError::Unsupported {
            world: "the simulator",
            asked: format!("algorithm = \"{algorithm}\""),
            remedy: format!("the simulator has {}", names.join(", ")),
        });
    }
    let linux = group.tcp != TcpProfile::Classic;
    let from_station = flow.from != scenario::Node::Server;
    let mut config = TcpConfig::new(match group.tcp {
        TcpProfile::Linux => Profile::Linux,
        TcpProfile::Linux34 => Profile::Linux34,
        TcpProfile::Classic => Profile::Classic,
    });
    if let Some(bytes) = group.send_buffer {
        config.send_buffer_limit = u64::from(bytes);
    }
    config.small_queues = from_station && has_small_queue(group);
    // As in the lab, a station's device takes one segment at a time.
    config.segmentation &= !from_station;
    let segment = Bytes::new(u64::from(config.mss));
    if resumes(flow) {
        config.syn_retries = SYN_RETRIES_OF_PUT;
    }
    // The retransmission timer is that of ns-3, because this algorithm is compared with ns-3.
    config.forgets_backoff = algorithm == "ns3_cubic";
    Ok(Stream {
        config: Rc::new(config),
        algorithm: algorithm.to_owned(),
        boundable: Bounded::named(algorithm).is_some(),
        hears_overflow: linux && from_station,
        knobs: Knobs {
            early_hystart: group.tcp == TcpProfile::Linux34,
            ..knobs(algorithm, flow.knobs)
        },
        target: flow.rate.map_or(0, Rate::bytes_per_second),
        division: Division::new(flow),
        current: 0,
        opened: Instant::ZERO,
        writing: flow.limit.map(|limit| Writing::new(limit, segment)),
    })
}

/// Whether the flow's application opens a new connection where one fails, as `wakeai put` does. Other applications
/// give up.
fn resumes(flow: &Flow) -> bool {
    flow.turns || flow.chunks == Chunks::Auto
}

/// The algorithm's default parameters, except those that the flow sets.
fn knobs(algorithm: &str, turned: FlowKnobs) -> Knobs {
    let mut knobs = default_knobs(algorithm);
    if let Some(taken) = turned.beta_ppm {
        let left = 1_000_000 - u64::from(taken); // beta is at most 1
        knobs.beta_per_1024 = (left * 1024 / 1_000_000) as u32;
    }
    if let Some(friendly) = turned.tcp_friendliness {
        knobs.tcp_friendliness = friendly;
    }
    if let (Some(rtt_ref), "wakeai_rtt") = (turned.rtt_ref, algorithm) {
        knobs.rtt_ref_ms = rtt_ref.as_millis() as u32; // at most a minute
    }
    knobs
}

fn datagrams(experiment: &Experiment, expanded: &Expanded, flow: &Flow) -> Datagrams {
    let saturating = flow.rate.is_none() && flow.from != scenario::Node::Server;
    let rate = flow.rate.unwrap_or_else(|| saturating_rate(experiment, expanded, flow));
    Datagrams {
        line: (!saturating).then(|| Serializer::new(rate)),
        left: flow.size.map(Bytes::get),
    }
}
