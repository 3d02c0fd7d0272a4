//! The hosts of a run and the medium between them.

use std::collections::BTreeMap;

use rand_pcg::Pcg64Mcg;
use wakeai_host::Lease;
use wakeai_medium::StationId;
use wakeai_scenario::{Expanded, Experiment};

use crate::driver::{Driver, DriverReport};
use crate::error::{LabError, unsupported};
use crate::host::Host;
use crate::queues::{medium_config, split_queue};
use crate::shared::SharedResources;
use crate::traffic::FlowPlan;

/// The largest number of stations that the driver's thread can serve in time.
const MAX_STATIONS: usize = 500;

/// The hosts of a run, and the driver, whose thread emulates the medium. Dropping this value
/// removes them, as [`Self::remove`] does, but ignores errors.
pub(super) struct Testbed {
    driver: Option<Driver>,
    /// The server, then the stations in their order.
    pub(super) hosts: Vec<Host>,
    /// The senders behind stations that have a proxy, by the station's index among the hosts.
    behind: BTreeMap<usize, Host>,
}

impl Testbed {
    /// Makes the namespaces and devices, and starts the medium.
    pub(super) fn build(
        shared: &SharedResources<'_>,
        experiment: &Experiment,
        expanded: &Expanded,
        rng: Pcg64Mcg,
    ) -> Result<Self, LabError> {
        if expanded.stations.len() > MAX_STATIONS {
            let asked = format!("{} stations", expanded.stations.len());
            return Err(unsupported(asked, format!("the lab serves at most {MAX_STATIONS}")).into());
        }
        let config = medium_config(experiment);
        let mut testbed = Self { driver: None, hosts: Vec::new(), behind: BTreeMap::new() };
        let mut ports = Vec::new();
        let (server, tun) = Host::server(shared.lease, shared.steering)?;
        ports.push(server.port(tun, None));
        testbed.hosts.push(server);
        for (index, station) in expanded.stations.iter().enumerate() {
            shared.check()?;
            let group = &experiment.stations[station.group];
            let queue = split_queue(&experiment.access_point, group).host;
            let id = StationId(index as u32);
            let (host, tun) =
                Host::station(shared.lease, &station.name, id, queue, shared.steering)?;
            let sender = group.proxy.then(|| host.sender_behind(shared.lease)).transpose()?;
            ports.push(host.port(tun, sender.as_ref()));
            testbed.behind.extend(sender.map(|sender| (testbed.hosts.len(), sender)));
            testbed.hosts.push(host);
        }
        let driver = Driver::start(config, rng, ports, shared.realtime, shared.steering)?;
        testbed.driver = Some(driver);
        Ok(testbed)
    }

    /// The stations in their order.
    pub(super) fn stations(&self) -> &[Host] {
        &self.hosts[1..]
    }

    /// The host whose sockets send the flow: the station, or the sender behind it.
    pub(super) fn sender(&self, plan: &FlowPlan) -> &Host {
        self.behind.get(&plan.sender).unwrap_or(&self.hosts[plan.sender])
    }

    /// The sender behind the host with this index, if there is one.
    pub(super) fn behind(&self, host: usize) -> Option<&Host> {
        self.behind.get(&host)
    }

    /// The driver of the medium.
    pub(super) fn driver(&self) -> &Driver {
        self.driver.as_ref().expect("only `remove` takes it")
    }

    /// Ends the medium and removes the namespaces.
    pub(super) fn remove(mut self, lease: &Lease) -> Result<DriverReport, LabError> {
        let driver = self.driver.take().expect("only `remove` takes it");
        // This is read first, because the server's device ends with the driver.
        let overflowed = self.hosts[0].overflowed()?;
        let mut report = driver.stop()?;
        report.misrouted.overflowed = overflowed;
        let behind = std::mem::take(&mut self.behind).into_values();
        for host in behind.chain(std::mem::take(&mut self.hosts)) {
            host.remove(lease)?;
        }
        Ok(report)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.driver = None;
        // A namespace that cannot be removed here stays in the lease.
        for host in self.behind.values().chain(&self.hosts) {
            let _ = wakeai_host::Namespace::remove(host.namespace.name());
        }
    }
}
