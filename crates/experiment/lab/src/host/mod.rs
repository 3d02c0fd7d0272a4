//! The hosts: the server, the stations, and senders behind stations. Each is a network namespace.
//! The server and the stations have a TUN device as their network interface; a sender behind a
//! station has a veth link to that station.

mod child;
mod radio;
mod steering;
mod sysctl;
pub(crate) mod tun;

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use wakeai_host::{Change, Lease, LinkSettings, Namespace, Netlink, NetnsId};
use wakeai_medium::{Node, StationId};
use wakeai_world::{SERVER_ADDRESS, STATION_BROADCAST, station_address};

pub(crate) use child::{Child, dying_with_us, held_back};
pub(crate) use radio::{AccessPointHost, acquaint, radio_address};
pub(crate) use steering::Steering;

use crate::error::LabError;
use tun::Tun;

/// The name of every station's network interface.
pub(crate) const STATION_INTERFACE: &str = "wlan0";
/// The network interface of the server, and of a sender behind a station.
pub(crate) const WIRED_INTERFACE: &str = "eth0";
/// The station's end of the veth link to a sender behind it.
pub(crate) const CABLE_INTERFACE: &str = "lan0";
/// The largest length of an IP packet in the emulated network.
pub(crate) const MTU_BYTES: u32 = 1500;

/// The prefix length of the stations' network, which is one broadcast domain.
const STATION_PREFIX_BITS: u8 = 16;
/// The prefix length of a veth link's network.
const CABLE_PREFIX_BITS: u8 = 16;
/// A station's address on its veth link. All stations use the same one, because the links are not
/// connected.
const CABLE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 75, 255, 254);

/// The address of the sender behind station `id`: 10.75.0.1 behind the first.
fn sender_address(id: StationId) -> Ipv4Addr {
    let [ten, _, high, low] = station_address(id).octets();
    Ipv4Addr::new(ten, CABLE_ADDRESS.octets()[1], high, low)
}

/// The connection of a host to the medium, the emulated network.
#[derive(Debug)]
pub(crate) struct Port {
    /// The host's node.
    pub(crate) node: Node,
    /// The host's address.
    pub(crate) address: Ipv4Addr,
    /// The address of the sender behind the host. Its packets go through this port, too.
    pub(crate) behind: Option<Ipv4Addr>,
    /// The host's device.
    pub(crate) tun: Tun,
}

impl Port {
    /// The addresses that are reached through this port.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (Ipv4Addr, Node)> + use<> {
        let node = self.node;
        std::iter::once(self.address).chain(self.behind).map(move |address| (address, node))
    }
}

/// One host of the lab.
#[derive(Debug)]
pub(crate) struct Host {
    /// The station's name, or `server`.
    pub(crate) name: String,
    /// The host's node in the emulated network.
    pub(crate) node: Node,
    /// The host's address on the air, the wire or the veth link.
    pub(crate) address: Ipv4Addr,
    /// Whether the host's connections use `cubic` by default.
    pub(crate) cubic_by_default: bool,
    /// The namespace, for threads that enter it.
    pub(crate) namespace: Namespace,
    /// The sender behind the host, if it is a station with a proxy.
    pub(crate) behind: Option<Box<Self>>,
    registered: Change,
}

impl Host {
    /// Makes the station number `id` with a host queue of `queue_packets`.
    pub(crate) fn station(
        lease: &Lease,
        name: &str,
        id: StationId,
        queue_packets: u32,
        steering: Option<Steering>,
    ) -> Result<(Self, Tun), LabError> {
        let address = station_address(id);
        let settings = LinkSettings {
            mtu_bytes: MTU_BYTES,
            queue_packets,
            // Each buffer holds one packet, because TCP does not notice the overflow of larger
            // ones.
            gso_max_segments: Some(1),
        };
        let network = (address, STATION_PREFIX_BITS, Some(STATION_BROADCAST));
        Self::make(lease, name, Node::Station(id), address, steering, move || {
            interface(STATION_INTERFACE, &settings, network)
        })
    }

    /// Makes the server. Its host queue only holds bursts, because the driver reads every packet at
    /// once and puts it into the wire's queue. [`Host::overflowed`] counts the packets of bursts
    /// that were too long.
    pub(crate) fn server(
        lease: &Lease,
        steering: Option<Steering>,
    ) -> Result<(Self, Tun), LabError> {
        let settings = LinkSettings {
            mtu_bytes: MTU_BYTES,
            queue_packets: tun::MAX_QUEUE_PACKETS,
            gso_max_segments: None,
        };
        Self::make(lease, "server", Node::Server, SERVER_ADDRESS, steering, move || {
            interface(WIRED_INTERFACE, &settings, (SERVER_ADDRESS, 32, None))
        })
    }

