//! Access lists: the sources whose clients are served, and the destinations that these may reach.

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
    /// The text is not in CIDR notation.
    #[error("found {0:?}, expected an address or a network such as \"192.168.0.0/16\"")]
    Syntax(String),
    /// Bits beyond the prefix are set.
    #[error("found {found:?}, with bits set beyond the prefix; did you mean {meant}?")]
    HostBits {
        /// The text that was found.
        found: String,
        /// The network to which the address in the text belongs.
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

    /// Private networks (RFC 1918, RFC 4193). By default they are the allowed destinations.
    pub const PRIVATE: [Self; 4] = [
        Self::v4([10, 0, 0, 0], 8),
        Self::v4([172, 16, 0, 0], 12),
        Self::v4([192, 168, 0, 0], 16),
        Self::v6(0xfc00, 7),
    ];

    /// Link-local networks (RFC 3927, RFC 4291). By default these and [`Self::PRIVATE`] are the
    /// allowed sources.
    pub const LINK_LOCAL: [Self; 2] = [Self::v4([169, 254, 0, 0], 16), Self::v6(0xfe80, 10)];

    /// Special networks (RFC 6890): "this network" and the unspecified address, loopback,
    /// link-local addresses (with 169.254.169.254, where clouds serve their machines' metadata),
    /// multicast and the limited broadcast address. A wider network in a list of destinations does
    /// not include them.
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

    /// The special networks of IPv4 or of IPv6. For IPv6 they include the networks of addresses
    /// that contain a special IPv4 address (see [`EMBEDDINGS`]).
    pub(crate) fn special(v4: bool) -> impl Iterator<Item = Self> {
        let embedded = EMBEDDINGS.iter().flat_map(move |embedding| {
            let of_v4 = Self::SPECIAL.iter().filter(move |special| special.is_v4() && !v4);
            of_v4.filter_map(|special| embedding.network(*special))
        });
        Self::SPECIAL.into_iter().filter(move |special| special.is_v4() == v4).chain(embedded)
    }

    /// Whether `address` lies in the network. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.is_v4() == address.is_ipv4() && masked(address, self.length) == self.address
    }

    /// Whether all of `other` lies in the network.
    pub(crate) fn includes(self, other: Self) -> bool {
        self.length <= other.length && self.contains(other.address)
    }

    /// Whether every address of the network's family (IPv4 or IPv6) lies in the network.
    pub(crate) fn is_everything(self) -> bool {
        self.length == 0
    }

    /// The network's address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// The length of the prefix in bits.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Whether it is a network of IPv4.
    pub fn is_v4(self) -> bool {
        self.address.is_ipv4()
    }

    /// Returns the network itself, if it may be listed as a source. Private and link-local networks
    /// may always be listed.
    ///
    /// # Errors
    ///
    /// [`NetworkError::OpenRelay`] if the network covers large parts of the Internet.
    pub fn as_source(self) -> Result<Self, NetworkError> {
        let shortest = if self.is_v4() { 8 } else { 16 };
        let mut known = Self::PRIVATE.iter().chain(&Self::LINK_LOCAL);
        let known = known.any(|local| local.includes(self));
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

/// A form of IPv6 address that contains an IPv4 address. A gateway delivers its packets to that
/// IPv4 address.
struct Embedding {
    prefix: Ipv6Addr,
    length: u8,
    /// The number of bits after the IPv4 address.
    after: u8,
}

const fn embedding(first: [u16; 6], length: u8, after: u8) -> Embedding {
    let prefix = Ipv6Addr::new(first[0], first[1], first[2], first[3], first[4], first[5], 0, 0);
    Embedding { prefix, length, after }
}

/// All forms but the IPv4-mapped address (`::ffff:0:0/96`), which counts as an IPv4 address
/// everywhere.
const EMBEDDINGS: [Embedding; 5] = [
    embedding([0, 0, 0, 0, 0, 0], 96, 0), // IPv4-compatible: RFC 4291 section 2.5.5.1
    embedding([0, 0, 0, 0, 0xffff, 0], 96, 0), // IPv4-translated: RFC 2765 section 2.1
    embedding([0x64, 0xff9b, 0, 0, 0, 0], 96, 0), // NAT64: RFC 6052 section 2.1
    embedding([0x64, 0xff9b, 1, 0, 0, 0], 48, 0), // local NAT64: RFC 8215; IPv4 in the last 32 bits
    embedding([0x2002, 0, 0, 0, 0, 0], 16, 80), // 6to4: RFC 3056 section 2
];

impl Embedding {
    fn inside(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let prefix = Network { address: self.prefix.into(), length: self.length };
        let inside = (address.to_bits() >> self.after) as u32;
        prefix.contains(address.into()).then(|| Ipv4Addr::from_bits(inside))
    }

    /// The network of the IPv6 addresses that contain an address of the IPv4 network `network`;
    /// `None` if they do not form one network.
    fn network(&self, network: Network) -> Option<Network> {
        let IpAddr::V4(address) = network.address else { return None };
        let bits = self.prefix.to_bits() | (u128::from(address.to_bits()) << self.after);
        let length = self.length + network.length;
        let is_one = self.length + self.after + 32 == 128;
        is_one.then(|| Network { address: Ipv6Addr::from_bits(bits).into(), length })
    }
}

/// The address itself, and the IPv4 addresses that it contains.
fn forms(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let address = address.to_canonical();
    let embedded = EMBEDDINGS.iter().filter_map(move |embedding| match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => embedding.inside(address).map(IpAddr::V4),
    });
    std::iter::once(address).chain(embedded)
}

