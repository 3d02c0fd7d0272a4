//! The transparent mode. TPROXY rules of nftables intercept connections, and a route delivers their
//! packets on this machine. Rules and route exist only in the proxy's network namespace. The
//! proxy's lease, the record of its changes, lists them.
//!
//! The rules apply to a packet that opens a connection (SYN alone) from an allowed source to an
//! allowed destination, and pass it to the proxy's listener. The accepted socket then has the
//! destination's address. Later packets of the connection are recognised because they belong to a
//! transparent socket. So connections that are older than the proxy, and connections that the lists
//! do not cover, are forwarded as if there were no proxy. The packets of programs on this machine
//! are first routed over `lo`, where the rules see them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use wakeai_host::{Lease, Network, add_local_route, add_packet_rules, has_ipv6};

use crate::access::{Access, is_listed_by_itself, special};
use crate::config::{Config, Intercepted};
use crate::error::ProxyError;
use crate::listen::{Listener, listen};

/// The name of the nftables table, which is of the family inet.
pub const TABLE: &str = "wakeai_proxy";
/// The mark of packets that are delivered on this machine.
pub(crate) const ROUTE_MARK: u32 = 0x7761_6b65;
/// The mark of packets that the proxy itself sends to destinations, so that they are not intercepted again.
pub(crate) const OWN_MARK: u32 = 0x7761_6b66;
/// The routing table for packets with [`ROUTE_MARK`].
pub(crate) const ROUTE_TABLE: u32 = 0x776b;

/// Opens the listeners and makes the rules.
///
/// # Errors
///
/// A privilege is missing, another transparent proxy runs in this namespace, or `nft` or `ip`
/// fails.
pub(crate) fn intercept(lease: &Lease, config: &Config) -> Result<Vec<Listener>, ProxyError> {
    let mut listeners = Vec::new();
    for whose in [Intercepted::Forwarded, Intercepted::Own] {
        if config.intercepts(whose) {
            listeners.push(open(Ipv4Addr::LOCALHOST.into(), whose)?);
            if has_ipv6() {
                listeners.push(open(Ipv6Addr::LOCALHOST.into(), whose)?);
            }
        }
    }
    // The route is made first, because packets that match the rules would be lost without it. Only
    // one process can hold the route. A second proxy in this namespace therefore fails here, before
    // it has changed anything.
    add_local_route(lease, ROUTE_MARK, ROUTE_TABLE)?;
    add_packet_rules(lease, TABLE, &rules(&config.access, &config.in_interfaces, &listeners))?;
    Ok(listeners)
}

/// Whether this process may give a socket a foreign address (`IP_TRANSPARENT`).
pub(crate) fn is_privileged() -> bool {
    let tried = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .and_then(|socket| socket.set_ip_transparent_v4(true));
    !tried.is_err_and(|error| error.raw_os_error() == Some(Errno::EPERM as i32))
}

/// Opens a listener on a loopback address, so that connections reach it only through the rules.
fn open(address: IpAddr, whose: Intercepted) -> Result<Listener, ProxyError> {
    listen(SocketAddr::new(address, 0), Some(whose), |socket| match address {
        IpAddr::V4(_) => socket.set_ip_transparent_v4(true),
        IpAddr::V6(_) => {
            socket.set_only_v6(true)?;
            socket.set_ip_transparent_v6(true)
        }
    })
}

/// The script for nft(8). It changes nothing if the table already exists.
fn rules(access: &Access, in_interfaces: &[String], listeners: &[Listener]) -> String {
    let (mut sent_round, mut forwarded, mut output) = (Vec::new(), Vec::new(), Vec::new());
    let names: Vec<_> = in_interfaces.iter().map(|name| format!("\"{name}\"")).collect();
    let comes_in = match &names[..] {
        [] => String::new(),
        names => format!("iifname {{ {} }} ", names.join(", ")),
    };
    for listener in listeners {
        let v4 = listener.address.is_ipv4();
        let (family, nfproto) = if v4 { ("ip", "ipv4") } else { ("ip6", "ipv6") };
        let give = format!("tproxy {family} to {}", listener.address);
        let to = destinations(family, access, v4);
        match listener.intercepted {
            Some(Intercepted::Forwarded) => {
                let Some(from) = matching(family, "saddr", &access.sources(), v4) else { continue };
                forwarded.extend(to.iter().map(|to| {
                    format!(
                        "{comes_in}meta nfproto {nfproto} {OPENS} {from} {to} {give} \
                         meta mark set {ROUTE_MARK} accept"
                    )
                }));
            }
            Some(Intercepted::Own) if !to.is_empty() => {
                sent_round.push(format!(
                    "iifname \"lo\" meta mark {ROUTE_MARK} meta nfproto {nfproto} {OPENS} {give} \
                     accept"
                ));
                output.extend(to.iter().map(|to| {
                    format!(
                        "meta nfproto {nfproto} {OPENS} {to} \
                         ct mark set {ROUTE_MARK} meta mark set {ROUTE_MARK}"
                    )
                }));
            }
            _ => {}
        }
    }
    let mut prerouting = lines(&["type filter hook prerouting priority mangle", NOT_TCP]);
    prerouting.extend(sent_round);
    prerouting.extend(lines(&["iifname \"lo\" return", "fib daddr type local return"]));
    prerouting.extend(forwarded);
    prerouting.push(format!("socket transparent 1 meta mark set {ROUTE_MARK} accept"));
    let mut chains = vec![chain("prerouting", &prerouting)];
    if !output.is_empty() {
        let mut rules = lines(&["type route hook output priority mangle", NOT_TCP]);
        rules.push(format!("meta mark {OWN_MARK} return"));
        rules.extend(lines(&["ct direction reply return", "fib daddr type local return"]));
        rules.push(format!("ct mark {ROUTE_MARK} meta mark set {ROUTE_MARK} return"));
        rules.extend(output);
        chains.push(chain("output", &rules));
    }
    format!("create table inet {TABLE}\ntable inet {TABLE} {{\n{}}}\n", chains.concat())
}