    /// Makes a sender behind this station (TCP-AV paper, figure 16): a host with a veth link to the
    /// station, which forwards the host's packets.
    pub(crate) fn sender_behind(&self, lease: &Lease) -> Result<Self, LabError> {
        let Node::Station(id) = self.node else { unreachable!("nobody is behind the server") };
        let address = sender_address(id);
        // The name is unique, because no station's name has a dot in it.
        let name = format!("{}.sender", self.name);
        let (host, ()) = Self::make(lease, &name, self.node, address, None, || Ok(()))?;
        let failed = || LabError::system::<io::Error>(format!("lay a cable to {name}"));
        let other = host.namespace_file().map_err(failed())?;
        let lay = || {
            let netlink = Netlink::open()?;
            netlink.add_cable(CABLE_INTERFACE, WIRED_INTERFACE, &other)?;
            let index = nix::net::if_::if_nametoindex(CABLE_INTERFACE)?;
            netlink.add_address(index, CABLE_ADDRESS, CABLE_PREFIX_BITS, None)?;
            netlink.up(index)?;
            sysctl::write("net/ipv4/ip_forward", "1")
        };
        self.namespace.run(lay)?.map_err(failed())?;
        let connect = || {
            let netlink = Netlink::open()?;
            let index = nix::net::if_::if_nametoindex(WIRED_INTERFACE)?;
            netlink.add_address(index, address, CABLE_PREFIX_BITS, None)?;
            netlink.up(index)?;
            netlink.add_default_route_via(CABLE_ADDRESS)
        };
        host.namespace.run(connect)?.map_err(failed())?;
        Ok(host)
    }

    fn make<T: Send>(
        lease: &Lease,
        name: &str,
        node: Node,
        address: Ipv4Addr,
        steering: Option<Steering>,
        build: impl FnOnce() -> io::Result<T> + Send,
    ) -> Result<(Self, T), LabError> {
        let namespace_name = format!("wakeai-{}-{name}", std::process::id());
        let namespace = lease.create_namespace(&namespace_name)?;
        let registered = Change::Namespace { name: namespace_name, made: Some(namespace.id()) };
        let (cubic_by_default, built) = namespace
            .run(|| {
                let cubic_by_default = sysctl::apply()?;
                let loopback = nix::net::if_::if_nametoindex("lo")?;
                Netlink::open()?.up(loopback)?;
                let built = build()?;
                let card = if node == Node::Server { WIRED_INTERFACE } else { STATION_INTERFACE };
                if let Some(Err(error)) = steering.map(|steering| steering.apply(card)) {
                    // Without steering, packets may only be delivered later, and that is measured.
                    tracing::warn!(%error, card, "received packets are not steered");
                }
                Ok((cubic_by_default, built))
            })?
            .map_err(LabError::system::<io::Error>(format!("build the network of {name}")))?;
        let (name, behind) = (name.to_owned(), None);
        Ok((Self { name, node, address, cubic_by_default, namespace, behind, registered }, built))
    }

    /// The number of packets that found the queue of the server's network interface full.
    pub(crate) fn overflowed(&self) -> Result<u64, LabError> {
        let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
        let table = self.namespace.run(read)?.map_err(LabError::system::<io::Error>(format!(
            "count the packets of {}",
            self.name
        )))?;
        Ok(dropped_in(&table, WIRED_INTERFACE).unwrap_or(0))
    }

    /// The identity of the host's namespace.
    pub(crate) fn netns(&self) -> NetnsId {
        self.namespace.id()
    }

    /// The namespace as an open file, for processes that start in it.
    pub(crate) fn namespace_file(&self) -> io::Result<File> {
        File::open(PathBuf::from("/run/netns").join(self.namespace.name()))
    }

    /// The port through which the host and the sender behind it reach the medium.
    pub(crate) fn port(&self, tun: Tun) -> Port {
        let behind = self.behind.as_ref().map(|sender| sender.address);
        Port { node: self.node, address: self.address, behind, tun }
    }

    /// Removes the namespace, and that of the sender behind the host; their processes must have ended.
    pub(crate) fn remove(self, lease: &Lease) -> Result<(), LabError> {
        self.behind.map_or(Ok(()), |sender| sender.remove(lease))?;
        let given_up =
            LabError::system::<io::Error>(format!("end the connections of {}", self.name));
        // Connections without a process give up at their next timeout. Their peers have ended with the run, so
        // nothing acknowledges their data. With the kernel's default of eight retransmissions they would keep
        // their queues for long, and on a small machine the connections of the next run would lack memory
        // (`tcp_mem`).
        let give_up = || sysctl::write("net/ipv4/tcp_orphan_retries", "1");
        self.namespace.run(give_up)?.map_err(given_up)?;
        Namespace::remove(self.namespace.name())?;
        lease.forget(&self.registered)?;
        Ok(())
    }
}

/// Makes a TUN device with an address and the default route in the calling thread's namespace.
fn interface(
    name: &str,
    settings: &LinkSettings,
    (address, prefix_bits, broadcast): (Ipv4Addr, u8, Option<Ipv4Addr>),
) -> io::Result<Tun> {
    let tun = Tun::create(name)?;
    let netlink = Netlink::open()?;
    netlink.set_up(tun.index, settings)?;
    netlink.no_queueing_discipline(tun.index)?;
    netlink.add_address(tun.index, address, prefix_bits, broadcast)?;
    netlink.add_default_route(tun.index)?;
    Ok(tun)
}

/// The number of packets that `interface` could not send, from the text of `/proc/net/dev`
/// (`proc_net_dev(5)`). In a line the interface's name is followed by eight counts of received
/// data, and then by the bytes, packets, errors and drops of sent data.
fn dropped_in(table: &str, interface: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.trim().split_once(':'));
    let (_, counts) = lines.find(|(name, _)| *name == interface)?;
    counts.split_ascii_whitespace().nth(11)?.parse().ok()
}
