//! Keeps the network and the air of a scenario for other programs, until the user ends it.

use std::net::Ipv4Addr;

use serde::{Serialize, Serializer};
use wakeai_api::config::Bssid;
use wakeai_medium::Node;
use wakeai_scenario::{ResolvedCondition, Station};
use wakeai_world::agent::bssid;
use wakeai_world::{STATION_BROADCAST, generator};

use super::CHECK_INTERVAL;
use super::testbed::Testbed;
use crate::clock;
use crate::driver::DriverReport;
use crate::error::LabError;
use crate::host::{Host, STATION_INTERFACE, WIRED_INTERFACE};
use crate::shared::SharedResources;

/// A network that is kept.
#[derive(Debug, Serialize)]
pub struct Held {
    /// The scenario's name.
    pub scenario: String,
    /// The condition whose network it is.
    pub condition: String,
    /// The address that reaches all stations, for the configurations of agents.
    pub broadcast: Ipv4Addr,
    /// The server, then the stations in their order, each followed by the sender behind it, if it has one.
    pub hosts: Vec<HeldHost>,
}

/// A host of a network that is kept.
#[derive(Debug, Serialize)]
pub struct HeldHost {
    /// The station's name, or `server`.
    pub name: String,
    /// The name of its namespace, which `ip netns` lists.
    pub namespace: String,
    /// Its interface in the scenario's network.
    pub interface: &'static str,
    /// The address of that interface.
    pub address: Ipv4Addr,
    /// The address of a station's access point, for the configuration of an agent: a TUN device does not tell it.
    #[serde(serialize_with = "text")]
    pub bssid: Option<Bssid>,
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn text<S: Serializer>(bssid: &Option<Bssid>, to: S) -> Result<S::Ok, S::Error> {
    bssid.map(|bssid| bssid.to_string()).serialize(to)
}

impl HeldHost {
    fn of(host: &Host, interface: &'static str, bssid: Option<Bssid>) -> Self {
        Self {
            name: host.name.clone(),
            namespace: host.namespace.name().to_owned(),
            interface,
            address: host.address,
            bssid,
        }
    }

    /// A host, and the sender behind it.
    fn with_sender(host: &Host, bssid: Option<Bssid>) -> impl Iterator<Item = Self> {
        let sender = host.behind.as_deref().map(|sender| Self::of(sender, WIRED_INTERFACE, None));
        let card = if host.node == Node::Server { WIRED_INTERFACE } else { STATION_INTERFACE };
        std::iter::once(Self::of(host, card, bssid)).chain(sender)
    }
}

/// Keeps the network of `condition` until the user interrupts the command, and removes it. The scenario's events happen
/// at their times after `ready` has returned. Returns what the driver has measured meanwhile.
pub(crate) fn hold(
    shared: &SharedResources<'_>,
    condition: &ResolvedCondition,
    seed: u64,
    ready: &dyn Fn(&Held) -> Result<(), LabError>,
) -> Result<DriverReport, LabError> {
    let experiment = &*condition.experiment;
    let expanded = experiment.expand(seed);
    let testbed = Testbed::build(shared, experiment, &expanded, generator(seed))?;
    let bssid = |station: &Station| Some(Bssid(bssid(experiment.stations[station.group].bss)));
    let bssids = std::iter::once(None).chain(expanded.stations.iter().map(bssid));
    let hosts = testbed.hosts.iter().zip(bssids);
    let hosts = hosts.flat_map(|(host, bssid)| HeldHost::with_sender(host, bssid)).collect();
    ready(&Held {
        scenario: experiment.name.clone(),
        condition: condition.name().to_owned(),
        broadcast: STATION_BROADCAST,
        hosts,
    })?;
    let origin = clock::now();
    testbed.driver().measure(Some(origin));
    testbed.driver().schedule(experiment, origin);
    // Whatever other programs change in the namespaces is what the user wants of them.
    while !shared.progress.is_interrupted() && testbed.driver().is_running() {
        clock::sleep(CHECK_INTERVAL);
    }
    testbed.driver().measure(None);
    testbed.remove(shared.lease)
}
