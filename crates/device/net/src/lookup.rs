//! Asks the resolver of the C library for the addresses of a name.

use std::io;
use std::net::SocketAddr;

use dns_lookup::{AddrInfoHints, LookupErrorKind, SockType, getaddrinfo};

/// Why a name gave no address.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// Nobody knows the name.
    #[error("no host has the name {0:?}: check how it is spelled")]
    NoSuchName(String),
    /// The name exists, and has neither an IPv4 nor an IPv6 address.
    #[error("the name {0:?} exists and has no IP address")]
    NoAddress(String),
    /// No name server has answered. Another attempt may succeed.
    #[error(
        "cannot look up {0:?}: the name servers do not answer; try again later, or see \
         /etc/resolv.conf"
    )]
    NoAnswer(String),
    /// The resolver failed.
    #[error("cannot look up {name:?}: {source}")]
    Failed {
        /// The name.
        name: String,
        /// What the resolver says.
        source: io::Error,
    },
}

impl LookupError {
    /// Whether another attempt may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::NoAnswer(_) | Self::Failed { .. })
    }
}

/// The addresses of `name`, in the order in which they should be tried (RFC 6724). A numeric
/// address is its own. The lookup runs on a thread of tokio's pool and cannot be cancelled.
///
/// # Errors
/// [`LookupError`].
pub async fn lookup(name: &str, port: u16) -> Result<Vec<SocketAddr>, LookupError> {
    let asked = name.to_owned();
    let found = tokio::task::spawn_blocking(move || lookup_blocking(&asked, port)).await;
    found.unwrap_or_else(|error| {
        let source = io::Error::other(error.to_string());
        Err(LookupError::Failed { name: name.to_owned(), source })
    })
}

/// Does what [`lookup`] does, on the calling thread.
///
/// # Errors
/// [`LookupError`].
pub fn lookup_blocking(name: &str, port: u16) -> Result<Vec<SocketAddr>, LookupError> {
    // Without a type of socket the resolver would give each address once for each type.
    let hints = AddrInfoHints { socktype: SockType::Stream.into(), ..AddrInfoHints::default() };
    let own = || name.to_owned();
    let found =
        getaddrinfo(Some(name), Some(&port.to_string()), Some(hints)).map_err(
            |error| match error.kind() {
                LookupErrorKind::NoName => LookupError::NoSuchName(own()),
                LookupErrorKind::NoData => LookupError::NoAddress(own()),
                LookupErrorKind::Again => LookupError::NoAnswer(own()),
                _ => LookupError::Failed { name: own(), source: error.into() },
            },
        )?;
    let addresses: Vec<_> = found.flatten().map(|found| found.sockaddr).collect();
    if addresses.is_empty() { Err(LookupError::NoAddress(own())) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_its_own_address_once() {
        for (name, shown) in [("192.0.2.7", "192.0.2.7:5"), ("2001:db8::7", "[2001:db8::7]:5")] {
            let found = lookup_blocking(name, 5).unwrap();
            assert_eq!(found, [shown.parse().unwrap()]);
        }
    }

    #[tokio::test]
    async fn a_name_that_cannot_exist_is_told_from_one_that_could_not_be_asked_for() {
        let error = lookup("a name with spaces", 5).await.unwrap_err();
        assert!(matches!(error, LookupError::NoSuchName(_)), "{error}");
        assert!(!error.may_pass());
        let error = lookup("nul\0", 5).await.unwrap_err();
        assert!(matches!(error, LookupError::Failed { .. }), "{error}");
    }
}
