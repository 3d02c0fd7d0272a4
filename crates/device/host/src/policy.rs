//! Policy rules (ip-rule(8)): what becomes of packets with a mark, by the kernel's own answers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;

use crate::netlink::Netlink;
use crate::sysctl::read_sysctl;

/// A destination in each family that no network has (RFC 5737, RFC 3849). A question about it meets
/// the rules and routes for arbitrary destinations.
const NOWHERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// Whether the calling thread's network namespace has IPv6, at least on its loopback. The kernel
/// may be built without IPv6, or an administrator may have disabled it.
pub fn has_ipv6() -> bool {
    read_sysctl("net.ipv6.conf.lo.disable_ipv6").is_ok_and(|disabled| disabled == "0")
}

/// The families in which a mark has a rule and a route: those that the calling thread's namespace has.
pub(crate) fn families() -> Vec<AddressFamily> {
    let v6 = has_ipv6().then_some(AddressFamily::Inet6);
    std::iter::once(AddressFamily::Inet).chain(v6).collect()
}

/// What packets with a mark meet, in one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Whether the rule for the mark exists.
    pub(crate) has_rule: bool,
    /// The rules of higher priority that may take packets with the mark, as `ip rule` shows them.
    pub(crate) ahead: Vec<String>,
    /// Whether a packet with the mark is delivered on this machine by the mark's table, as the
    /// kernel answers.
    pub(crate) delivers: bool,
}

/// What packets with `mark` meet, whose rule selects `table`.
pub(crate) fn policy(family: AddressFamily, mark: u32, table: u32) -> io::Result<Policy> {
    let rules = rules(family)?;
    let own = rules.iter().position(|rule| is_for(rule, mark, table));
    let ahead = rules[..own.unwrap_or(rules.len())].iter();
    let ahead = ahead.filter(|rule| may_take(rule, mark)).map(words).collect();
    Ok(Policy { has_rule: own.is_some(), ahead, delivers: delivers(family, mark, table)? })
}

/// The rules in the order in which the kernel tries them.
fn rules(family: AddressFamily) -> io::Result<Vec<RuleMessage>> {
    let mut question = RuleMessage::default();
    question.header.family = family;
    let answers = Netlink::open()?.dump(RouteNetlinkMessage::GetRule(question))?;
    let rules = answers.into_iter().filter_map(|answer| match answer {
        RouteNetlinkMessage::NewRule(rule) => Some(rule),
        _ => None,
    });
    Ok(rules.filter(|rule| rule.header.family == family).collect())
}

/// Every rule of the family, as `ip rule` shows it.
pub(crate) fn all_in_words(family: AddressFamily) -> io::Result<Vec<String>> {
    Ok(rules(family)?.iter().map(words).collect())
}

fn pick<T>(rule: &RuleMessage, pick: impl Fn(&RuleAttribute) -> Option<T>) -> Option<T> {
    rule.attributes.iter().find_map(pick)
}

/// The table that a rule selects.
fn table(rule: &RuleMessage) -> u32 {
    let named = pick(rule, |attribute| match attribute {
        RuleAttribute::Table(table) => Some(*table),
        _ => None,
    });
    named.unwrap_or(u32::from(rule.header.table))
}

/// The mark of a rule, and the bits of a packet's mark that are compared with it.
fn mark(rule: &RuleMessage) -> Option<(u32, u32)> {
    let value = pick(rule, |attribute| match attribute {
        RuleAttribute::FwMark(value) => Some(*value),
        _ => None,
    })?;
    let mask = pick(rule, |attribute| match attribute {
        RuleAttribute::FwMask(mask) => Some(*mask),
        _ => None,
    });
    Some((value, mask.unwrap_or(u32::MAX)))
}

/// Whether it is the rule for all packets with the mark.
fn is_for(rule: &RuleMessage, wanted: u32, into: u32) -> bool {
    let selects = rule.header.action == RuleAction::ToTable && table(rule) == into;
    selects && mark(rule) == Some((wanted, u32::MAX)) && !is_inverted(rule) && !is_narrow(rule)
}

