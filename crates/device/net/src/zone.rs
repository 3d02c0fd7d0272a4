//! The zone of a link-local address: the interface on whose link the address is (RFC 4007 section
//! 11). Two links may have hosts with the same link-local address, so a socket needs the interface.

use std::net::{Ipv6Addr, SocketAddrV6};

use nix::net::if_::{if_nameindex, if_nametoindex};
use percent_encoding::percent_decode_str;

/// A zone as it was written: the name of an interface, or its index.
///
/// An interface that goes and comes back has another index. A caller that connects again and again
/// therefore keeps the zone, and asks for [`Zone::index`] each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(String);

/// Why an address with a zone cannot be used, or one without.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// The zone is missing.
    #[error(
        "{address} is a link-local address, which is another host on each interface: name the \
         interface behind it, as in {address}%{example}; this machine has {interfaces}"
    )]
    Missing {
        /// The address.
        address: Ipv6Addr,
        /// An interface of this machine.
        example: String,
        /// The interfaces of this machine.
        interfaces: String,
    },
    /// The address needs no zone.
    #[error(
        "{address} is no link-local address (fe80::/10), so it takes no interface: leave %{zone} out"
    )]
    NotLinkLocal {
        /// The address.
        address: Ipv6Addr,
        /// The zone.
        zone: String,
    },
    /// There is no such interface.
    #[error("this machine has no interface {zone:?}; it has {interfaces}")]
    NoInterface {
        /// The zone.
        zone: String,
        /// The interfaces of this machine.
        interfaces: String,
    },
}

impl Zone {
    /// Takes the text behind the `%` of an address.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The zone as it was written.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The index of the interface now.
    ///
    /// # Errors
    /// This machine has no such interface.
    pub fn index(&self) -> Result<u32, ZoneError> {
        let by_name = if_nametoindex(self.0.as_str()).ok();
        let by_index = || {
            let index = self.0.parse().ok()?;
            interfaces().iter().any(|(_, existing)| *existing == index).then_some(index)
        };
        by_name
            .or_else(by_index)
            .ok_or_else(|| ZoneError::NoInterface { zone: self.0.clone(), interfaces: listed() })
    }
}

/// The socket address of an IPv6 address with its zone. A link-local address needs one (RFC 4291
/// sections 2.5.6 and 2.7), and no other takes one.
///
/// # Errors
/// [`ZoneError`].
pub fn with_zone(
    address: Ipv6Addr,
    zone: Option<&Zone>,
    port: u16,
) -> Result<SocketAddrV6, ZoneError> {
    let scope = match (is_link_local(address), zone) {
        (true, Some(zone)) => zone.index()?,
        (true, None) => return Err(ZoneError::missing(address)),
        (false, Some(Zone(zone))) => {
            return Err(ZoneError::NotLinkLocal { address, zone: zone.clone() });
        }
        (false, None) => 0,
    };
    Ok(SocketAddrV6::new(address, port, 0, scope))
}

/// Takes the zone out of a URL. It stands behind a `%` (as curl takes it) or a `%25` (RFC 6874
/// section 2) in the brackets of the host. It means something on this machine only, so what goes to
/// a server must not have it (RFC 6874 section 4).
pub fn take_zone(url: &str) -> (String, Option<Zone>) {
    let Some((from, to)) = zone_in(url) else { return (url.to_owned(), None) };
    let written = &url[from + 1..to];
    // "%25" alone is the interface with the index 25.
    let name = written.strip_prefix("25").filter(|name| !name.is_empty()).unwrap_or(written);
    let name = percent_decode_str(name).decode_utf8_lossy();
    ([&url[..from], &url[to..]].concat(), Some(Zone::new(&name)))
}

/// Where the `%` of a zone is in a URL, and the bracket behind the zone.
fn zone_in(url: &str) -> Option<(usize, usize)> {
    let authority = url.find("://")? + 3;
    let end = url[authority..].find(['/', '?', '#', '\\']).map_or(url.len(), |end| authority + end);
    let host = url[authority..end].rfind('@').map_or(authority, |at| authority + at + 1);
    let inside = url[host..end].strip_prefix('[')?;
    let (inside, _) = inside.split_once(']')?;
    let percent = host + 1 + inside.find('%')?;
    Some((percent, host + 1 + inside.len()))
}