/// A packet that opens a connection.
const OPENS: &str = "tcp flags & (fin | syn | rst | ack) == syn";
/// The first rule of every chain.
const NOT_TCP: &str = "meta l4proto != tcp return";

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().copied().map(str::to_owned).collect()
}

fn chain(name: &str, rules: &[String]) -> String {
    format!("chain {name} {{\n{}\n}}\n", rules.join("\n"))
}

/// The conditions for an allowed destination. A packet is intercepted if it meets one of them.
/// Special addresses are allowed only if they are listed by themselves ([`Access::allows`]).
fn destinations(family: &str, access: &Access, v4: bool) -> Vec<String> {
    let all = access.destinations().iter().copied();
    let (named, others): (Vec<_>, Vec<_>) = all.partition(|network| is_listed_by_itself(*network));
    let special = set(&widest(special(v4), v4));
    let others = matching(family, "daddr", &others, v4)
        .map(|others| format!("{others} {family} daddr != {special}"));
    matching(family, "daddr", &named, v4).into_iter().chain(others).collect()
}

/// The condition that a packet's address lies in one of the networks. It is `None` if no network is
/// of the address family.
fn matching(family: &str, field: &str, networks: &[Network], v4: bool) -> Option<String> {
    let widest = widest(networks.iter().copied(), v4);
    if widest.iter().any(|network| network.is_everything()) {
        return Some(String::new());
    }
    (!widest.is_empty()).then(|| format!("{family} {field} {}", set(&widest)))
}

/// The networks of the address family, without those that lie in another network of the list. nft
/// refuses sets with overlapping networks.
fn widest(networks: impl Iterator<Item = Network>, v4: bool) -> Vec<Network> {
    let mut widest: Vec<Network> = Vec::new();
    for network in networks.filter(|network| network.is_v4() == v4) {
        if !widest.iter().any(|other| other.includes(network)) {
            widest.retain(|other| !network.includes(*other));
            widest.push(network);
        }
    }
    widest
}

fn set(networks: &[Network]) -> String {
    let list: Vec<_> = networks.iter().map(ToString::to_string).collect();
    format!("{{ {} }}", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_names_the_widest_networks_of_its_family_once() {
        let read = |list: &[&str]| -> Vec<Network> {
            list.iter().map(|text| text.parse().unwrap()).collect()
        };
        let some = read(&["10.1.0.0/16", "10.0.0.0/8", "192.0.2.1", "fd00::/8", "192.0.2.1"]);
        let v4 = matching("ip", "daddr", &some, true).unwrap();
        assert_eq!(v4, "ip daddr { 10.0.0.0/8, 192.0.2.1/32 }");
        assert_eq!(matching("ip6", "saddr", &some, false).unwrap(), "ip6 saddr { fd00::/8 }");
        let everywhere = read(&["0.0.0.0/0", "10.0.0.0/8"]);
        assert_eq!(matching("ip", "daddr", &everywhere, true).unwrap(), "");
        assert_eq!(matching("ip6", "daddr", &everywhere, false), None);
    }

    #[test]
    fn packets_to_special_addresses_are_left_alone_unless_they_are_listed() {
        let to = ["0.0.0.0/0", "127.0.0.0/8"].map(|text| text.parse().unwrap()).to_vec();
        let matches = destinations("ip", &Access { to, ..Access::default() }, true);
        assert_eq!(matches[0], "ip daddr { 127.0.0.0/8 }");
        assert!(matches[1].starts_with(" ip daddr != { 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16,"));
        let v6 = destinations("ip6", &Access::default(), false);
        assert!(v6[0].starts_with("ip6 daddr { fc00::/7 } ip6 daddr != { "), "{v6:?}");
        assert!(v6[0].contains("64:ff9b::7f00:0/104") && v6[0].contains("2002:a9fe::/32"));
    }
}
