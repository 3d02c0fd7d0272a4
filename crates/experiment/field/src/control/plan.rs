//! What each machine has to do in a run.

use std::fmt::Write as _;
use std::io::Read as _;
use std::net::SocketAddr;

use wakeai_api::config::Config;
use wakeai_connection::Bounded;
use wakeai_scenario::{Chunks, Expanded, Experiment, Flow, FlowKind, Node, ResolvedCondition};
use wakeai_units::{Bytes, Duration, Rate};
use wakeai_world::StationFacts;
use wakeai_world::agent::station_number;
use wakeai_world::flows::{saturating_rate, sender_algorithm};

use super::helper::Helper;
use crate::protocol::{AgentPlan, FlowRole, RunPlan, Token};

/// The number of random bytes of an agents' key.
const KEY_BYTES: usize = 32;

/// A run that the machines are to make.
pub(super) struct Asked {
    /// The name, which is unique in the session.
    pub(super) run: String,
    pub(super) duration: Duration,
    pub(super) flows: Vec<PlannedFlow>,
    /// For each station: the configuration of its agent.
    pub(super) agents: Vec<Option<Config>>,
}

/// A flow between two machines: 0 is the server, and the stations follow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedFlow {
    pub(super) sender: usize,
    pub(super) receiver: usize,
    pub(super) udp: Option<Rate>,
    pub(super) size: Option<Bytes>,
    pub(super) chunks: u32,
    pub(super) start: Duration,
    pub(super) limit: Option<Rate>,
    /// The congestion control that the sender runs.
    pub(super) algorithm: Option<String>,
    /// The one that its socket has to set.
    pub(super) requested: Option<String>,
}

impl PlannedFlow {
    /// The machine that opens the connections: a station, so that address translation and firewalls let them through.
    /// Between stations it is the sender.
    pub(super) fn opener(&self) -> usize {
        if self.sender == 0 { self.receiver } else { self.sender }
    }
}

fn index(node: Node) -> usize {
    match node {
        Node::Server => 0,
        Node::Station(station) => station + 1,
    }
}

