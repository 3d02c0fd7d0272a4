//! An assignment: an algorithm and the connections that are to use it.

use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use zerocopy::FromZeros as _;

use super::ASKED;
use crate::bounded::Bounded;
use crate::error::Error;
use crate::raw::{AssignmentValue, name_field};

/// The connections, and the algorithm that they are to use.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// The algorithm's name.
    pub algorithm: &'a str,
    /// The connections.
    pub covered: Covered<'a>,
    /// The target of `wakeai_av`, in payload bytes per second; 0 stands for no target.
    pub bytes_per_second: u64,
    /// If given, only connections to this destination are covered.
    pub destination: Option<Destination>,
    /// The id of the process that moves the connections. Connections that another process has moved
    /// are not moved back.
    pub owner: u32,
}

/// The connections that an assignment covers.
#[derive(Clone, Copy, Debug)]
pub enum Covered<'a> {
    /// Connections that get the algorithm by default, from a sysctl or a route, in the calling
    /// thread's network namespace. They have the algorithm already, so they only get a target rate.
    /// At the end they are moved to another algorithm.
    Defaults {
        /// The algorithm that these connections would have had; `None` stands for the default of
        /// the namespace.
        before: Option<&'a str>,
    },
    /// New connections of the processes in a control group, in any network namespace.
    Cgroup(BorrowedFd<'a>),
    /// Existing connections, in the calling thread's network namespace.
    Existing,
    /// Connections that one process has moved, and that are to be moved back.
    Moved {
        /// Whether connections in all network namespaces are covered, or only those in the calling
        /// thread's.
        everywhere: bool,
    },
}

/// A destination of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The network's address.
    pub address: IpAddr,
    /// The length of the prefix in bits.
    pub length: u8,
    /// The remote port; `None` stands for any port.
    pub port: Option<u16>,
}

impl Covered<'_> {
    /// Whether connections are moved one by one.
    pub(super) fn are_moved(self) -> bool {
        !matches!(self, Self::Defaults { .. })
    }

    /// Whether connections in all network namespaces are covered.
    pub(super) fn are_everywhere(self) -> bool {
        matches!(self, Self::Cgroup(_) | Self::Moved { everywhere: true })
    }
}

impl Assignment<'_> {
    pub(super) fn to_raw(self, netns_cookie: u64) -> Result<AssignmentValue, Error> {
        let algorithm = name_field(ASKED, self.algorithm)?;
        let (to, to_mask) = self.destination.map(Destination::masked).unwrap_or_default();
        Ok(AssignmentValue {
            netns_cookie: if self.covered.are_everywhere() { 0 } else { netns_cookie },
            rate: self.bytes_per_second,
            to: zerocopy::transmute!(to),
            to_mask: zerocopy::transmute!(to_mask),
            to_port: self.destination.and_then(|destination| destination.port).unwrap_or(0),
            owner: self.owner,
            by_default: u8::from(!self.covered.are_moved()),
            // Listening sockets have to be moved only off our algorithms, which may be unloaded
            // while the sockets still exist.
            listeners: u8::from(Bounded::named(self.algorithm).is_some()),
            algorithm,
            ..AssignmentValue::new_zeroed()
        })
    }
}

impl Destination {
    /// The network and the mask of its prefix, as IPv6 addresses. An IPv4 address becomes an
    /// IPv4-mapped one (RFC 4291 section 2.5.5.2).
    fn masked(self) -> ([u8; 16], [u8; 16]) {
        let (address, bits) = match self.address {
            IpAddr::V4(address) => (address.to_ipv6_mapped(), 96 + u32::from(self.length)),
            IpAddr::V6(address) => (address, u32::from(self.length)),
        };
        let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
        ((address.to_bits() & mask).to_be_bytes(), mask.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(address: &str, length: u8) -> ([u8; 16], [u8; 16]) {
        Destination { address: address.parse().unwrap(), length, port: None }.masked()
    }

    #[test]
    fn a_network_is_its_prefix_and_an_ipv4_one_never_holds_an_ipv6_address() {
        let (to, mask) = masked("192.0.2.0", 24);
        assert_eq!(to, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 0]);
        assert_eq!(mask[..15], [0xff; 15]);
        assert_eq!(mask[15], 0);
        assert_eq!(masked("0.0.0.0", 0).1[..12], [0xff; 12]);
        assert_eq!(masked("::", 0), ([0; 16], [0; 16]));
        assert_eq!(masked("2001:db8::1", 128).1, [0xff; 16]);
    }

    #[test]
    fn a_name_that_the_kernel_cannot_hold_is_refused() {
        let assignment = Assignment {
            algorithm: "sixteen-letters-",
            covered: Covered::Existing,
            bytes_per_second: 0,
            destination: None,
            owner: 1,
        };
        assert!(assignment.to_raw(0).is_err());
        assert_eq!(
            Assignment { algorithm: "bbr", ..assignment }.to_raw(7).unwrap().netns_cookie,
            7
        );
    }
}
