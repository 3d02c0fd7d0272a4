//! Access lists: the sources whose clients are served, and the destinations that these clients may
//! reach.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use clap::Args;
use wakeai_host::Network;

/// Reads a network that may be a source of requests. Private and link-local networks always may.
fn source(text: &str) -> Result<Network, Box<dyn Error + Send + Sync>> {
    let network: Network = text.parse()?;
    let shortest = if network.is_v4() { 8 } else { 16 };
    let mut known = Network::PRIVATE.iter().chain(&Network::LINK_LOCAL);
    let known = known.any(|local| local.includes(network));
    if known || network.length() >= shortest {
        return Ok(network);
    }
    Err(format!(
        "{network} is too wide a source: the proxy would be an open relay; name your own networks, /8 or longer \
         (IPv4), /16 or longer (IPv6)"
    )
    .into())
}

/// The special networks of IPv4 or of IPv6. Both have the networks of [`Network::SPECIAL`] of their
/// address family. IPv6 also has the networks of [`EMBEDDINGS`] that contain a special IPv4
/// network.
pub(crate) fn special(v4: bool) -> impl Iterator<Item = Network> {
    let embedded = EMBEDDINGS.iter().flat_map(move |embedding| {
        let of_v4 = Network::SPECIAL.iter().filter(move |special| special.is_v4() && !v4);
        of_v4.filter_map(|special| embedding.network(*special))
    });
    Network::SPECIAL.into_iter().filter(move |special| special.is_v4() == v4).chain(embedded)
}

/// A form of IPv6 address that contains an IPv4 address. Packets to it are finally delivered to
/// that IPv4 address.
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

/// All forms except the IPv4-mapped one (`::ffff:0:0/96`), which counts as IPv4 everywhere.
const EMBEDDINGS: [Embedding; 5] = [
    embedding([0, 0, 0, 0, 0, 0], 96, 0), // IPv4-compatible: RFC 4291 section 2.5.5.1
    embedding([0, 0, 0, 0, 0xffff, 0], 96, 0), // IPv4-translated: RFC 2765 section 2.1
    embedding([0x64, 0xff9b, 0, 0, 0, 0], 96, 0), // NAT64: RFC 6052 section 2.1
    embedding([0x64, 0xff9b, 1, 0, 0, 0], 48, 0), // NAT64 of a site: RFC 8215, with its /96
    embedding([0x2002, 0, 0, 0, 0, 0], 16, 80), // 6to4: RFC 3056 section 2
];

impl Embedding {
    fn inside(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let prefix = Network::around(self.prefix.into(), self.length);
        let inside = (address.to_bits() >> self.after) as u32;
        prefix.contains(address.into()).then(|| Ipv4Addr::from_bits(inside))
    }

    /// The network of the IPv6 addresses that contain an address of the IPv4 network `network`;
    /// `None` if they do not form one network.
    fn network(&self, network: Network) -> Option<Network> {
        let IpAddr::V4(address) = network.address() else { return None };
        let bits = self.prefix.to_bits() | (u128::from(address.to_bits()) << self.after);
        let length = self.length + network.length();
        let is_one = self.length + self.after + 32 == 128;
        is_one.then(|| Network::around(Ipv6Addr::from_bits(bits).into(), length))
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
#[derive(Clone, Debug, Default, Args)]
pub struct Access {
    /// Networks whose clients are served [default: this machine, private and link-local networks]
    #[arg(long = "allow-from", value_name = "NETWORK", value_delimiter = ',', value_parser = source)]
    pub from: Vec<Network>,
    /// Networks that clients may connect to [default: private networks, and this machine for its own
    /// clients]. A network such as 0.0.0.0/0 does not allow loopback, unspecified, link-local or multicast
    /// addresses, nor those of this machine: list them explicitly
    #[arg(long = "allow-to", value_name = "NETWORK", value_delimiter = ',')]
    pub to: Vec<Network>,
}

impl Access {
    /// The networks whose clients are served. This machine itself is served, too, by default.
    pub(crate) fn sources(&self) -> Vec<Network> {
        let default = || Network::PRIVATE.iter().chain(&Network::LINK_LOCAL).copied().collect();
        if self.from.is_empty() { default() } else { self.from.clone() }
    }

    /// The networks that clients may reach, except the special addresses in these networks.
    pub(crate) fn destinations(&self) -> &[Network] {
        if self.to.is_empty() { &Network::PRIVATE } else { &self.to }
    }

    /// Whether clients at `source` are served.
    pub fn allows_source(&self, source: IpAddr) -> bool {
        (self.from.is_empty() && is_loopback(source)) || within(&self.sources(), source)
    }

    /// Whether a client at `source` may connect to `destination`. `is_own` returns whether an
    /// address is this machine's.
    ///
    /// Services that listen only on this machine or on its link often trust every client there.
    /// Clients therefore reach [`Network::SPECIAL`] and the machine's own addresses, in every form
    /// of IPv6, only if the list has them as entries of their own. By default a client on this
    /// machine reaches this machine.
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
    network.length() == longest || special(network.is_v4()).any(|special| special.includes(network))
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
            assert!(source(wide).unwrap_err().to_string().contains("open relay"), "{wide}");
        }
        for sound in ["10.0.0.0/8", "203.0.113.0/24", "fc00::/7", "2001:db8::/32", "1.2.3.4"] {
            assert!(source(sound).is_ok(), "{sound}");
        }
    }
}