/// The run of a condition. `number` tells it from the others.
pub(super) fn of_condition(
    run: String,
    condition: &ResolvedCondition,
    seed: u64,
    facts: &[StationFacts],
    helpers: &[Helper<'_>],
) -> Asked {
    let experiment = &*condition.experiment;
    let expanded = experiment.expand(seed);
    let laws = condition.laws();
    let flows = expanded.flows.iter().map(|flow| {
        let sender = index(flow.from);
        let bounded = sender.checked_sub(1).is_some_and(|station| laws[station].is_some());
        planned(experiment, &expanded, flow, bounded, &helpers[sender])
    });
    let flows = flows.collect();
    let runs = condition.agents();
    let agents = expanded.stations.iter().enumerate().map(|(station, _)| {
        runs[station].then(|| agent(condition, station, &facts[station], &helpers[station + 1]))
    });
    Asked { run, duration: experiment.duration, flows, agents: agents.collect() }
}

/// The run of one endless flow alone, without an agent.
pub(super) fn alone(
    run: String,
    experiment: &Experiment,
    flow: &Flow,
    duration: Duration,
    helpers: &[Helper<'_>],
) -> Asked {
    let endless = Flow {
        size: None,
        start: Duration::ZERO,
        chunks: Chunks::Count(1),
        rate: flow.rate.filter(|_| flow.kind == FlowKind::Udp),
        limit: None,
        ..flow.clone()
    };
    let expanded = experiment.expand(0);
    let sender = index(flow.from);
    let flow = planned(experiment, &expanded, &endless, false, &helpers[sender]);
    Asked { run, duration, flows: vec![flow], agents: vec![None; expanded.stations.len()] }
}

fn planned(
    experiment: &Experiment,
    expanded: &Expanded,
    flow: &Flow,
    bounded: bool,
    sender: &Helper<'_>,
) -> PlannedFlow {
    let asked = flow.algorithm.as_deref();
    let runs = asked.map(|asked| sender_algorithm(flow, bounded).unwrap_or(asked).to_owned());
    // Where cubic is the machine's default, its connections set nothing, and an agent puts its own into the place of the
    // default: as applications have it.
    let by_default = asked == Some("cubic")
        && sender.facts.as_ref().is_some_and(|facts| facts.default_algorithm == "cubic");
    let udp = (flow.kind == FlowKind::Udp)
        .then(|| flow.rate.unwrap_or_else(|| saturating_rate(experiment, expanded, flow)));
    PlannedFlow {
        sender: index(flow.from),
        receiver: index(flow.to),
        udp,
        size: flow.size,
        chunks: match flow.chunks {
            Chunks::Count(count) => count,
            Chunks::Auto => 1, // refused before
        },
        start: flow.start,
        limit: flow.limit,
        requested: runs.clone().filter(|_| !by_default && udp.is_none()),
        algorithm: runs.filter(|_| udp.is_none()),
    }
}

/// The configuration of a station's agent. The helper sets the file of the key.
fn agent(
    condition: &ResolvedCondition,
    station: usize,
    facts: &StationFacts,
    helper: &Helper<'_>,
) -> Config {
    let access_point = &condition.experiment.access_point;
    let (machine, found) = (helper.machine, helper.facts.as_ref());
    let interface = found.and_then(|facts| facts.way.interface.clone());
    let interface = interface.or_else(|| machine.interface.clone()).unwrap_or_default();
    let mut config = Config::new(interface, "/dev/null");
    config.station = Some(station_number(station));
    config.bssid = machine.bssid;
    let has_air = found.is_some_and(|facts| facts.air.is_some());
    config.link_rate = machine.link_rate.or(facts.link_rate.filter(|_| !has_air));
    config.max = facts.max;
    config.max_down = facts.max_down;
    config.presence.broadcast = machine.broadcast;
    config.access_point.buffer = access_point.buffer.full_packets();
    if let Some(wifi) = access_point.wifi() {
        config.access_point.basic_rate = wifi.basic_rate;
    }
    config.law = condition.laws().swap_remove(station);
    config
}

impl Asked {
    /// The plan of each machine. `token` and `key` are the secrets of the run.
    pub(super) fn plans(
        &self,
        helpers: &[Helper<'_>],
        port: u16,
        token: &Token,
        key: &str,
    ) -> Result<Vec<RunPlan>, String> {
        let mut plans = Vec::new();
        for (index, helper) in helpers.iter().enumerate() {
            let mut roles = Vec::new();
            for (number, flow) in (0..).zip(&self.flows) {
                if index == flow.sender || index == flow.receiver {
                    roles.push(role(number, flow, index, helpers, port)?);
                }
            }
            let config = index.checked_sub(1).and_then(|station| self.agents[station].as_ref());
            let agent = config.map(Config::to_toml).transpose();
            let agent = agent.map_err(|error| error.to_string())?;
            let is_ours = |role: &FlowRole| {
                let named = role.algorithm.as_deref().filter(|_| role.sends);
                named.is_some_and(|name| Bounded::named(name).is_some())
            };
            plans.push(RunPlan {
                run: self.run.clone(),
                token: token.clone(),
                duration_ns: self.duration.as_nanos(),
                way: helper.facts.as_ref().map(|facts| facts.way.clone()).unwrap_or_default(),
                port,
                registers: roles.iter().any(is_ours),
                flows: roles,
                agent: agent.map(|config| AgentPlan { config, key: key.to_owned() }),
            });
        }
        Ok(plans)
    }
}

/// What the machine `own` has to do in a flow.
fn role(
    number: u32,
    flow: &PlannedFlow,
    own: usize,
    helpers: &[Helper<'_>],
    port: u16,
) -> Result<FlowRole, String> {
    let other = if own == flow.sender { flow.receiver } else { flow.sender };
    let to = if own == flow.opener() {
        let other = &helpers[other];
        let known = other.facts.as_ref().and_then(|facts| facts.way.address);
        let address = other.machine.address.or(known);
        let address = address.ok_or_else(|| {
            format!("the address of {} is not known: name it in the machines file", other.name())
        })?;
        Some(SocketAddr::new(address, port))
    } else {
        None
    };
    Ok(FlowRole {
        flow: number,
        udp_bps: flow.udp.map(Rate::bits_per_second),
        sends: own == flow.sender,
        to,
        size: flow.size.map(Bytes::get),
        chunks: flow.chunks,
        start_ns: flow.start.as_nanos(),
        algorithm: flow.requested.clone().filter(|_| own == flow.sender),
        limit_bps: flow.limit.map(Rate::bits_per_second),
    })
}

/// Random bytes of the kernel in hexadecimal: a name of a session, a token, or a key.
pub(crate) fn random(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut random))
        .expect("the kernel has random numbers");
    random.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String never fails
        text
    })
}

/// A new key for the agents of a run.
pub(super) fn key() -> String {
    random(KEY_BYTES)
}
