//! The flows of UDP that the agents of this machine count. The kernel has no list of them, so without an agent none is shown.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use wakeai_api::{Answers, DatagramFlow};
use wakeai_connection::{Bounds, Figures};
use wakeai_host::NetnsId;
use wakeai_units::{Bytes, Rate};

use super::namespaces::Namespaces;
use crate::reading::{ConnectionId, End, SeenConnection};

/// What stands in the place of an algorithm.
pub(crate) const ALGORITHM: &str = "udp";
/// No socket's cookie has this bit.
const FLOW_ID: u64 = 1 << 63;

/// The flows that send something or have a rate, of the agents whose namespaces are watched.
pub(crate) fn connections(
    agents: &[Answers],
    namespaces: &Namespaces,
    algorithm: &Arc<str>,
) -> Vec<SeenConnection> {
    let of_agent = |agent: &Answers| {
        let netns = NetnsId(agent.status.netns);
        let name = namespaces.watched.get(&netns).map(|watched| Arc::clone(&watched.name));
        let flows = agent.status.datagrams.iter().flatten().zip(std::iter::repeat(name));
        let shown = flows.filter_map(|(flow, name)| {
            let connection = connection(netns, name?, Arc::clone(algorithm), flow)?;
            (flow.rate_mbps > 0.0 || flow.bound_mbps.is_some()).then_some(connection)
        });
        shown.collect::<Vec<_>>()
    };
    agents.iter().flat_map(of_agent).collect()
}

/// `None` where the agent's text is no address.
fn connection(
    netns: NetnsId,
    namespace: Arc<str>,
    algorithm: Arc<str>,
    flow: &DatagramFlow,
) -> Option<SeenConnection> {
    let mut hasher = DefaultHasher::new();
    (&flow.local, &flow.remote).hash(&mut hasher);
    Some(SeenConnection {
        id: ConnectionId { netns: netns.0, cookie: FLOW_ID | hasher.finish() },
        namespace,
        owner: "".into(),
        pid: None,
        local: End::Address(flow.local.parse().ok()?),
        remote: End::Address(flow.remote.parse().ok()?),
        algorithm,
        figures: Figures { mss: Bytes::new(flow.datagram_bytes), ..Figures::default() },
        bounds: Bounds { pacing: flow.bound_mbps.map(Rate::from_mbps_f64), ..Bounds::NONE },
        sent: Some(Rate::from_mbps_f64(flow.rate_mbps)),
        received: None,
        limit: None,
        events: None,
        retransmits: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(flow: &DatagramFlow) -> Option<SeenConnection> {
        connection(NetnsId(7), "".into(), ALGORITHM.into(), flow)
    }

    #[test]
    fn a_flow_is_a_connection_with_its_rate_and_its_bound() {
        let flow = DatagramFlow {
            local: "10.0.0.1:5".to_owned(),
            remote: "[fe80::1]:443".to_owned(),
            rate_mbps: 8.0,
            datagram_bytes: 1200,
            bound_mbps: Some(9.0),
            ..DatagramFlow::default()
        };
        let one = seen(&flow).unwrap();
        assert_eq!(
            (one.sent, one.bounds.pacing),
            (Some(Rate::from_mbps(8)), Some(Rate::from_mbps(9)))
        );
        assert_eq!(one.remote, End::Address("[fe80::1]:443".parse().unwrap()));
        let slower = DatagramFlow { rate_mbps: 1.0, ..flow.clone() };
        assert_eq!(one.id, seen(&slower).unwrap().id);
        let other = DatagramFlow { remote: "10.0.0.9:443".to_owned(), ..flow };
        assert_ne!(one.id, seen(&other).unwrap().id);
        assert!(seen(&DatagramFlow { local: "no address".to_owned(), ..other }).is_none());
        assert!(one.id.cookie >= FLOW_ID);
    }
}
