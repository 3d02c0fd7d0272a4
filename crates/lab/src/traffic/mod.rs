//! Traffic: which connections carry which flow. iperf3 carries endless and UDP flows, connections of our
//! own those with a size.

pub(crate) mod iperf;
pub(crate) mod transfer;

use std::net::Ipv4Addr;

use wakeai_scenario::{Expanded, Experiment, Flow, FlowKind, Node};
use wakeai_units::{Bytes, Duration, Rate};
use wakeai_world::flows::{chunk, saturating_rate, sender_algorithm};
use wakeai_world::{RunError, SERVER_ADDRESS, station_address};

/// The listening port of the first flow, iperf3's own; each flow has another one.
const FIRST_PORT: u16 = 5201;
/// The data connection's port at the receiver, so that it is told from iperf3's control
/// connection.
const FIRST_DATA_PORT: u16 = 20_001;
/// iperf3 clients that are all connected before the first of them fills the air.
const MAX_IPERF: usize = 16;
/// The algorithm that holds a target rate.
pub(crate) const HOLDS_A_RATE: &str = "wakeai_av";
/// More than any run carries.
pub(crate) const ENDLESS: Bytes = Bytes::new(u64::MAX);
/// Ports between the two.
const MAX_FLOWS: usize = 10_000;

/// How a flow is carried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// iperf3's endless TCP connection.
    Tcp,
    /// iperf3's datagrams at a rate.
    Udp(Rate),
    /// TCP connections of our own, one after another, that carry so many bytes each: all flows
    /// with a size, those that start when the air may be loaded already, and all where there are
    /// many, because iperf3 opens the data connection three round trips after its start, whatever
    /// these take by then; and all where one has a target, a limit or a proxy, because iperf3 has the
    /// receiver open the connection, shows nobody its socket, and writes when it likes.
    Own(Vec<Bytes>),
}

/// One flow, ready to be started.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowPlan {
    /// In the order of the scenario.
    pub(crate) index: usize,
    /// The group of the station that it counts for.
    pub(crate) group: usize,
    /// The sending host: 0 is the server, stations follow.
    pub(crate) sender: usize,
    /// The receiving host.
    pub(crate) receiver: usize,
    /// The sender's address.
    pub(crate) from: Ipv4Addr,
    /// The receiver's address.
    pub(crate) to: Ipv4Addr,
    /// Where iperf3 listens (at the sender), or a sized flow's receiver.
    pub(crate) port: u16,
    /// iperf3's data port at the receiver.
    pub(crate) data_port: u16,
    /// When it starts, from the start of the run.
    pub(crate) start: Duration,
    /// Its round trip over the wire, without the air's part.
    pub(crate) round_trip: Duration,
    /// How it is carried.
    pub(crate) kind: Kind,
    /// The congestion control that its sender runs; `None` for UDP.
    pub(crate) algorithm: Option<String>,
    /// What the sending application has to ask for to get it; `None`: it is the default.
    pub(crate) requested: Option<String>,
    /// What its connections aim at, where that algorithm holds a target rate.
    pub(crate) target: Option<Rate>,
    /// What its application offers at most.
    pub(crate) limit: Option<Rate>,
    /// Whether a proxy on the station carries it over the air.
    pub(crate) proxied: bool,
}

/// What a sender gets without asking, by host (0 is the server).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderFacts {
    /// Whether `cubic` is its namespace's default.
    pub(crate) cubic_by_default: bool,
    /// Whether an agent bounds its connections: it makes its own algorithm the default, where
    /// that was cubic.
    pub(crate) bounded: bool,
    /// The address of the sender behind it, where it is one with a proxy.
    pub(crate) behind: Option<Ipv4Addr>,
}

/// The flows of a run.
pub(crate) fn plan(
    experiment: &Experiment,
    expanded: &Expanded,
    senders: &[SenderFacts],
) -> Result<Vec<FlowPlan>, RunError> {
    if expanded.flows.len() > MAX_FLOWS {
        return Err(RunError::Unsupported {
            world: "the lab",
            asked: format!("{} flows", expanded.flows.len()),
            remedy: format!("the lab has ports for {MAX_FLOWS}"),
        });
    }
    let by_iperf = expanded.flows.len() <= MAX_IPERF
        && expanded.flows.iter().all(|flow| is_iperfs(flow, senders[host_index(flow.from)]));
    let flows = expanded.flows.iter().enumerate();
    flows
        .map(|(index, flow)| plan_flow(experiment, expanded, senders, by_iperf, index, flow))
        .collect()
}

