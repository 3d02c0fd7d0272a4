//! The addresses at which the other end reaches a listener.

use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// Returns the address itself, if it is specified. For an unspecified address, returns the addresses of the same family
/// of all interfaces that are up. Loopback addresses are returned only if there are no others.
pub(super) fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let mut found: Vec<IpAddr> = Vec::new();
    for entry in getifaddrs().into_iter().flatten() {
        if !entry.flags.contains(InterfaceFlags::IFF_UP) {
            continue;
        }
        let Some(address) = entry.address else { continue };
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        let v6 = address.as_sockaddr_in6().map(nix::sys::socket::SockaddrIn6::ip);
        let v6 = v6.filter(|v6| !v6.is_unicast_link_local()).map(IpAddr::V6);
        found.extend(v4.or(v6).filter(|one| one.is_ipv4() == bound.is_ipv4()));
    }
    let (own, others): (Vec<IpAddr>, Vec<IpAddr>) =
        found.into_iter().partition(IpAddr::is_loopback);
    let shown = if others.is_empty() { own } else { others };
    shown.into_iter().map(|ip| SocketAddr::new(ip, bound.port())).collect()
}
