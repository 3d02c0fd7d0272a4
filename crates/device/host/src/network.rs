//! Networks in CIDR notation, and lists of the private, link-local and special networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network in CIDR notation: `192.168.0.0/16`, `fd00::/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The address of the network: no bits beyond the prefix are set.
    address: IpAddr,
    length: u8,
}

/// Why a text is refused as a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// Not CIDR notation.
    #[error("found {0:?}, expected an address or a network such as \"192.168.0.0/16\"")]
    Syntax(String),
    /// Bits beyond the prefix are set.
    #[error("found {found:?}, with bits set beyond the prefix; did you mean {meant}?")]
    HostBits {
        /// The text that was found.
        found: String,
        /// The network around it.
        meant: Network,
    },
}

impl Network {
    /// The IPv4 network with this address and prefix length.
    const fn v4(octets: [u8; 4], length: u8) -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::from_octets(octets)), length }
    }

    /// The IPv6 network whose address begins with these 16 bits, with this prefix length.
    const fn v6(first: u16, length: u8) -> Self {
        let address = Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0);
        Self { address: IpAddr::V6(address), length }
    }

    /// Private networks (RFC 1918, RFC 4193): the destinations that are allowed by default.
    pub const PRIVATE: [Self; 4] = [
        Self::v4([10, 0, 0, 0], 8),
        Self::v4([172, 16, 0, 0], 12),
        Self::v4([192, 168, 0, 0], 16),
        Self::v6(0xfc00, 7),
    ];

    /// Link-local networks (RFC 3927, RFC 4291): with the private ones, the sources that are allowed by
    /// default.
    pub const LINK_LOCAL: [Self; 2] = [Self::v4([169, 254, 0, 0], 16), Self::v6(0xfe80, 10)];

    /// Special destinations (RFC 6890): "this network" and the unspecified address, loopback, link-local
    /// addresses (among them 169.254.169.254, where clouds serve the metadata of a machine), multicast and
    /// the limited broadcast address. A list allows them only if it has an entry for exactly these
    /// addresses; a wider network such as `0.0.0.0/0` does not allow them.
    pub const SPECIAL: [Self; 9] = [
        Self::v4([0, 0, 0, 0], 8),
        Self::v4([127, 0, 0, 0], 8),
        Self::LINK_LOCAL[0],
        Self::v4([224, 0, 0, 0], 4),
        Self::v4([255, 255, 255, 255], 32),
        Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), length: 128 },
        Self { address: IpAddr::V6(Ipv6Addr::LOCALHOST), length: 128 },
        Self::LINK_LOCAL[1],
        Self::v6(0xff00, 8),
    ];

    /// Whether `address` lies in the network. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.is_v4() == address.is_ipv4() && masked(address, self.length) == self.address
    }

    /// Whether all of `other` lies in the network.
    pub fn includes(self, other: Self) -> bool {
        self.length <= other.length && self.contains(other.address)
    }

    /// Whether every address of the family lies in the network.
    pub fn is_everything(self) -> bool {
        self.length == 0
    }

    /// The network that contains `address` and has a prefix of `length` bits. Panics if the address has fewer
    /// bits.
    pub fn around(address: IpAddr, length: u8) -> Self {
        assert!(length <= if address.is_ipv4() { 32 } else { 128 }, "/{length} of {address}");
        Self { address: masked(address, length), length }
    }

    /// The network's address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// The length of its prefix in bits.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Whether it is a network of IPv4.
    pub fn is_v4(self) -> bool {
        self.address.is_ipv4()
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError::Syntax(text.to_owned());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(longest), str::parse).map_err(|_| wrong())?;
        if length > longest {
            return Err(wrong());
        }
        let network = Self { address: masked(address, length), length };
        if network.address == address {
            return Ok(network);
        }
        Err(NetworkError::HostBits { found: text.to_owned(), meant: network })
    }
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_with_what_was_found() {
        for text in ["", "10.0.0.0/33", "10.0.0.0/", "fd00::/129", "ten", "10.0.0.0/-1"] {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
        let error = "10.0.0.1/8".parse::<Network>().unwrap_err().to_string();
        assert!(error.contains("10.0.0.0/8"), "{error}");
    }
}
