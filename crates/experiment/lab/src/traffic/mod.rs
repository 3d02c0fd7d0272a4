//! The way in which each flow is carried: by iperf3, by quinn, or by connections of the lab's own.

pub(crate) mod iperf;
pub(crate) mod quic;
pub(crate) mod transfer;

use std::net::Ipv4Addr;

use wakeai_kernel::HOLDS_A_RATE;
use wakeai_scenario::{Expanded, Experiment, Flow, FlowKind, Node};
use wakeai_units::{Bytes, Duration, Rate};
use wakeai_world::flows::{Division, saturating_rate, sender_algorithm};
use wakeai_world::{RunError, SERVER_ADDRESS, station_address};

use crate::error::unsupported;

/// The listening port of the first flow, which is iperf3's default; each flow has its own.
const FIRST_PORT: u16 = 5201;
/// The data connection's port at the receiver of the first flow. It distinguishes the data connection from
/// iperf3's control connection.
const FIRST_DATA_PORT: u16 = 20_001;
/// The largest number of iperf3 clients of a run. With more, the first flows would fill the air
/// before the last clients have connected.
const MAX_IPERF: usize = 16;
/// The number of ports between [`FIRST_PORT`] and [`FIRST_DATA_PORT`], rounded down.
const MAX_FLOWS: usize = 10_000;

/// The way in which a flow is carried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TrafficKind {
    /// iperf3's endless TCP connection.
    Tcp,
    /// iperf3's datagrams at a rate.
    Udp(Rate),
    /// TCP connections of the lab's own, one after another. The
    /// following flows need them:
    ///
    /// - Flows with a size, which iperf3 does not end exactly.
    /// - Flows that start after time zero, and runs of more than [`MAX_IPERF`] flows. iperf3 opens
    ///   a data connection three round trips after its start, and their time on loaded air is not
    ///   known.
    /// - All TCP flows of a run in which a flow has a target, a limit or a proxy. With iperf3 the
    ///   receiver would open the connection, the lab could not set the socket's target, and nothing
    ///   would limit the writes.
    /// - All TCP flows in a guest ([`LabOptions::in_guest`](crate::LabOptions::in_guest)).
    Own(Division),
    /// A QUIC connection of quinn with this amount of data; without one it has no end.
    Quic(Option<Bytes>),
}

/// The plan of one flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowPlan {
    /// The flow's index in the order of the scenario.
    pub(crate) index: usize,
    /// The sending host: 0 is the server, and the stations follow.
    pub(crate) sender: usize,
    /// The receiving host.
    pub(crate) receiver: usize,
    /// The sender's address.
    pub(crate) from: Ipv4Addr,
    /// The receiver's address.
    pub(crate) to: Ipv4Addr,
    /// The listening port: at the sender for iperf3, at the receiver for connections of the lab's
    /// own.
    pub(crate) port: u16,
    /// iperf3's data port at the receiver.
    pub(crate) data_port: u16,
    /// The flow's start, counted from the run's time zero.
    pub(crate) start: Duration,
    /// The round-trip time over the wire.
    pub(crate) round_trip: Duration,
    /// The connections or the program that carry the flow.
    pub(crate) kind: TrafficKind,
    /// The congestion control that the sender runs; `None` for UDP.
    pub(crate) algorithm: Option<String>,
    /// The congestion control that the sending application sets on its socket; `None` leaves the
    /// default.
    pub(crate) requested: Option<String>,
    /// The target rate of the flow's connections, if the algorithm holds one.
    pub(crate) target: Option<Rate>,
    /// The rate at which the sending application writes, if it has a limit.
    pub(crate) limit: Option<Rate>,
    /// Whether the flow waits for its station's turns.
    pub(crate) turns: bool,
    /// Whether a proxy on the station carries the flow over the air.
    pub(crate) proxied: bool,
}

/// The settings of a host that decide how its flows are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderFacts {
    /// Whether `cubic` is the default of the host's namespace.
    pub(crate) cubic_by_default: bool,
    /// Whether an agent bounds the host's connections. Such an agent replaces the default `cubic`
    /// by `wakeai_cubic`.
    pub(crate) bounded: bool,
    /// The address of the sender behind the host, if the host is a station with a proxy.
    pub(crate) behind: Option<Ipv4Addr>,
}

