//! Makes the single stations and flows of an experiment from its groups and entries. They are the
//! same in the simulator and the lab.

use std::sync::Arc;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use wakeai_units::{Bytes, Duration, Rate};

use crate::experiment::{Chunks, Endpoint, Experiment, FlowKind, FlowKnobs, FlowSpec};

/// One station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// The station's name: `tablet3`, or `tablet` in a group of one.
    pub name: String,
    /// The index of the station's group in [`Experiment::stations`].
    pub group: usize,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// The host behind the wired leg.
    Server,
    /// The station with this index in [`Expanded::stations`].
    Station(usize),
}

/// The direction of a flow, as seen from its station.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::Display,
)]
#[strum(serialize_all = "lowercase")]
pub enum Direction {
    /// To the server.
    Up,
    /// From the server.
    Down,
    /// To another station. The flow then belongs to the sending station.
    Peer,
}

/// One station and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StationDirection {
    /// The station's index in [`Expanded::stations`](crate::Expanded::stations).
    pub station: usize,
    /// The direction.
    pub direction: Direction,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The index of the flow's entry in [`Experiment::flows`].
    pub entry: usize,
    /// The sender.
    pub from: Node,
    /// The receiver.
    pub to: Node,
    /// TCP, UDP or QUIC.
    pub kind: FlowKind,
    /// The congestion control that the file names; `None` for UDP.
    pub algorithm: Option<Arc<str>>,
    /// The amount of data; with `None` the flow sends until the end of the run.
    pub size: Option<Bytes>,
    /// The time of the start, including the jitter.
    pub start: Duration,
    /// The parameters of the congestion control.
    pub knobs: FlowKnobs,
    /// The connections over which the size is split, one after another.
    pub chunks: Chunks,
    /// Whether the transfer waits for its turn among those of other stations (docs/concepts/turns.md).
    pub turns: bool,
    /// The rate of a UDP flow, or the target rate of a TCP sender. A UDP flow without a rate sends
    /// as much as its queue takes.
    pub rate: Option<Rate>,
    /// The rate at which the application at a TCP sender produces data, from the flow's start on,
    /// over all `chunks`. With `None` it produces as much as TCP takes.
    pub limit: Option<Rate>,
    /// Whether the peers are asked to leave `rate` free.
    pub reserve: bool,
}

impl Flow {
    /// The direction of the flow.
    pub fn direction(&self) -> Direction {
        match (self.from, self.to) {
            (Node::Server, _) => Direction::Down,
            (Node::Station(_), Node::Server) => Direction::Up,
            (Node::Station(_), Node::Station(_)) => Direction::Peer,
        }
    }

    /// The station to which the flow belongs. If both ends are stations, it is the sender.
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
    /// The stations, in the order of the groups in the file and then by number.
    pub stations: Vec<Station>,
    /// The flows, in the order of the entries in the file, then by sender, then by receiver.
    pub flows: Vec<Flow>,
}

/// The seed of the repeat with number `repeat` (from 0), in a command with the seed `seed`.
pub fn repeat_seed(seed: u64, repeat: u32) -> u64 {
    seed.wrapping_add(u64::from(repeat))
}

impl Experiment {
    /// The single stations.
    pub fn expand_stations(&self) -> Vec<Station> {
        let groups = self.stations.iter().enumerate();
        groups
            .flat_map(|(index, group)| {
                (1..=group.count)
                    .map(move |number| Station { name: group.station_name(number), group: index })
            })
            .collect()
    }

    /// The single stations and flows. The start times are drawn from `seed`.
    ///
    /// The starts come from the generator [`Pcg64Mcg`], seeded by `seed_from_u64`. Each flow takes
    /// one draw of 64 bits, in the order of [`Expanded::flows`]. A flow without jitter takes one,
    /// too, so that the jitter of one flow does not change the start of another.
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
        turns: spec.turns,
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