fn is_inverted(rule: &RuleMessage) -> bool {
    rule.header.flags.contains(RuleFlags::Invert)
}

/// Whether the rule selects packets by anything but their mark.
fn is_narrow(rule: &RuleMessage) -> bool {
    let selector = pick(rule, |attribute| match attribute {
        RuleAttribute::Table(_)
        | RuleAttribute::Priority(_)
        | RuleAttribute::FwMark(_)
        | RuleAttribute::FwMask(_)
        | RuleAttribute::Protocol(_)
        | RuleAttribute::SuppressPrefixLen(_)
        | RuleAttribute::SuppressIfGroup(_)
        | RuleAttribute::L3MDev(false)
        | RuleAttribute::Other(_) => None,
        _ => Some(()),
    });
    selector.is_some() || rule.header.dst_len > 0 || rule.header.src_len > 0
}

/// Whether the rule may take a packet with the mark, which is meant for no address of this machine.
fn may_take(rule: &RuleMessage, wanted: u32) -> bool {
    let is_local = table(rule) == u32::from(nix::libc::RT_TABLE_LOCAL);
    if rule.header.action == RuleAction::Nop || is_local && !is_inverted(rule) {
        return false;
    }
    // In a namespace without VRFs the rule for them takes no packet.
    if pick(rule, |it| matches!(it, RuleAttribute::L3MDev(true)).then_some(())).is_some() {
        return false;
    }
    let is_marked = mark(rule).map(|(value, mask)| wanted & mask == value);
    if is_inverted(rule) {
        is_marked == Some(false) || is_narrow(rule)
    } else {
        is_marked != Some(false)
    }
}

/// The rule as `ip rule` shows it, as far as that matters to find it.
fn words(rule: &RuleMessage) -> String {
    let priority = pick(rule, |attribute| match attribute {
        RuleAttribute::Priority(priority) => Some(*priority),
        _ => None,
    });
    let source = pick(rule, |attribute| match attribute {
        RuleAttribute::Source(address) => Some(format!("{address}/{}", rule.header.src_len)),
        _ => None,
    });
    let mut words = vec![format!("{}:", priority.unwrap_or(0))];
    words.extend(is_inverted(rule).then(|| "not".to_owned()));
    words.push(format!("from {}", source.as_deref().unwrap_or("all")));
    words.extend(rule.attributes.iter().filter_map(|attribute| match attribute {
        RuleAttribute::Destination(to) => Some(format!("to {to}/{}", rule.header.dst_len)),
        RuleAttribute::Iifname(name) => Some(format!("iif {name}")),
        RuleAttribute::Oifname(name) => Some(format!("oif {name}")),
        _ => None,
    }));
    words.extend(mark(rule).map(|mark| match mark {
        (value, u32::MAX) => format!("fwmark {value:#x}"),
        (value, mask) => format!("fwmark {value:#x}/{mask:#x}"),
    }));
    words.extend(match rule.header.action {
        RuleAction::ToTable => Some(format!("lookup {}", table(rule))),
        RuleAction::Blackhole => Some("blackhole".to_owned()),
        RuleAction::Unreachable => Some("unreachable".to_owned()),
        RuleAction::Prohibit => Some("prohibit".to_owned()),
        _ => None,
    });
    words.join(" ")
}

/// Whether the kernel delivers a packet with the mark on this machine, by the table.
fn delivers(family: AddressFamily, mark: u32, table: u32) -> io::Result<bool> {
    let [v4, v6] = NOWHERE;
    let mut question = route_to(if family == AddressFamily::Inet { v4 } else { v6 });
    question.header.flags = RouteFlags::LookupTable;
    question.attributes.push(RouteAttribute::Mark(mark));
    // Where there is no route, or one that refuses, the answer is an error.
    let Ok(answers) = Netlink::open()?.ask(RouteNetlinkMessage::GetRoute(question)) else {
        return Ok(false);
    };
    Ok(answers.into_iter().any(|answer| match answer {
        RouteNetlinkMessage::NewRoute(route) => {
            let named = route.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::Table(table) => Some(*table),
                _ => None,
            });
            route.header.kind == RouteType::Local
                && named.unwrap_or(u32::from(route.header.table)) == table
        }
        _ => false,
    }))
}

