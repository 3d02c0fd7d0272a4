//! The congestion control of a route (`congctl` of ip-route(8)).

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{Emitable as _, NLM_F_REPLACE};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{RouteFlags, RouteHeader, RouteType};
use nix::libc::{
    RTA_CACHEINFO, RTA_DST, RTA_GATEWAY, RTA_METRICS, RTA_MULTIPATH, RTA_OIF, RTA_PRIORITY,
    RTA_TABLE, RTM_GETROUTE, RTM_NEWROUTE,
};
use nix::net::if_::if_nametoindex;

use crate::change::{Change, Guard, RouteKey};
use crate::lease::{Lease, LeaseError};
use crate::namespace::NetnsId;
use crate::netlink::Netlink;
use crate::raw_message::{Attribute, RawMessage, attributes};

/// The flags of a route that may be written back. The other flags describe the route's present
/// state.
const FLAGS_KEPT: RouteFlags = RouteFlags::Pervasive.union(RouteFlags::Onlink);
/// The length of the header of a route's message (`struct rtmsg`).
const HEADER_BYTES: usize = 12;
// Numbers of attributes, from <linux/rtnetlink.h>.
const VIA: u16 = 18;
const EXPIRES: u16 = 23;
const NEXTHOP_ID: u16 = 30;
/// `RTAX_CC_ALGO`, one of [`RTA_METRICS`].
const CONGESTION_CONTROL: u16 = 16;

