//! The network settings of a namespace: links, IPv4 addresses, routes and rules, and queueing
//! disciplines, as rtnetlink lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use netlink_packet_core::Emitable as _;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use netlink_packet_route::tc::{TcAttribute, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink::Netlink;
use crate::policy;

/// Each setting in words. After a zero come details that nobody reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings(BTreeSet<String>);

impl Settings {
    /// The settings of the calling thread's namespace.
    pub(crate) fn read() -> io::Result<Self> {
        let netlink = Netlink::open()?;
        let mut names = BTreeMap::new();
        let mut all = BTreeSet::new();
        for answer in netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))? {
            if let RouteNetlinkMessage::NewLink(link) = answer {
                let (name, words) = self::link(&link);
                names.insert(link.header.index, name);
                all.insert(words);
            }
        }
        let name = |index: u32| names.get(&index).cloned().unwrap_or_else(|| index.to_string());
        let mut question = AddressMessage::default();
        question.header.family = AddressFamily::Inet;
        for answer in netlink.dump(RouteNetlinkMessage::GetAddress(question))? {
            if let RouteNetlinkMessage::NewAddress(address) = answer {
                all.insert(self::address(&address, &name));
            }
        }
        let mut question = RouteMessage::default();
        question.header.address_family = AddressFamily::Inet;
        for answer in netlink.dump(RouteNetlinkMessage::GetRoute(question))? {
            if let RouteNetlinkMessage::NewRoute(route) = answer {
                all.extend(self::route(&route, &name));
            }
        }
        let question = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        for answer in netlink.dump(question)? {
            if let RouteNetlinkMessage::NewQueueDiscipline(discipline) = answer {
                all.insert(self::discipline(&discipline, &name));
            }
        }
        let rules = policy::all_in_words(AddressFamily::Inet)?;
        all.extend(rules.into_iter().map(|rule| format!("rule {rule}")));
        Ok(Self(all))
    }

    /// What `now` has other than this, in words; `None` where both are the same.
    pub(crate) fn difference(&self, now: &Self) -> Option<String> {
        let words = |line: &String| line.split('\0').next().unwrap_or_default().to_owned();
        let new = now.0.difference(&self.0).map(|line| format!("new {}", words(line)));
        let gone = self.0.difference(&now.0).map(|line| format!("no {}", words(line)));
        let all: Vec<_> = new.chain(gone).collect();
        (!all.is_empty()).then(|| all[..all.len().min(4)].join(", "))
    }
}

/// The name of a link, and the link in words. Whether its other end is up is left out.
fn link(link: &LinkMessage) -> (String, String) {
    let (mut name, mut mtu, mut queue) = (String::new(), 0, 0);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(found) => name.clone_from(found),
            LinkAttribute::Mtu(found) => mtu = *found,
            LinkAttribute::TxQueueLen(found) => queue = *found,
            _ => {}
        }
    }
    let state = if link.header.flags.contains(LinkFlags::Up) { "up" } else { "down" };
    let words = format!("link {name} {state} mtu {mtu} qlen {queue}");
    (name, words)
}

fn address(address: &AddressMessage, name: &dyn Fn(u32) -> String) -> String {
    let found = address.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(address.to_string()),
        _ => None,
    });
    let length = address.header.prefix_len;
    format!("address {}/{length} of {}", found.unwrap_or_default(), name(address.header.index))
}

/// A route in words. The kernel makes the routes of the table `local` from the addresses.
fn route(route: &RouteMessage, name: &dyn Fn(u32) -> String) -> Option<String> {
    let mut table = u32::from(route.header.table);
    let (mut to, mut rest) = ("0.0.0.0".to_owned(), Vec::new());
    let words = |address: &RouteAddress| match address {
        RouteAddress::Inet(address) => address.to_string(),
        RouteAddress::Inet6(address) => address.to_string(),
        _ => String::new(),
    };
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Table(found) => table = *found,
            RouteAttribute::Destination(found) => to = words(found),
            RouteAttribute::Gateway(found) => rest.push(format!(" via {}", words(found))),
            RouteAttribute::Oif(found) => rest.push(format!(" dev {}", name(*found))),
            _ => {}
        }
    }
    let length = route.header.destination_prefix_length;
    (table != u32::from(nix::libc::RT_TABLE_LOCAL))
        .then(|| format!("route {to}/{length}{} table {table}", rest.concat()))
}

fn discipline(discipline: &TcMessage, name: &dyn Fn(u32) -> String) -> String {
    let (mut kind, mut details) = (String::new(), Vec::<u8>::new());
    for attribute in &discipline.attributes {
        match attribute {
            TcAttribute::Kind(found) => kind.clone_from(found),
            TcAttribute::Options(options) => {
                details = vec![0; options.as_slice().buffer_len()];
                options.as_slice().emit(&mut details);
            }
            _ => {}
        }
    }
    let of = name(discipline.header.index.cast_unsigned());
    let details: Vec<_> = details.iter().map(u8::to_string).collect();
    let (parent, details) = (u32::from(discipline.header.parent), details.join(" "));
    format!("queueing discipline {kind} of {of}\0{parent} {details}")
}
