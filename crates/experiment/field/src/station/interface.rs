//! The machine's interfaces: which one leads to the server, and whether it is up.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;

use crate::protocol::Way;

/// What the kernel lists of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) addresses: Vec<IpAddr>,
    /// Whether it is up and has a carrier: a Wi-Fi interface has one while it is associated.
    pub(super) runs: bool,
    pub(super) exists: bool,
}

/// The interface of this name, in this network namespace.
pub(super) fn find(name: &str) -> Interface {
    let mut found = Interface::default();
    for entry in getifaddrs().into_iter().flatten().filter(|entry| entry.interface_name == name) {
        found.exists = true;
        let is = |flag| entry.flags.contains(flag);
        found.runs |= is(InterfaceFlags::IFF_UP) && is(InterfaceFlags::IFF_RUNNING);
        found.addresses.extend(address(&entry));
    }
    found
}

/// The interface that has this address.
pub(super) fn with_address(wanted: IpAddr) -> Option<String> {
    let mut entries = getifaddrs().ok()?;
    entries.find(|entry| address(entry) == Some(wanted)).map(|entry| entry.interface_name)
}

fn address(entry: &InterfaceAddress) -> Option<IpAddr> {
    let storage = entry.address.as_ref()?;
    let v4 = storage.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| storage.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

/// The broadcast address of the interface, if it has one.
pub(super) fn broadcast(name: &str) -> Option<IpAddr> {
    let entries = getifaddrs().ok()?.filter(|entry| entry.interface_name == name);
    let mut found = entries.filter(|entry| entry.flags.contains(InterfaceFlags::IFF_BROADCAST));
    found.find_map(|entry| entry.broadcast?.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip())))
}

/// The way with its address, where only the interface is named.
pub(super) fn resolved(way: Way) -> Way {
    let address = way.address.or_else(|| {
        let found = find(way.interface.as_deref()?);
        let v4 = found.addresses.iter().find(|address| address.is_ipv4());
        v4.or(found.addresses.first()).copied()
    });
    Way { address, ..way }
}

/// The way, completed by the kernel's routes: the interface and the address from which `server` is reached.
pub(super) fn towards(way: Way, server: Option<IpAddr>) -> Way {
    let mut way = resolved(way);
    if way.address.is_none()
        && let Some(server) = server
    {
        way.address = source(server);
    }
    if way.interface.is_none() {
        way.interface = way.address.and_then(with_address);
    }
    way
}

/// The address from which the kernel sends to this one. Nothing is sent.
fn source(to: IpAddr) -> Option<IpAddr> {
    let any: SocketAddr =
        if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect((to, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_way_to_this_machine_is_the_loopback_interface() {
        let way = towards(Way::default(), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(way.interface.as_deref(), Some("lo"));
        assert_eq!(way.address, Some(Ipv4Addr::LOCALHOST.into()));
        let lo = find("lo");
        assert!(lo.exists && lo.runs && lo.addresses.contains(&Ipv4Addr::LOCALHOST.into()));
        assert_eq!(find("nosuch0"), Interface::default());
    }
}
