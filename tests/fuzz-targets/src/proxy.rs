//! Fuzzes the reader of the requests of the proxy's clients.

use std::net::{IpAddr, Ipv4Addr};

use wakeai_host::Network;
use wakeai_proxy::{Access, Host};

#[path = "../../../crates/device/proxy/tests/talk/mod.rs"]
mod talk;

/// Reads a request of SOCKS5. The first byte is the length of the pieces in which the rest arrives.
pub(crate) fn socks(bytes: &[u8]) {
    let [piece, rest @ ..] = bytes else { return };
    check(&[&[5], rest].concat(), *piece);
}

/// Reads a request of HTTP CONNECT. The first byte is the length of the pieces in which the rest
/// arrives.
pub(crate) fn connect(bytes: &[u8]) {
    let [piece, rest @ ..] = bytes else { return };
    check(rest, *piece);
}

fn check(input: &[u8], piece: u8) {
    let talk = talk::check(input, usize::from(piece.max(1)));
    if let Ok(Some(target)) = talk.result
        && let Host::Address(address) = target.host
    {
        never_special(address);
    }
}

/// Checks that a list which allows every network does not allow special addresses. These are what
/// the standard library calls loopback, link-local, multicast, broadcast or unspecified.
fn never_special(destination: IpAddr) {
    let everywhere = ["0.0.0.0/0", "::/0"].map(|text| text.parse().expect("a network"));
    let access = Access { to: Vec::<Network>::from(everywhere), ..Access::default() };
    let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let special = match destination.to_canonical() {
        IpAddr::V4(v4) => {
            v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_unspecified()
                || v4.is_broadcast()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unicast_link_local()
                || v6.is_multicast()
                || v6.is_unspecified()
        }
    };
    let allowed = access.allows(client, destination, |_| false);
    assert!(!(special && allowed), "{destination}");
}