/// Plans all flows of a run; `senders` are the hosts, the server first. `with_iperf` says whether iperf3 may carry TCP
/// flows.
pub(crate) fn plan(
    experiment: &Experiment,
    expanded: &Expanded,
    senders: &[SenderFacts],
    with_iperf: bool,
) -> Result<Vec<FlowPlan>, RunError> {
    if expanded.flows.len() > MAX_FLOWS {
        let asked = format!("{} flows", expanded.flows.len());
        return Err(unsupported(asked, format!("the lab has ports for {MAX_FLOWS}")));
    }
    let by_iperf = with_iperf
        && expanded.flows.len() <= MAX_IPERF
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
        (FlowKind::Tcp, None) if by_iperf && flow.start.is_zero() => TrafficKind::Tcp,
        (FlowKind::Tcp, _) => TrafficKind::Own(Division::new(flow)),
        (FlowKind::Udp, None) => TrafficKind::Udp(
            flow.rate.unwrap_or_else(|| saturating_rate(experiment, expanded, flow)),
        ),
        (FlowKind::Quic, size) => TrafficKind::Quic(size),
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
        turns: flow.turns && !proxied,
        proxied,
    })
}

/// The target rate of the flow's connections.
fn target(flow: &Flow) -> Option<Rate> {
    flow.rate.filter(|_| flow.algorithm.as_deref() == Some(HOLDS_A_RATE))
}

/// Whether iperf3 can carry the flow. If there is a TCP flow that it cannot carry, it carries no
/// TCP flow of the run, so that all competing flows start in the same way.
fn is_iperfs(flow: &Flow, sender: SenderFacts) -> bool {
    sender.behind.is_none() && target(flow).is_none() && flow.limit.is_none()
}

/// The algorithm that the flow's sender runs, and the one that the application has to set.
fn algorithm(flow: &Flow, sender: SenderFacts) -> (Option<String>, Option<String>) {
    let Some(asked) = flow.algorithm.as_deref() else { return (None, None) };
    let runs = sender_algorithm(flow, sender.bounded).unwrap_or(asked);
    if flow.kind == FlowKind::Quic {
        return (Some(runs.to_owned()), None); // it is quinn's, and no socket has it
    }
    let by_default = asked == "cubic" && sender.cubic_by_default;
    (Some(runs.to_owned()), (!by_default).then(|| runs.to_owned()))
}

/// The algorithm that a sender behind a proxy has to set to run plain CUBIC.
fn unchanged(sender: SenderFacts) -> Option<String> {
    (!sender.cubic_by_default).then(|| "cubic".to_owned())
}

/// The index of `node` among the lab's hosts.
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

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;

    #[test]
    fn in_a_guest_iperf3_carries_datagrams_alone() {
        let text = "name = \"x\"\nduration = \"20s\"\naccess_point = { standard = \"802.11g\" }\n\
                    stations = [{ name = \"a\" }, { name = \"b\" }]\n\
                    flows = [{ from = \"a\", to = \"server\" },\n\
                             { from = \"b\", to = \"server\", kind = \"udp\", rate = \"1Mbit/s\" }]\n";
        let scenario = Scenario::parse(text).unwrap();
        let facts = SenderFacts { cubic_by_default: true, bounded: false, behind: None };
        let kinds = |with_iperf| {
            let plans = plan(&scenario, &scenario.expand(1), &[facts; 3], with_iperf).unwrap();
            plans.into_iter().map(|plan| plan.kind).collect::<Vec<_>>()
        };
        let udp = TrafficKind::Udp(Rate::from_mbps(1));
        assert_eq!(kinds(true), [TrafficKind::Tcp, udp.clone()]);
        let [tcp, datagrams] = kinds(false).try_into().unwrap();
        assert!(matches!(tcp, TrafficKind::Own(_)), "{tcp:?}");
        assert_eq!(datagrams, udp);
    }
}
