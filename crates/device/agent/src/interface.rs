//! The state of the interface that the agent works on.

use std::io;
use std::net::Ipv4Addr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nameindex, if_nametoindex};
use nix::sys::socket::SockaddrStorage;

/// An interface at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Its index, which changes when the interface is removed and added again.
    pub(crate) index: u32,
    /// Whether it is administratively up (`IFF_UP`).
    pub(crate) up: bool,
    /// Whether it has an IPv4 address, or an IPv6 address that is not link-local.
    pub(crate) addressed: bool,
    /// Its first IPv4 address. A link-local address (169.254/16, RFC 3927) is used only if the
    /// interface has no other address.
    pub(crate) address: Option<Ipv4Addr>,
    /// The broadcast address. If several addresses have one, it is that of the first such address.
    pub(crate) broadcast: Option<Ipv4Addr>,
    /// Its hardware address. It is `None` for a TUN device.
    pub(crate) hardware: Option<[u8; 6]>,
}

/// The interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// This network namespace has no interface of that name.
    #[error("this network namespace has no interface {name}; it has: {others}")]
    Missing {
        /// The name.
        name: String,
        /// The existing interfaces.
        others: String,
    },
    /// The kernel refused to list its interfaces.
    #[error("cannot list the interfaces: {0}")]
    List(#[from] io::Error),
}

impl Interface {
    /// Looks `name` up in the namespace of the calling thread.
    pub(crate) fn find(name: &str) -> Result<Self, InterfaceError> {
        let Ok(index) = if_nametoindex(name) else {
            return Err(InterfaceError::Missing { name: name.to_owned(), others: others() });
        };
        let mut found = Self { index, ..Self::default() };
        let mut addresses = Vec::new();
        for entry in getifaddrs().map_err(io::Error::from)? {
            if entry.interface_name != name {
                continue;
            }
            found.up |= entry.flags.contains(InterfaceFlags::IFF_UP);
            let hardware = entry.address.as_ref().and_then(|a| a.as_link_addr()?.addr());
            found.hardware = found.hardware.or(hardware.filter(|octets| *octets != [0; 6]));
            let v6 = entry.address.as_ref().and_then(|a| a.as_sockaddr_in6());
            found.addressed |= v6.is_some_and(|v6| !v6.ip().is_unicast_link_local());
            if let Some(own) = ipv4(entry.address.as_ref()) {
                let given = ipv4(entry.broadcast.as_ref());
                let given = given.filter(|_| entry.flags.contains(InterfaceFlags::IFF_BROADCAST));
                let given = given.zip(ipv4(entry.netmask.as_ref()));
                let given = given.filter(|(given, mask)| is_broadcast(*given, own, *mask));
                addresses.push((own, given.map(|(given, _)| given)));
            }
        }
        (found.address, found.broadcast) = preferred(addresses);
        found.addressed |= found.address.is_some();
        Ok(found)
    }
}

fn ipv4(address: Option<&SockaddrStorage>) -> Option<Ipv4Addr> {
    Some(address?.as_sockaddr_in()?.ip())
}

/// The address to use, and the broadcast address. `addresses` are the addresses of one interface in
/// the kernel's order, each with its broadcast address.
fn preferred(
    mut addresses: Vec<(Ipv4Addr, Option<Ipv4Addr>)>,
) -> (Option<Ipv4Addr>, Option<Ipv4Addr>) {
    addresses.sort_by_key(|(own, _)| own.is_link_local());
    let broadcast = addresses.iter().find_map(|(_, broadcast)| *broadcast);
    (addresses.first().map(|(own, _)| *own), broadcast)
}

/// Whether `given` is the broadcast address of the network of `own`. If an address has no broadcast
/// address, getifaddrs(3) returns the address itself or the peer's address instead.
fn is_broadcast(given: Ipv4Addr, own: Ipv4Addr, mask: Ipv4Addr) -> bool {
    let last = Ipv4Addr::from_bits(own.to_bits() | !mask.to_bits());
    given == last && given != own
}

fn others() -> String {
    let names = if_nameindex().map(|list| {
        list.iter().map(|entry| entry.name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    });
    names.unwrap_or_default().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_without_hardware_address_or_broadcast() {
        let found = Interface::find("lo").unwrap();
        assert_eq!(found.index, if_nametoindex("lo").unwrap());
        assert_eq!((found.broadcast, found.hardware), (None, None));
    }

    #[test]
    fn an_address_without_broadcast_address_has_none() {
        let [own, mask] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(255, 255, 255, 0)];
        assert!(is_broadcast(Ipv4Addr::new(10, 1, 0, 255), own, mask));
        assert!(!is_broadcast(own, own, mask), "plain `ip addr add 10.1.0.1/24`");
        let (pair, single) = (Ipv4Addr::new(255, 255, 255, 254), Ipv4Addr::BROADCAST);
        assert!(!is_broadcast(own, own, pair), "RFC 3021: two addresses, no broadcast");
        assert!(!is_broadcast(own, own, single));
        assert!(!is_broadcast(Ipv4Addr::new(10, 1, 0, 2), own, single), "the peer of a /32");
    }

    #[test]
    fn a_link_local_address_is_used_only_where_there_is_no_other() {
        let own = |last| (Ipv4Addr::new(10, 1, 0, last), Some(Ipv4Addr::new(10, 1, 0, 255)));
        let local = (Ipv4Addr::new(169, 254, 3, 4), Some(Ipv4Addr::new(169, 254, 255, 255)));
        let alone = (Ipv4Addr::new(10, 9, 0, 1), None);
        let first = |(own, broadcast)| (Some(own), broadcast);
        assert_eq!(preferred(vec![local, own(1), own(2)]), first(own(1)));
        assert_eq!(preferred(vec![own(2), own(1), local]), first(own(2)));
        assert_eq!(preferred(vec![local]), first(local));
        assert_eq!(preferred(vec![alone, own(1)]), (Some(alone.0), own(1).1));
        assert_eq!(preferred(Vec::new()), (None, None));
    }

    #[test]
    fn a_missing_interface_is_named_beside_those_that_exist() {
        let message = Interface::find("wlan77").unwrap_err().to_string();
        assert!(message.contains("no interface wlan77; it has: "), "{message}");
        assert!(message.contains("lo"), "{message}");
    }
}
