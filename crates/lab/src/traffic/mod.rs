//! The way in which each flow is carried: by iperf3 or by connections of the lab's own.

pub(crate) mod iperf;
pub(crate) mod transfer;

use std::net::Ipv4Addr;

use wakeai_kernel::HOLDS_A_RATE;
use wakeai_scenario::{Expanded, Experiment, Flow, FlowKind, Node};
use wakeai_units::{Bytes, Duration, Rate};
use wakeai_world::flows::{chunk, saturating_rate, sender_algorithm};
use wakeai_world::{RunError, SERVER_ADDRESS, station_address};

use crate::error::unsupported;

/// The listening port of the first flow, which is iperf3's default; each flow has its own.
const FIRST_PORT: u16 = 5201;
/// The data connection's port at the receiver of the first flow. It distinguishes the data connection from
/// iperf3's control connection.
const FIRST_DATA_PORT: u16 = 20_001;
/// The largest number of iperf3 clients of a run: that many can connect before the first fills the air.
const MAX_IPERF: usize = 16;
/// The size of an endless flow: more than any run carries.
pub(crate) const ENDLESS: Bytes = Bytes::new(u64::MAX);
/// The number of ports between [`FIRST_PORT`] and [`FIRST_DATA_PORT`], rounded down.
const MAX_FLOWS: usize = 10_000;

/// The way in which a flow is carried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// iperf3's endless TCP connection.
    Tcp,
    /// iperf3's datagrams at a rate.
    Udp(Rate),
    /// TCP connections of the lab's own, one after another, with the bytes of each. They carry
    /// flows with a size, flows that start after time zero, and runs of more than [`MAX_IPERF`] flows:
    /// iperf3 opens a data connection three round trips after its start, and these take an unknown
    /// time on loaded air. If a flow of a run has a target, a limit or a proxy, they carry all TCP
    /// flows of the run: with iperf3 the receiver opens the connection, the lab has no access to
    /// its socket, and writes are not paced.
    Own(Vec<Bytes>),
}

/// The plan of one flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowPlan {
    /// Its index in the order of the scenario.
    pub(crate) index: usize,
    /// The group of the station to which it belongs.
    pub(crate) group: usize,
    /// The sending host: 0 is the server, and the stations follow.
    pub(crate) sender: usize,
    /// The receiving host.
    pub(crate) receiver: usize,
    /// The sender's address.
    pub(crate) from: Ipv4Addr,
    /// The receiver's address.
    pub(crate) to: Ipv4Addr,
    /// The listening port: iperf3's at the sender, or that of the receiver of the lab's own connections.
    pub(crate) port: u16,
    /// iperf3's data port at the receiver.
    pub(crate) data_port: u16,
    /// Its start: the time from the run's time zero.
    pub(crate) start: Duration,
    /// The round-trip time over the wire.
    pub(crate) round_trip: Duration,
    /// The connections or the program that carry it.
    pub(crate) kind: Kind,
    /// The congestion control that its sender runs; `None` for UDP.
    pub(crate) algorithm: Option<String>,
    /// The congestion control that the sending application sets on its socket; `None`: it keeps the
    /// default.
    pub(crate) requested: Option<String>,
    /// The target rate of its connections, if the algorithm holds one.
    pub(crate) target: Option<Rate>,
    /// The rate at which its application writes.
    pub(crate) limit: Option<Rate>,
    /// Whether a proxy on the station carries it over the air.
    pub(crate) proxied: bool,
}

/// The settings of a host that decide how its flows are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderFacts {
    /// Whether `cubic` is the default of its namespace.
    pub(crate) cubic_by_default: bool,
    /// Whether an agent bounds its connections. The agent replaces a default of cubic by `wakeai_cubic`.
    pub(crate) bounded: bool,
    /// The address of the sender behind it, if the station has a proxy.
    pub(crate) behind: Option<Ipv4Addr>,
}

/// Plans all flows of a run; `senders` are the hosts, the server first.
pub(crate) fn plan(
    experiment: &Experiment,
    expanded: &Expanded,
    senders: &[SenderFacts],
) -> Result<Vec<FlowPlan>, RunError> {
    if expanded.flows.len() > MAX_FLOWS {
        let asked = format!("{} flows", expanded.flows.len());
        return Err(unsupported(asked, format!("the lab has ports for {MAX_FLOWS}")));
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
            return Err(unsupported(
                format!("flows.{}: a UDP flow with a size", flow.entry + 1),
                "give it a rate and no size: lost datagrams are not sent again, so it would not end",
            ));
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

/// The target rate of the flow's connections.
fn target(flow: &Flow) -> Option<Rate> {
    flow.rate.filter(|_| flow.algorithm.as_deref() == Some(HOLDS_A_RATE))
}

/// Whether iperf3 can carry the flow. If it cannot carry one TCP flow of a run, it carries none of
/// them, so that competing flows start alike.
fn is_iperfs(flow: &Flow, sender: SenderFacts) -> bool {
    sender.behind.is_none() && target(flow).is_none() && flow.limit.is_none()
}

/// The algorithm that the flow's sender runs, and the one that the application has to set.
fn algorithm(flow: &Flow, sender: SenderFacts) -> (Option<String>, Option<String>) {
    let Some(asked) = flow.algorithm.as_deref() else { return (None, None) };
    let runs = sender_algorithm(flow, sender.bounded).unwrap_or(asked);
    let by_default = asked == "cubic" && sender.cubic_by_default;
    (Some(runs.to_owned()), (!by_default).then(|| runs.to_owned()))
}

/// The algorithm that a sender behind a proxy has to set to run plain CUBIC.
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

/// The round-trip time of a flow over the wire at its start.
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
