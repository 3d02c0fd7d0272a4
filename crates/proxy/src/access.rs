//! Who may come, and where they may go.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network in CIDR notation: `192.168.0.0/16`, `fd00::/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

/// A text that is no network, or one that may not be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// Not CIDR notation.
    #[error("found {0:?}, expected an address or a network such as \"192.168.0.0/16\"")]
    Syntax(String),
    /// Bits beyond the prefix are set.
    #[error("found {found:?}, whose address lies inside the network; meant is {meant}?")]
    HostBits {
        /// What was found.
        found: String,
        /// The network around it.
        meant: Network,
    },
    /// A source that would make the proxy an open relay.
    #[error(
        "{0} is too wide a source: the proxy would be an open relay; name your own networks, /8 or \
         longer (IPv4), /16 or longer (IPv6)"
    )]
    OpenRelay(Network),
}

impl Network {
    const fn v4(octets: [u8; 4], length: u8) -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::from_octets(octets)), length }
    }

    const fn v6(first: u16, length: u8) -> Self {
        let address = Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0);
        Self { address: IpAddr::V6(address), length }
    }

    /// Private (RFC 1918, RFC 4193) and link-local networks (RFC 3927, RFC 4291).
    pub const LOCAL: [Self; 6] = [
        Self::v4([10, 0, 0, 0], 8),
        Self::v4([172, 16, 0, 0], 12),
        Self::v4([192, 168, 0, 0], 16),
        Self::v4([169, 254, 0, 0], 16),
        Self::v6(0xfc00, 7),
        Self::v6(0xfe80, 10),
    ];

    /// Whether `address` lies inside. An IPv4 address in an IPv6 one counts as IPv4.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            _ => false,
        }
    }

    /// Whether all of `other` lies inside.
    pub(crate) fn includes(self, other: Self) -> bool {
        self.length <= other.length && self.contains(other.address)
    }

    /// Whether every address of its family lies inside.
    pub(crate) fn is_everything(self) -> bool {
        self.length == 0
    }

    /// Its address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// The length of its prefix in bits.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Whether it is one of IPv4.
    pub fn is_v4(self) -> bool {
        self.address.is_ipv4()
    }

    /// The same network where it may be a source of requests.
    ///
    /// # Errors
    ///
    /// [`NetworkError::OpenRelay`] where it takes in large parts of the Internet.
    pub fn as_source(self) -> Result<Self, NetworkError> {
        let shortest = if self.is_v4() { 8 } else { 16 };
        let known = Self::LOCAL.iter().any(|local| local.includes(self));
        if known || self.length >= shortest { Ok(self) } else { Err(NetworkError::OpenRelay(self)) }
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

/// The two lists.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Sources that may ask; where empty, this machine itself and [`Network::LOCAL`].
    pub from: Vec<Network>,
    /// Destinations; where empty, [`Network::LOCAL`], and this machine for itself.
    pub to: Vec<Network>,
}

impl Access {
    /// Whether a client at `source` may ask for anything.
    pub fn allows_source(&self, source: IpAddr) -> bool {
        if self.from.is_empty() {
            return is_loopback(source) || within(&Network::LOCAL, source);
        }
        within(&self.from, source)
    }

    /// Whether a client at `source` may go to `destination`. What listens on this machine's
    /// loopback addresses trusts the machine, not the network: by default only it may go there.
    pub fn allows(&self, source: IpAddr, destination: IpAddr) -> bool {
        if self.to.is_empty() {
            return within(&Network::LOCAL, destination)
                || (is_loopback(destination) && is_loopback(source));
        }
        within(&self.to, destination)
    }
}

fn within(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_local_networks_may_come_and_be_gone_to_unless_told() {
        let access = Access::default();
        for local in ["127.0.0.1", "::1", "10.1.2.3", "172.31.0.1", "192.168.9.9", "169.254.1.1"] {
            assert!(access.allows_source(ip(local)), "{local}");
        }
        for local in ["fd12::1", "fe80::1", "::ffff:192.168.0.1"] {
            assert!(access.allows_source(ip(local)), "{local}");
            assert!(access.allows(ip("10.0.0.1"), ip(local)), "{local}");
        }
        for public in ["8.8.8.8", "172.32.0.1", "2001:db8::1", "::ffff:8.8.8.8", "0.0.0.0", "::"] {
            assert!(!access.allows_source(ip(public)), "{public}");
            assert!(!access.allows(ip("10.0.0.1"), ip(public)), "{public}");
        }
    }

    #[test]
    fn by_default_only_this_machine_reaches_its_loopback() {
        let access = Access::default();
        for loopback in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(access.allows(ip("127.0.0.1"), ip(loopback)));
            assert!(!access.allows(ip("192.168.1.2"), ip(loopback)), "{loopback}");
        }
    }

    #[test]
    fn a_list_replaces_the_default() {
        let to = vec!["192.0.2.0/24".parse().unwrap()];
        let access = Access { to, ..Access::default() };
        assert!(access.allows(ip("10.0.0.1"), ip("192.0.2.77")));
        assert!(!access.allows(ip("10.0.0.1"), ip("10.0.0.2")));
        let everywhere = vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
        let access = Access { to: everywhere, ..Access::default() };
        assert!(access.allows(ip("10.0.0.1"), ip("8.8.8.8")));
        assert!(access.allows(ip("10.0.0.1"), ip("2001:db8::1")));
    }

    #[test]
    fn a_source_that_would_open_the_relay_is_refused() {
        for wide in ["0.0.0.0/0", "8.0.0.0/7", "::/0", "2000::/3"] {
            let network: Network = wide.parse().unwrap();
            assert!(network.as_source().unwrap_err().to_string().contains("open relay"), "{wide}");
        }
        for sound in ["10.0.0.0/8", "203.0.113.0/24", "fc00::/7", "2001:db8::/32", "1.2.3.4"] {
            assert!(sound.parse::<Network>().unwrap().as_source().is_ok(), "{sound}");
        }
    }

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
