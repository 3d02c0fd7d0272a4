//! The congestion control of a route (`congctl` of ip-route(8)).

use std::fmt;
use std::io;
use std::net::IpAddr;

use nix::net::if_::if_nametoindex;
use nix::sys::socket::AddressFamily;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::lease::{Lease, LeaseError};
use crate::namespace::NetnsId;
use crate::netlink::{Netlink, attributes, put_attribute};

// <linux/rtnetlink.h>
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const HEADER_BYTES: usize = 12;
const TABLE_MAIN: u32 = 254;
const TYPE_UNICAST: u8 = 1;
/// What the kernel remembers of single destinations, which is no route of its own.
const FLAG_CLONED: u32 = 0x200;
/// All other flags tell of the moment, and are refused in a request: pervasive, onlink.
const FLAGS_KEPT: u32 = 0x2 | 0x4;
const DESTINATION: u16 = 1;
const INTERFACE: u16 = 4;
const GATEWAY: u16 = 5;
const PRIORITY: u16 = 6;
const METRICS: u16 = 8;
const MULTIPATH: u16 = 9;
const CACHE_INFO: u16 = 12;
const TABLE: u16 = 15;
const VIA: u16 = 18;
const EXPIRES: u16 = 23;
const NEXTHOP_ID: u16 = 30;
/// `RTAX_CC_ALGO`, one of [`METRICS`].
const CONGESTION_CONTROL: u16 = 16;

/// Which route of the main table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteKey {
    /// The network's address.
    pub destination: IpAddr,
    /// The length of its prefix in bits.
    pub length: u8,
    /// `tos` of ip-route(8).
    pub tos: u8,
    /// `metric` of ip-route(8): the smaller one of two is preferred.
    pub priority: u32,
}

impl fmt::Display for RouteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.destination, self.length)?;
        if self.priority == 0 { Ok(()) } else { write!(f, " metric {}", self.priority) }
    }
}

/// A route could not be found or changed.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// There is none.
    #[error("the main table has no route to {asked}; `ip route` and `ip -6 route` list all")]
    None {
        /// What was looked for.
        asked: String,
    },
    /// There are several, and one cannot be told from the others.
    #[error("the main table has {found} routes to {asked}; name the interface of one")]
    Several {
        /// What was looked for.
        asked: String,
        /// How many there are.
        found: usize,
    },
    /// It would not expire any more.
    #[error(
        "the route to {0} expires by itself (a router advertised it), which writing it anew would \
         undo; add one of your own"
    )]
    Expires(RouteKey),
    /// There is no such interface.
    #[error("found interface {0:?}, expected one that `ip link` lists")]
    Interface(String),
    /// The kernel refused.
    #[error("cannot {action} the route to {destination}: {source}")]
    Io {
        /// What was done.
        action: &'static str,
        /// Where it leads.
        destination: String,
        /// What the kernel said.
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
    message: Vec<u8>,
}

/// A route whose congestion control was changed.
#[derive(Debug)]
#[must_use = "without `restore` the route is put back only when the lease is released"]
pub struct RouteGuard {
    change: Change,
}

