//! The hosts of a run and the medium between them.

use rand_pcg::Pcg64Mcg;
use wakeai_host::Lease;
use wakeai_medium::StationId;
use wakeai_scenario::{Expanded, Experiment};

use crate::driver::{Driver, DriverReport};
use crate::error::{LabError, unsupported};
use crate::host::{AccessPointHost, Host, acquaint};
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
    /// The access point, where it is a host: over the 802.11 stack of Linux.
    access_point: Option<AccessPointHost>,
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
        let mut testbed = Self { driver: None, hosts: Vec::new(), access_point: None };
        if experiment.stack.is_linux() {
            testbed.add_radios(shared, experiment, expanded, rng)?;
            return Ok(testbed);
        }
        let config = medium_config(experiment);
        let mut ports = Vec::new();
        let (server, tun) = Host::server(shared.lease, shared.steering)?;
        ports.push(server.port(tun));
        testbed.hosts.push(server);
        for (index, station) in expanded.stations.iter().enumerate() {
            shared.check()?;
            let group = &experiment.stations[station.group];
            let queue = split_queue(experiment.access_point_of(group), group).host;
            let id = StationId(index as u32);
            let (mut host, tun) =
                Host::station(shared.lease, &station.name, id, queue, shared.steering)?;
            if group.proxy {
                host.behind = Some(host.sender_behind(shared.lease)?.into());
            }
            ports.push(host.port(tun));
            testbed.hosts.push(host);
        }
        let driver =
            Driver::start(config, rng, ports, (shared.realtime, shared.in_guest), shared.steering)?;
        testbed.driver = Some(driver);
        Ok(testbed)
    }

    /// Starts the air of the radios, then makes the access point, the server behind it, and the stations, which associate.
    fn add_radios(
        &mut self,
        shared: &SharedResources<'_>,
        experiment: &Experiment,
        expanded: &Expanded,
        rng: Pcg64Mcg,
    ) -> Result<(), LabError> {
        let flags = (shared.realtime, shared.in_guest);
        self.driver = Some(Driver::between_radios(experiment, rng, flags, shared.steering)?);
        let (access_point, server) = AccessPointHost::with_server(shared, experiment)?;
        let access_point = self.access_point.insert(access_point);
        self.hosts.push(server);
        let bss = experiment.access_point.wifi().expect("the stack is of Wi-Fi alone");
        for (index, station) in expanded.stations.iter().enumerate() {
            let group = &experiment.stations[station.group];
            let id = StationId(index as u32);
            self.hosts.push(Host::associated(
                shared,
                &station.name,
                id,
                group,
                (bss, experiment.stack),
            )?);
        }
        acquaint(shared, &access_point.host, &self.hosts[1..])
    }

    /// The stations in their order.
    pub(super) fn stations(&self) -> &[Host] {
        &self.hosts[1..]
    }

    /// The host whose sockets send the flow: the station, or the sender behind it.
    pub(super) fn sender(&self, plan: &FlowPlan) -> &Host {
        let host = &self.hosts[plan.sender];
        host.behind.as_deref().unwrap_or(host)
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
        self.access_point.take().map_or(Ok(()), |access_point| access_point.remove(lease))?;
        std::mem::take(&mut self.hosts).into_iter().try_for_each(|host| host.remove(lease))?;
        Ok(report)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.driver = None;
        // A namespace that cannot be removed here stays in the lease.
        if let Some(access_point) = self.access_point.take() {
            let _ = wakeai_host::Namespace::remove(access_point.host.namespace.name());
        }
        let behind = self.hosts.iter().filter_map(|host| host.behind.as_deref());
        for host in behind.chain(&self.hosts) {
            let _ = wakeai_host::Namespace::remove(host.namespace.name());
        }
    }
}
