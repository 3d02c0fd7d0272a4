//! The destination that a client asks for.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The largest length of a name (RFC 1035 §2.3.4), as text without the final dot.
const NAME_BYTES: usize = 253;

/// The host that a client names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address.
    Address(IpAddr),
    /// A name for the proxy to look up.
    Name(String),
}

/// Host and port of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port, which is not 0.
    pub port: u16,
}

impl Host {
    /// Reads an address, or a name made of letters, digits, `-`, `_` and dots; `None` for anything
    /// else. A name goes to the resolver, and the addresses that it returns are checked later.
    pub fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        if let Ok(address) = text.parse() {
            return Some(Self::Address(address));
        }
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let name = text.strip_suffix('.').unwrap_or(text);
        let whole = !name.is_empty() && name.len() <= NAME_BYTES && name.bytes().all(sound);
        whole.then(|| Self::Name(text.to_owned()))
    }

    /// Whether the host is `localhost`, or a name below `localhost` (RFC 6761 section 6.3).
    pub(crate) fn is_localhost(&self) -> bool {
        let Self::Name(name) = self else { return false };
        let last = name.strip_suffix('.').unwrap_or(name).rsplit('.').next();
        last.is_some_and(|label| label.eq_ignore_ascii_case("localhost"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_and_what_ends_in_it_is_this_host() {
        let is_local = |name: &[u8]| Host::read(name).expect("a name").is_localhost();
        for name in [&b"localhost"[..], b"LocalHost.", b"a.localhost"] {
            assert!(is_local(name), "{}", String::from_utf8_lossy(name));
        }
        for name in [&b"localhost.example"[..], b"notlocalhost", b"127.0.0.1"] {
            assert!(!is_local(name), "{}", String::from_utf8_lossy(name));
        }
    }
}