/// The two access lists.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The sources that are served. If the list is empty, these are this machine itself,
    /// [`Network::PRIVATE`] and [`Network::LINK_LOCAL`].
    pub from: Vec<Network>,
    /// The destinations that clients may reach. If the list is empty, these are
    /// [`Network::PRIVATE`], and this machine for its own clients.
    pub to: Vec<Network>,
}

impl Access {
    /// The networks whose clients are served. This machine itself is served, too, by default.
    pub(crate) fn sources(&self) -> Vec<Network> {
        let default = || Network::PRIVATE.iter().chain(&Network::LINK_LOCAL).copied().collect();
        if self.from.is_empty() { default() } else { self.from.clone() }
    }

    /// The networks that may be reached. Special addresses in them may not be reached.
    pub(crate) fn destinations(&self) -> &[Network] {
        if self.to.is_empty() { &Network::PRIVATE } else { &self.to }
    }

    /// Whether clients at `source` are served.
    pub fn allows_source(&self, source: IpAddr) -> bool {
        (self.from.is_empty() && is_loopback(source)) || within(&self.sources(), source)
    }

    /// Whether a client at `source` may connect to `destination`. `is_own` says whether an address
    /// is this machine's.
    ///
    /// Services that listen only on this machine or on its link often trust every client there. So
    /// [`Network::SPECIAL`] and the machine's own addresses may be reached only if they are listed
    /// by themselves; this includes IPv6 addresses that contain them. By default this machine may
    /// reach itself.
    pub fn allows(
        &self,
        source: IpAddr,
        destination: IpAddr,
        is_own: impl Fn(IpAddr) -> bool,
    ) -> bool {
        let destination = destination.to_canonical();
        let is_own = |address| is_loopback(address) || is_own(address);
        if self.to.is_empty() && is_own(destination) {
            return is_own(source.to_canonical());
        }
        let itself =
            |network: &Network| network.contains(destination) && is_listed_by_itself(*network);
        let special = |form| within(&Network::SPECIAL, form) || is_own(form);
        self.to.iter().any(itself)
            || (within(self.destinations(), destination) && !forms(destination).any(special))
    }
}