/// A route could not be found or changed.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// There is no such route.
    #[error("the main table has no route to {0}; `ip route` and `ip -6 route` list all")]
    None(String),
    /// There are several such routes.
    #[error("the main table has {found} routes to {asked}; name the interface of one")]
    Several {
        /// The route that was asked for.
        asked: String,
        /// Their number.
        found: usize,
    },
    /// The route expires by itself; writing it back would make it permanent.
    #[error(
        "the route to {0} expires by itself, like one that a router advertised; writing it again would make it \
         permanent, so add a route of your own"
    )]
    Expires(RouteKey),
    /// There is no such interface.
    #[error("found interface {0:?}, expected one that `ip link` lists")]
    Interface(String),
    /// The kernel refused.
    #[error("cannot {action} the route to {destination}: {source}")]
    Io {
        /// The operation.
        action: &'static str,
        /// Its destination.
        destination: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The lease could not be written, so nothing was changed.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

/// A route of the main table of the calling thread's network namespace.
#[derive(Clone, Debug)]
pub struct Route {
    key: RouteKey,
    header: RouteHeader,
    attributes: Vec<Attribute>,
}

impl Route {
    /// The route to exactly this network, over `interface` where one is named.
    ///
    /// # Errors
    ///
    /// Where there is no such route or more than one, or where the route expires by itself.
    pub fn find(
        destination: IpAddr,
        length: u8,
        interface: Option<&str>,
    ) -> Result<Self, RouteError> {
        let on = interface.map_or(String::new(), |name| format!(" dev {name}"));
        let asked = format!("{destination}/{length}{on}");
        let index = interface
            .map(|name| if_nametoindex(name).map_err(|_| RouteError::Interface(name.to_owned())))
            .transpose()?;
        let routes = all(destination).map_err(|source| RouteError::Io {
            action: "read",
            destination: asked.clone(),
            source,
        })?;
        let mut found = routes.into_iter().filter(|route| {
            (route.key.destination, route.key.length) == (destination, length)
                && index.is_none_or(|index| route.number(RTA_OIF) == Some(index))
        });
        let route = found.next().ok_or_else(|| RouteError::None(asked.clone()))?;
        match found.count() {
            0 if route.expires() => Err(RouteError::Expires(route.key)),
            0 => Ok(route),
            more => Err(RouteError::Several { asked, found: more + 1 }),
        }
    }

    /// The network and the settings that identify the route.
    pub fn key(&self) -> RouteKey {
        self.key
    }

    /// Makes `algorithm` the default of new connections over the route.
    ///
    /// # Errors
    ///
    /// Where the lease cannot be written or the kernel refuses; then nothing was changed.
    pub fn set_algorithm(&self, lease: &Lease, algorithm: &str) -> Result<Guard, RouteError> {
        let netns = NetnsId::current().map_err(LeaseError::Io)?;
        let (before, ours) = (self.algorithm(), algorithm.to_owned());
        let change = Change::Route { netns, route: self.key, before, ours };
        lease.record(change.clone())?;
        if let Err(source) = self.write(Some(algorithm)) {
            lease.forget(&change)?;
            let destination = self.key.to_string();
            return Err(RouteError::Io { action: "change", destination, source });
        }
        Ok(Guard(change))
    }

    /// The algorithm that new connections over the route use; `None` where the route names none.
    pub fn algorithm(&self) -> Option<String> {
        let metrics = attributes(self.attribute(RTA_METRICS)?);
        let name = metrics.into_iter().find(|metric| metric.kind == CONGESTION_CONTROL)?.value;
        Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
    }

    /// Replaces the route by the same route with another algorithm.
    fn write(&self, algorithm: Option<&str>) -> io::Result<()> {
        Netlink::open()?.change(self.with_algorithm(algorithm), NLM_F_REPLACE)
    }

    fn with_algorithm(&self, algorithm: Option<&str>) -> RawMessage<HEADER_BYTES> {
        let flags = self.header.flags & FLAGS_KEPT;
        let header = RouteHeader { flags, ..self.header.clone() };
        let mut message = message(RTM_NEWROUTE, &header, self.attributes.clone());
        let has_object = self.attribute(NEXTHOP_ID).is_some();
        message.attributes.retain(|attribute| match attribute.kind {
            RTA_METRICS | RTA_CACHEINFO | EXPIRES => false,
            // The kernel reports a nexthop object's number and its contents, but takes only one of
            // the two.
            RTA_OIF | RTA_GATEWAY | RTA_MULTIPATH | VIA => !has_object,
            _ => true,
        });
        let mut metrics = attributes(self.attribute(RTA_METRICS).unwrap_or_default());
        metrics.retain(|metric| metric.kind != CONGESTION_CONTROL);
        metrics.extend(algorithm.map(|name| Attribute {
            kind: CONGESTION_CONTROL,
            value: [name.as_bytes(), b"\0"].concat(),
        }));
        if !metrics.is_empty() {
            message.attributes.push(Attribute::nested(RTA_METRICS, &metrics));
        }
        message
    }

    fn attribute(&self, wanted: u16) -> Option<&[u8]> {
        let mut all = self.attributes.iter();
        all.find(|attribute| attribute.kind == wanted).map(|found| found.value.as_slice())
    }

    fn number(&self, wanted: u16) -> Option<u32> {
        self.attribute(wanted)?.first_chunk().copied().map(u32::from_ne_bytes)
    }

    /// Whether the route expires by itself: `rta_expires` of `struct rta_cacheinfo` is set.
    fn expires(&self) -> bool {
        let expires = self.attribute(RTA_CACHEINFO).and_then(|info| info.get(8..12));
        expires.is_some_and(|clock_ticks| clock_ticks != [0; 4])
    }
}

/// Restores the algorithm `before` if the route exists and its algorithm still is `ours`; other changes of the route
/// stay. Returns whether it wrote the route.
pub(crate) fn restore(key: &RouteKey, before: Option<&str>, ours: &str) -> io::Result<bool> {
    let mut routes = all(key.destination)?.into_iter();
    let found =
        routes.find(|route| route.key == *key && route.algorithm().as_deref() == Some(ours));
    found.map_or(Ok(false), |route| route.write(before).map(|()| true))
}

/// The route with this key; `None` where the main table has no such route.
pub(crate) fn with_key(key: &RouteKey) -> io::Result<Option<Route>> {
    Ok(all(key.destination)?.into_iter().find(|route| route.key == *key))
}

/// Gives the route the algorithm `ours` again.
pub(crate) fn put_back(key: &RouteKey, ours: &str) -> io::Result<()> {
    with_key(key)?.ok_or(io::ErrorKind::NotFound)?.write(Some(ours))
}

/// The routes of the main table, in the address family of `like`.
fn all(like: IpAddr) -> io::Result<Vec<Route>> {
    let header = RouteHeader { address_family: family(like), ..RouteHeader::default() };
    let messages = Netlink::open()?.dump(message(RTM_GETROUTE, &header, Vec::new()))?;
    Ok(messages.into_iter().filter_map(|message| read(message, like)).collect())
}

/// The message about a route with this header.
fn message(
    kind: u16,
    header: &RouteHeader,
    attributes: Vec<Attribute>,
) -> RawMessage<HEADER_BYTES> {
    let mut message = RawMessage { kind, header: [0; HEADER_BYTES], attributes };
    header.emit(&mut message.header);
    message
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// The unicast route of the main table in `message`, in the address family of `like`.
fn read(message: RawMessage<HEADER_BYTES>, like: IpAddr) -> Option<Route> {
    let header = RouteHeader::parse(&message.header[..]).ok()?;
    // A cloned route is an entry of the kernel's cache of destinations.
    let is_route = header.kind == RouteType::Unicast && !header.flags.contains(RouteFlags::Cloned);
    if !is_route || header.address_family != family(like) {
        return None;
    }
    let length = header.destination_prefix_length;
    let key = RouteKey { destination: like, length, tos: header.tos, priority: 0 };
    let mut route = Route { key, header, attributes: message.attributes };
    let table = route.number(RTA_TABLE).unwrap_or(u32::from(route.header.table));
    if table != u32::from(RouteHeader::RT_TABLE_MAIN) {
        return None;
    }
    route.key.destination = address(like, route.attribute(RTA_DST))?;
    route.key.priority = route.number(RTA_PRIORITY).unwrap_or(0);
    Some(route)
}

/// The address in an attribute; a default route has no such attribute and the address 0.
fn address(like: IpAddr, bytes: Option<&[u8]>) -> Option<IpAddr> {
    let bytes = bytes.unwrap_or(&[0; 16]);
    Some(if like.is_ipv4() {
        IpAddr::from(*bytes.first_chunk::<4>()?)
    } else {
        IpAddr::from(*bytes.first_chunk::<16>()?)
    })
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{
        NetlinkDeserializable as _, NetlinkHeader, NetlinkSerializable as _,
    };

    use super::*;

    #[test]
    fn a_route_is_written_back_with_attributes_that_are_not_known_here() {
        let attribute = |kind, value: &[u8]| Attribute { kind, value: value.to_vec() };
        let header = RouteHeader {
            address_family: AddressFamily::Inet,
            kind: RouteType::Unicast,
            table: RouteHeader::RT_TABLE_MAIN,
            flags: RouteFlags::Onlink | RouteFlags::Offload,
            ..RouteHeader::default()
        };
        let attributes = vec![attribute(RTA_OIF, &[3, 0, 0, 0]), attribute(99, b"abcde")];
        let route = read(message(RTM_NEWROUTE, &header, attributes), IpAddr::from([192, 0, 2, 1]));
        let route = route.unwrap();
        let written = route.with_algorithm(Some("bbr"));
        assert_eq!(written.attributes[..2], route.attributes);

        let mut bytes = vec![0; written.buffer_len()];
        written.serialize(&mut bytes);
        let again = RawMessage::deserialize(&NetlinkHeader::default(), &bytes).unwrap();
        let again = read(again, IpAddr::from([192, 0, 2, 1])).unwrap();
        assert_eq!(again.header.flags, RouteFlags::Onlink);
        assert_eq!(again.attributes, written.attributes);
        assert_eq!(again.algorithm().as_deref(), Some("bbr"));
        assert_eq!(again.with_algorithm(None).attributes, route.attributes);
    }
}
