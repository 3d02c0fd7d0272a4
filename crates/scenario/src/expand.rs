//! The single stations and flows of an experiment, which are the same in the simulator and the lab.

use std::sync::Arc;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use wakeai_units::{Bytes, Duration, Rate};

use crate::experiment::{Endpoint, Experiment, FlowKind, FlowKnobs, FlowSpec};

/// One station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its name: `tablet3`, or `tablet` in a group of one.
    pub name: String,
    /// Index of its group in [`Experiment::stations`].
    pub group: usize,
    /// Its number in the group, from 1.
    pub number: u32,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// The host behind the wired leg.
    Server,
    /// Index into [`Expanded::stations`].
    Station(usize),
}

/// The direction of a flow, as seen from its station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// To the server.
    Up,
    /// From the server.
    Down,
    /// To another station; the flow belongs to its sender.
    Peer,
}

impl Direction {
    /// The name in a result.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Peer => "peer",
        }
    }
}

/// One station and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StationDirection {
    /// Index into [`Expanded::stations`](crate::Expanded::stations).
    pub station: usize,
    /// The direction.
    pub direction: Direction,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Index of its entry in [`Experiment::flows`].
    pub entry: usize,
    /// The sender.
    pub from: Node,
    /// The receiver.
    pub to: Node,
    /// TCP or UDP.
    pub kind: FlowKind,
    /// The congestion control that the file names; `None` for UDP.
    pub algorithm: Option<Arc<str>>,
    /// The amount of data; `None`: the flow sends until the end of the run.
    pub size: Option<Bytes>,
    /// The time of its start, jitter included.
    pub start: Duration,
    /// The parameters of its congestion control.
    pub knobs: FlowKnobs,
    /// The number of connections over which the size is split, one after another.
    pub chunks: u32,
    /// The rate of a UDP flow (`None`: as much as its queue takes), or the target rate of a TCP
    /// sender.
    pub rate: Option<Rate>,
    /// The most that the application at a TCP sender produces, from the flow's start on, over all
    /// `chunks`; `None`: as much as TCP takes.
    pub limit: Option<Rate>,
    /// Whether the peers are asked to leave `rate` free.
    pub reserve: bool,
}

impl Flow {
    /// Its direction.
    pub fn direction(&self) -> Direction {
        match (self.from, self.to) {
            (Node::Server, _) => Direction::Down,
            (Node::Station(_), Node::Server) => Direction::Up,
            (Node::Station(_), Node::Station(_)) => Direction::Peer,
        }
    }

    /// The station to which the flow belongs: the one with the wireless hop, or the sender if both
    /// ends have one.
    pub fn station(&self) -> usize {
        match (self.from, self.to) {
            (Node::Station(station), _) | (Node::Server, Node::Station(station)) => station,
            (Node::Server, Node::Server) => unreachable!("refused when the scenario was read"),
        }
    }
}

/// Single stations and flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// The stations in the order of the groups in the file, then by number.
    pub stations: Vec<Station>,
    /// The flows in the order of the entries in the file, then by sender, then by receiver.
    pub flows: Vec<Flow>,
}

/// The seed of repeat `repeat` (from 0) of a command with `seed`.
pub fn repeat_seed(seed: u64, repeat: u32) -> u64 {
    seed.wrapping_add(u64::from(repeat))
}

impl Experiment {
    /// The single stations.
    pub fn expand_stations(&self) -> Vec<Station> {
        let groups = self.stations.iter().enumerate();
        groups
            .flat_map(|(index, group)| {
                (1..=group.count).map(move |number| Station {
                    name: group.station_name(number),
                    group: index,
                    number,
                })
            })
            .collect()
    }

    /// The single stations and flows. The start times are drawn from `seed`.
    ///
    /// The starts come from the generator [`Pcg64Mcg`], seeded by `seed_from_u64`. Each flow takes one draw of
    /// 64 bits in the order of [`Expanded::flows`], even without jitter, so that the jitter of one flow does
    /// not change the start of another.
    pub fn expand(&self, seed: u64) -> Expanded {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut flows = Vec::new();
        for (entry, spec) in self.flows.iter().enumerate() {
            for from in self.nodes(spec.from) {
                for to in self.nodes(spec.to) {
                    flows.push(flow(entry, spec, from, to, rng.next_u64()));
                }
            }
        }
        Expanded { stations: self.expand_stations(), flows }
    }

    fn nodes(&self, endpoint: Endpoint) -> Vec<Node> {
        match endpoint {
            Endpoint::Server => vec![Node::Server],
            Endpoint::Stations(selector) => self.select(selector).map(Node::Station).collect(),
        }
    }
}

fn flow(entry: usize, spec: &FlowSpec, from: Node, to: Node, draw: u64) -> Flow {
    Flow {
        entry,
        from,
        to,
        kind: spec.kind,
        algorithm: spec.algorithm.clone(),
        size: spec.size,
        start: spec.start + uniform(spec.jitter, draw),
        knobs: spec.knobs,
        chunks: spec.chunks,
        rate: spec.rate,
        limit: spec.limit,
        reserve: spec.reserve,
    }
}

/// Maps 64 random bits onto zero to `spread`, both included.
fn uniform(spread: Duration, draw: u64) -> Duration {
    let product = u128::from(draw) * (u128::from(spread.as_nanos()) + 1);
    Duration::from_nanos((product >> 64) as u64) // below spread + 1
}