impl Route {
    /// The route to exactly this network, over `interface` where one is named.
    ///
    /// # Errors
    ///
    /// Where there is none or more than one, or where it expires by itself.
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
                && index.is_none_or(|index| route.number(INTERFACE) == Some(index))
        });
        let route = found.next().ok_or_else(|| RouteError::None { asked: asked.clone() })?;
        match found.count() {
            0 if route.expires() => Err(RouteError::Expires(route.key)),
            0 => Ok(route),
            more => Err(RouteError::Several { asked, found: more + 1 }),
        }
    }

    /// Which one it is.
    pub fn key(&self) -> RouteKey {
        self.key
    }

    /// Lets new connections over the route use `algorithm`, unless they ask for another.
    ///
    /// # Errors
    ///
    /// Where the lease cannot be written or the kernel refuses; then nothing was changed.
    pub fn set_algorithm(&self, lease: &Lease, algorithm: &str) -> Result<RouteGuard, RouteError> {
        let netns = NetnsId::current().map_err(LeaseError::Io)?;
        let (before, ours) = (self.algorithm(), algorithm.to_owned());
        let change = Change::Route { netns, route: self.key, before, ours };
        lease.record(change.clone())?;
        if let Err(source) = self.write(Some(algorithm)) {
            lease.forget(&change)?;
            let destination = self.key.to_string();
            return Err(RouteError::Io { action: "change", destination, source });
        }
        Ok(RouteGuard { change })
    }

    /// The algorithm that new connections over it use, where it names one.
    pub fn algorithm(&self) -> Option<String> {
        let metrics = self.attribute(METRICS)?;
        let (_, name) = attributes(metrics).find(|(kind, _)| *kind == CONGESTION_CONTROL)?;
        Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
    }

    /// Writes the route as it is, but for its algorithm.
    fn write(&self, algorithm: Option<&str>) -> io::Result<()> {
        Netlink::open()?.replace(NEW_ROUTE, &self.with_algorithm(algorithm))
    }

    fn with_algorithm(&self, algorithm: Option<&str>) -> Vec<u8> {
        let mut message = self.message[..HEADER_BYTES].to_vec();
        let flags = flags(&self.message) & FLAGS_KEPT;
        message[8..].copy_from_slice(&flags.to_ne_bytes());
        let has_object = self.attribute(NEXTHOP_ID).is_some();
        for (kind, value) in attributes(&self.message[HEADER_BYTES..]) {
            // What a nexthop object says is shown beside it, and refused beside it.
            let of_object = matches!(kind, INTERFACE | GATEWAY | MULTIPATH | VIA) && has_object;
            if !matches!(kind, METRICS | CACHE_INFO | EXPIRES) && !of_object {
                put_attribute(&mut message, kind, value);
            }
        }
        let mut metrics = Vec::new();
        for (kind, value) in attributes(self.attribute(METRICS).unwrap_or_default()) {
            if kind != CONGESTION_CONTROL {
                put_attribute(&mut metrics, kind, value);
            }
        }
        if let Some(name) = algorithm {
            put_attribute(&mut metrics, CONGESTION_CONTROL, &[name.as_bytes(), b"\0"].concat());
        }
        if !metrics.is_empty() {
            put_attribute(&mut message, METRICS, &metrics);
        }
        message
    }

    fn attribute(&self, wanted: u16) -> Option<&[u8]> {
        let mut all = attributes(&self.message[HEADER_BYTES..]);
        all.find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
    }

    fn number(&self, wanted: u16) -> Option<u32> {
        self.attribute(wanted)?.first_chunk().copied().map(u32::from_ne_bytes)
    }

    /// Whether it ends by itself: `rta_expires` of `struct rta_cacheinfo` is set.
    fn expires(&self) -> bool {
        let expires = self.attribute(CACHE_INFO).and_then(|info| info.get(8..12));
        expires.is_some_and(|clock_ticks| clock_ticks != [0; 4])
    }
}

impl RouteGuard {
    /// Puts the route's own algorithm back, in the namespace of the calling thread, which must be
    /// the one that it was changed in.
    ///
    /// # Errors
    ///
    /// Where the kernel or the lease refuses.
    pub fn restore(self, lease: &Lease) -> Result<(), RouteError> {
        let Change::Route { route, before, ours, .. } = &self.change else { return Ok(()) };
        put_back(route, before.as_deref(), ours).map_err(|source| RouteError::Io {
            action: "put back",
            destination: route.to_string(),
            source,
        })?;
        lease.forget(&self.change)?;
        Ok(())
    }
}

/// Writes the algorithm `before` where the route is still there and its algorithm still `ours`;
/// whatever else was changed about it since stays. Says whether it wrote.
pub(crate) fn put_back(key: &RouteKey, before: Option<&str>, ours: &str) -> io::Result<bool> {
    let mut routes = all(key.destination)?.into_iter();
    let found =
        routes.find(|route| route.key == *key && route.algorithm().as_deref() == Some(ours));
    found.map_or(Ok(false), |route| route.write(before).map(|()| true))
}

/// The routes of the main table, of the family of `like`.
fn all(like: IpAddr) -> io::Result<Vec<Route>> {
    let mut question = [0; HEADER_BYTES];
    question[0] = family(like);
    let messages = Netlink::open()?.dump(GET_ROUTE, &question)?;
    Ok(messages.into_iter().filter_map(|message| read(message, like)).collect())
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    family as u8
}

/// A unicast route of the main table, of the family of `like`.
fn read(message: Vec<u8>, like: IpAddr) -> Option<Route> {
    let &[read_family, length, _, tos, table, _, _, kind] = message.first_chunk()?;
    if message.len() < HEADER_BYTES || read_family != family(like) || kind != TYPE_UNICAST {
        return None;
    }
    let key = RouteKey { destination: like, length, tos, priority: 0 };
    let mut route = Route { key, message };
    let table = route.number(TABLE).unwrap_or(u32::from(table));
    if table != TABLE_MAIN || flags(&route.message) & FLAG_CLONED != 0 {
        return None;
    }
    route.key.destination = address(like, route.attribute(DESTINATION))?;
    route.key.priority = route.number(PRIORITY).unwrap_or(0);
    Some(route)
}

/// A default route has no address.
fn address(like: IpAddr, bytes: Option<&[u8]>) -> Option<IpAddr> {
    let bytes = bytes.unwrap_or(&[0; 16]);
    Some(if like.is_ipv4() {
        IpAddr::from(*bytes.first_chunk::<4>()?)
    } else {
        IpAddr::from(*bytes.first_chunk::<16>()?)
    })
}

fn flags(message: &[u8]) -> u32 {
    let bytes = message.get(8..).and_then(|bytes| bytes.first_chunk());
    bytes.copied().map_or(0, u32::from_ne_bytes)
}