impl ZoneError {
    fn missing(address: Ipv6Addr) -> Self {
        let mut names = interfaces().into_iter().map(|(name, _)| name);
        let example = names.find(|name| name != "lo").unwrap_or_else(|| "eth0".to_owned());
        Self::Missing { address, example, interfaces: listed() }
    }
}

/// The names and indices of this machine's interfaces.
fn interfaces() -> Vec<(String, u32)> {
    let Ok(all) = if_nameindex() else { return Vec::new() };
    all.iter().map(|one| (one.name().to_string_lossy().into_owned(), one.index())).collect()
}

/// The names of this machine's interfaces, for an error.
fn listed() -> String {
    let names: Vec<_> = interfaces().into_iter().map(|(name, _)| name).collect();
    names.join(", ")
}

fn is_link_local(address: Ipv6Addr) -> bool {
    let is_multicast = address.segments()[0] & 0xff0f == 0xff02;
    address.is_unicast_link_local() || is_multicast
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lo() -> u32 {
        if_nametoindex("lo").unwrap()
    }

    #[test]
    fn a_zone_is_the_name_or_the_index_of_an_interface() {
        assert_eq!(Zone::new("lo").index(), Ok(lo()));
        assert_eq!(Zone::new(&lo().to_string()).index(), Ok(lo()));
        for wrong in
            ["", "nothing0", "0", "4000000000", "-1", "l\0o", "a name of more than 15 bytes"]
        {
            let said = Zone::new(wrong).index().unwrap_err().to_string();
            assert!(said.starts_with("this machine has no interface \""), "{said}");
            assert!(said.contains("; it has ") && said.contains("lo"), "{said}");
        }
    }

    #[test]
    fn link_local_addresses_need_a_zone_and_others_take_none() {
        let zone = Zone::new("lo");
        for (address, zone, expected) in [
            ("fe80::1", Some(&zone), Ok(lo())),
            ("febf::1", Some(&zone), Ok(lo())),
            ("ff02::1", Some(&zone), Ok(lo())),
            ("ff12::1", Some(&zone), Ok(lo())),
            ("2001:db8::1", None, Ok(0)),
            ("fec0::1", None, Ok(0)),
            ("ff05::1", None, Ok(0)),
            ("fe80::1", None, Err("name the interface behind it, as in fe80::1%")),
            ("2001:db8::1", Some(&zone), Err("leave %lo out")),
            ("::1", Some(&zone), Err("no link-local address")),
        ] {
            let found = with_zone(address.parse().unwrap(), zone, 1);
            match (found, expected) {
                (Ok(found), Ok(scope)) => assert_eq!(found.scope_id(), scope, "{address}"),
                (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{error}"),
                (found, _) => panic!("{address}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_url_has_its_zone_behind_a_percent_sign_or_behind_its_encoding() {
        for (url, rest, zone) in [
            ("http://[fe80::1%25eth0]/a%20b", "http://[fe80::1]/a%20b", Some("eth0")),
            ("http://[fe80::1%eth0]:8443/", "http://[fe80::1]:8443/", Some("eth0")),
            ("https://u:p%40@[fe80::1%25wlan0.7]", "https://u:p%40@[fe80::1]", Some("wlan0.7")),
            ("http://[fe80::1%25br%2Dlan]/", "http://[fe80::1]/", Some("br-lan")),
            ("http://[fe80::1%25]/", "http://[fe80::1]/", Some("25")),
            ("http://[fe80::1%3]?q", "http://[fe80::1]?q", Some("3")),
            ("http://[fe80::1%]/", "http://[fe80::1]/", Some("")),
            ("http://[2001:db8::1]/%25eth0", "http://[2001:db8::1]/%25eth0", None),
            ("http://a%25b/[fe80::1%25c]", "http://a%25b/[fe80::1%25c]", None),
            ("http://a?@[fe80::1%25c]", "http://a?@[fe80::1%25c]", None),
            ("[fe80::1%25c]", "[fe80::1%25c]", None),
            ("http://[fe80::1%25c", "http://[fe80::1%25c", None),
        ] {
            let (found, at) = take_zone(url);
            assert_eq!((found.as_str(), at.as_ref().map(Zone::name)), (rest, zone), "{url}");
        }
    }
}