/// The question for the route to an address.
fn route_to(address: IpAddr) -> RouteMessage {
    let (family, length, address) = match address {
        IpAddr::V4(address) => (AddressFamily::Inet, 32, RouteAddress::Inet(address)),
        IpAddr::V6(address) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(address)),
    };
    let mut question = RouteMessage::default();
    question.header.address_family = family;
    question.header.destination_prefix_length = length;
    question.attributes.push(RouteAttribute::Destination(address));
    question
}

/// Whether the kernel delivers packets to `address` on this machine: it is one of the addresses of the calling thread's
/// network namespace, or a broadcast or anycast address of its networks.
///
/// # Errors
///
/// The kernel does not say.
pub fn is_own(address: IpAddr) -> io::Result<bool> {
    let answers = match Netlink::open()?.ask(RouteNetlinkMessage::GetRoute(route_to(address))) {
        Ok(answers) => answers,
        // There is no route, or one that refuses, or no such family: the address is not this machine's.
        Err(error) => match error.raw_os_error().map(Errno::from_raw) {
            Some(
                Errno::ENETUNREACH
                | Errno::EHOSTUNREACH
                | Errno::EACCES
                | Errno::EINVAL
                | Errno::EAGAIN
                | Errno::EOPNOTSUPP,
            ) => return Ok(false),
            _ => return Err(error),
        },
    };
    let is_here =
        |kind| matches!(kind, RouteType::Local | RouteType::Broadcast | RouteType::Anycast);
    Ok(answers.iter().any(
        |answer| matches!(answer, RouteNetlinkMessage::NewRoute(route) if is_here(route.header.kind)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_own_and_a_documentation_address_is_not() {
        let is_own = |address: &str| is_own(address.parse().unwrap()).unwrap();
        assert!(is_own("127.0.0.1") && is_own("127.200.0.1"));
        assert!(!is_own("192.0.2.1") && !is_own("2001:db8::1"));
    }

    fn rule(attributes: Vec<RuleAttribute>) -> RuleMessage {
        let mut rule = RuleMessage::default();
        rule.header.action = RuleAction::ToTable;
        rule.attributes = attributes;
        rule
    }

    #[test]
    fn a_rule_takes_a_packet_by_its_mark_or_whatever_its_mark() {
        use RuleAttribute::{FwMark, FwMask, Iifname, Table};
        assert!(may_take(&rule(vec![Table(254)]), 7));
        assert!(may_take(&rule(vec![Table(100), Iifname("eth0".to_owned())]), 7));
        assert!(may_take(&rule(vec![Table(100), FwMark(3), FwMask(3)]), 7));
        assert!(!may_take(&rule(vec![Table(100), FwMark(8), FwMask(u32::MAX)]), 7));
        assert!(!may_take(&rule(vec![Table(255)]), 7), "packets to this machine alone");
        // wg-quick(8): not from all fwmark 0xca6c lookup 51820
        let mut inverted = rule(vec![Table(51820), FwMark(0xca6c), FwMask(u32::MAX)]);
        inverted.header.flags = RuleFlags::Invert;
        assert!(may_take(&inverted, 7) && !may_take(&inverted, 0xca6c));
        assert_eq!(words(&inverted), "0: not from all fwmark 0xca6c lookup 51820");
    }

    #[test]
    fn a_rule_that_is_narrower_than_the_mark_is_not_the_rule_for_it() {
        use RuleAttribute::{FwMark, FwMask, Iifname, Table};
        let own = vec![Table(9), FwMark(7), FwMask(u32::MAX)];
        assert!(is_for(&rule(own.clone()), 7, 9));
        assert!(!is_for(&rule(own.clone()), 7, 10));
        let narrow = [own, vec![Iifname("eth0".to_owned())]].concat();
        assert!(!is_for(&rule(narrow), 7, 9));
    }
}
