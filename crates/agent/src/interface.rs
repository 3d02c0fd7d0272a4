//! The one interface that the agent works on, as the kernel has it now.

use std::io;
use std::net::Ipv4Addr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nameindex, if_nametoindex};

/// What the kernel says about an interface at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Its index: another one means that it went and came back.
    pub(crate) index: u32,
    /// Up and running.
    pub(crate) up: bool,
    /// The broadcast address of its first IPv4 network.
    pub(crate) broadcast: Option<Ipv4Addr>,
    /// Its hardware address; a TUN has none.
    pub(crate) hardware: Option<[u8; 6]>,
}

/// The interface is not there.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// No such name in this network namespace.
    #[error("this network namespace has no interface {name}; it has: {others}")]
    Missing {
        /// What was asked.
        name: String,
        /// What there is.
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
        let mut found = Self { index, up: false, broadcast: None, hardware: None };
        for entry in getifaddrs().map_err(io::Error::from)? {
            if entry.interface_name != name {
                continue;
            }
            found.up |= entry.flags.contains(InterfaceFlags::IFF_UP);
            let hardware = entry.address.as_ref().and_then(|a| a.as_link_addr()?.addr());
            found.hardware = found.hardware.or(hardware.filter(|octets| *octets != [0; 6]));
            if entry.flags.contains(InterfaceFlags::IFF_BROADCAST) {
                let address = entry.broadcast.as_ref().and_then(|a| Some(a.as_sockaddr_in()?.ip()));
                found.broadcast = found.broadcast.or(address);
            }
        }
        Ok(found)
    }
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
    fn a_missing_interface_is_named_beside_those_that_exist() {
        let message = Interface::find("wlan77").unwrap_err().to_string();
        assert!(message.contains("no interface wlan77; it has: "), "{message}");
        assert!(message.contains("lo"), "{message}");
    }
}