/// Whether the network is one address, or consists of special addresses only.
pub(crate) fn is_listed_by_itself(network: Network) -> bool {
    let longest = if network.is_v4() { 32 } else { 128 };
    network.length == longest
        || Network::special(network.is_v4()).any(|special| special.includes(network))
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

    const OWN: [&str; 2] = ["10.0.0.5", "2001:db8::5"];

    fn allows(to: &[&str], source: &str, destination: &str) -> bool {
        let to = to.iter().map(|text| text.parse().unwrap()).collect();
        let access = Access { to, ..Access::default() };
        let own = OWN.map(ip);
        access.allows(ip(source), ip(destination), |address| own.contains(&address))
    }

    #[test]
    fn only_local_networks_may_come_and_private_ones_be_gone_to_unless_told() {
        let access = Access::default();
        for local in ["127.0.0.1", "::1", "10.1.2.3", "172.31.0.1", "192.168.9.9", "169.254.1.1"] {
            assert!(access.allows_source(ip(local)), "{local}");
        }
        for local in ["fd12::1", "fe80::1", "::ffff:192.168.0.1"] {
            assert!(access.allows_source(ip(local)), "{local}");
        }
        for private in ["fd12::1", "10.1.2.3", "172.31.0.1", "::ffff:192.168.0.1"] {
            assert!(allows(&[], "10.0.0.1", private), "{private}");
        }
        for other in ["169.254.1.1", "fe80::1", "64:ff9b::a00:5", "2002:a9fe:a9fe::", "224.0.0.1"] {
            assert!(!allows(&[], "10.0.0.1", other), "{other}");
        }
        for public in ["8.8.8.8", "172.32.0.1", "2001:db8::1", "::ffff:8.8.8.8", "0.0.0.0", "::"] {
            assert!(!access.allows_source(ip(public)), "{public}");
            assert!(!allows(&[], "10.0.0.1", public), "{public}");
        }
    }

    #[test]
    fn by_default_only_this_machine_reaches_itself() {
        for own in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", OWN[0], OWN[1]] {
            assert!(allows(&[], "127.0.0.1", own), "{own}");
            assert!(allows(&[], OWN[0], own), "{own}");
            assert!(!allows(&[], "192.168.1.2", own), "{own}");
        }
    }

    #[test]
    fn a_list_replaces_the_default() {
        assert!(allows(&["192.0.2.0/24"], "10.0.0.1", "192.0.2.77"));
        assert!(!allows(&["192.0.2.0/24"], "10.0.0.1", "10.0.0.2"));
        for everywhere in ["8.8.8.8", "2001:db8::1", "64:ff9b::808:808", "2002:808:808::1"] {
            assert!(allows(&["0.0.0.0/0", "::/0"], "10.0.0.1", everywhere), "{everywhere}");
        }
    }

    #[test]
    fn special_and_own_addresses_are_reached_where_they_are_listed_by_themselves() {
        let all = ["0.0.0.0/0", "::/0"];
        for (address, listed) in [
            ("0.0.0.0", "0.0.0.0/8"),
            ("127.0.0.1", "127.0.0.0/8"),
            ("127.0.0.1", "127.0.0.1"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            ("169.254.169.254", "169.254.0.0/16"),
            ("239.1.1.1", "239.0.0.0/8"),
            ("255.255.255.255", "255.255.255.255"),
            ("10.0.0.5", "10.0.0.5"),
            ("2001:db8::5", "2001:db8::5"),
            ("::1", "::1"),
            ("::", "::"),
            ("fe80::1", "fe80::/64"),
            ("ff02::1", "ff00::/8"),
            ("::127.0.0.1", "::127.0.0.0/104"),
            ("::ffff:0:127.0.0.1", "::ffff:0:127.0.0.1"),
            ("64:ff9b::7f00:1", "64:ff9b::7f00:0/104"),
            ("64:ff9b::a9fe:a9fe", "64:ff9b::a9fe:a9fe"),
            ("64:ff9b::a00:5", "64:ff9b::a00:5"),
            ("64:ff9b:1::7f00:1", "64:ff9b:1::7f00:1"),
            ("2002:7f00:1::", "2002:7f00:1::/48"),
            ("2002:a00:5:1::7", "2002:a00:5:1::7"),
        ] {
            assert!(!allows(&all, "127.0.0.1", address), "{address}");
            assert!(!allows(&["8000::/1", "::/1", "0.0.0.0/1"], "10.0.0.1", address), "{address}");
            assert!(allows(&[all[0], listed, all[1]], "10.0.0.1", address), "{address}");
        }
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
