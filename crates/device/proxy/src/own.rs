//! The addresses of this machine.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::libc::{
    AF_INET, AF_INET6, RTA_DST, RTM_GETROUTE, RTM_NEWROUTE, RTN_ANYCAST, RTN_BROADCAST, RTN_LOCAL,
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

// Numbers and lengths of <linux/netlink.h>.
const REQUEST: u16 = 1;
const ERROR: u16 = 2;
const HEADER_BYTES: usize = 16;
const ROUTE_BYTES: usize = 12;
/// The offset of a route's type in a message (`rtm_type`).
const TYPE_AT: usize = HEADER_BYTES + 7;

/// Asks the kernel's routing tables whether packets to an address are delivered on this machine.
/// The addresses of the interfaces are not enough for this, because a whole network may be routed
/// to the machine.
#[derive(Debug)]
pub(crate) struct OwnAddresses {
    routes: OwnedFd,
}

impl OwnAddresses {
    /// Opens the tables of the calling thread's network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let routes = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )?;
        Ok(Self { routes })
    }

    /// Whether the address is this machine's. If the kernel does not answer, the address counts as
    /// this machine's.
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        self.ask(address).unwrap_or_else(|error| {
            tracing::warn!(%address, %error, "cannot look a route up: the address is refused");
            true
        })
    }

    fn ask(&self, address: IpAddr) -> io::Result<bool> {
        let (family, bytes) = match address {
            IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
            IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
        };
        let attribute = 4 + bytes.len();
        let length = (HEADER_BYTES + ROUTE_BYTES + attribute) as u32;
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(RTM_GETROUTE.to_ne_bytes());
        message.extend(REQUEST.to_ne_bytes());
        message.extend([0; 8]); // sequence and port: not needed for one question at a time
        message.extend([family as u8, 8 * bytes.len() as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        message.extend((attribute as u16).to_ne_bytes());
        message.extend(RTA_DST.to_ne_bytes());
        message.extend(bytes);
        send(self.routes.as_raw_fd(), &message, MsgFlags::empty())?;
        let mut answer = [0; 4096];
        let length = recv(self.routes.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        let answer = &answer[..length];
        let strange = || io::Error::new(io::ErrorKind::InvalidData, "an answer of another kind");
        let kind = answer.get(4..6).ok_or_else(strange)?;
        match u16::from_ne_bytes([kind[0], kind[1]]) {
            RTM_NEWROUTE => {
                let kind = answer.get(TYPE_AT).ok_or_else(strange)?;
                Ok([RTN_LOCAL, RTN_BROADCAST, RTN_ANYCAST].contains(kind))
            }
            // There is no route, so the address is not this machine's.
            ERROR => Ok(false),
            _ => Err(strange()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_own_and_a_documentation_address_is_not() {
        let own = OwnAddresses::open().unwrap();
        assert!(own.contain("127.0.0.1".parse().unwrap()));
        assert!(own.contain("127.200.0.1".parse().unwrap()));
        assert!(!own.contain("192.0.2.1".parse().unwrap()));
        assert!(!own.contain("2001:db8::1".parse().unwrap()));
        assert!(own.contain("127.0.0.1".parse().unwrap()), "each answer belongs to its question");
    }
}