fn plan_flow(
    experiment: &Experiment,
    expanded: &Expanded,
    senders: &[SenderFacts],
    by_iperf: bool,
    index: usize,
    flow: &Flow,
) -> Result<FlowPlan, RunError> {
    let sender = senders[host_index(flow.from)];
    let (algorithm, asked) = algorithm(flow, sender);
    let target = target(flow);
    let proxied = sender.behind.is_some();
    let kind = match (flow.kind, flow.size) {
        (FlowKind::Tcp, None) if by_iperf && flow.start.is_zero() => Kind::Tcp,
        (FlowKind::Tcp, None) => Kind::Own(vec![ENDLESS]),
        (FlowKind::Tcp, Some(size)) => {
            let chunks = (0..flow.chunks.max(1)).map(|number| chunk(size, flow.chunks, number));
            Kind::Own(chunks.collect())
        }
        (FlowKind::Udp, None) => {
            Kind::Udp(flow.rate.unwrap_or_else(|| saturating_rate(experiment, expanded, flow)))
        }
        (FlowKind::Udp, Some(_)) => {
            return Err(RunError::Unsupported {
                world: "the lab",
                asked: format!("flows.{}: a UDP flow with a size", flow.entry + 1),
                remedy: "give it a rate and no size: what the air loses is never sent again, so \
                         it would not end"
                    .to_owned(),
            });
        }
    };
    let offset = u16::try_from(index).expect("MAX_FLOWS was checked");
    Ok(FlowPlan {
        index,
        group: expanded.stations[flow.station()].group,
        sender: host_index(flow.from),
        receiver: host_index(flow.to),
        from: sender.behind.unwrap_or_else(|| address(flow.from)),
        to: address(flow.to),
        port: FIRST_PORT + offset,
        data_port: FIRST_DATA_PORT + offset,
        start: flow.start,
        round_trip: round_trip(experiment, expanded, flow),
        kind,
        algorithm,
        requested: if proxied { unchanged(sender) } else { asked },
        target,
        limit: flow.limit,
        proxied,
    })
}

/// What the flow's connections aim at.
fn target(flow: &Flow) -> Option<Rate> {
    flow.rate.filter(|_| flow.algorithm.as_deref() == Some(HOLDS_A_RATE))
}

/// Whether nothing about the flow keeps iperf3 from carrying it. One that it cannot carry decides for
/// all that compete with it, which are to start alike.
fn is_iperfs(flow: &Flow, sender: SenderFacts) -> bool {
    sender.behind.is_none() && target(flow).is_none() && flow.limit.is_none()
}

/// The algorithm that the flow's sender runs, and what it has to ask for.
fn algorithm(flow: &Flow, sender: SenderFacts) -> (Option<String>, Option<String>) {
    let Some(asked) = flow.algorithm.as_deref() else { return (None, None) };
    let runs = sender_algorithm(flow, sender.bounded).unwrap_or(asked);
    let by_default = asked == "cubic" && sender.cubic_by_default;
    (Some(runs.to_owned()), (!by_default).then(|| runs.to_owned()))
}

/// What a sender behind a proxy asks for, to be a plain one.
fn unchanged(sender: SenderFacts) -> Option<String> {
    (!sender.cubic_by_default).then(|| "cubic".to_owned())
}

/// The index among the lab's hosts.
pub(crate) fn host_index(node: Node) -> usize {
    match node {
        Node::Server => 0,
        Node::Station(station) => station + 1,
    }
}

fn address(node: Node) -> Ipv4Addr {
    match node {
        Node::Server => SERVER_ADDRESS,
        Node::Station(station) => station_address(wakeai_medium::StationId(station as u32)),
    }
}

/// The round trip of a flow on an idle medium, without the air's part.
fn round_trip(experiment: &Experiment, expanded: &Expanded, flow: &Flow) -> Duration {
    let to_server = flow.from == Node::Server || flow.to == Node::Server;
    if !to_server {
        return Duration::ZERO;
    }
    let group = &experiment.stations[expanded.stations[flow.station()].group];
    let due: Duration = experiment
        .events
        .iter()
        .filter(|event| experiment.select(event.stations).contains(&flow.station()))
        .filter(|event| event.at <= flow.start)
        .filter_map(|event| event.wired_delay)
        .next_back()
        .unwrap_or(group.wired_delay);
    (experiment.wired.delay + due).saturating_mul(2)
}
