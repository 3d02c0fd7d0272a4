//! The cookie of a network namespace.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

use nix::sys::socket::{getsockopt, sockopt::GetStruct};

use crate::error::Error;

/// The cookie of the calling thread's network namespace (`SO_NETNS_COOKIE`, Linux 5.14).
///
/// Unlike the inode of `/proc/self/ns/net` it is never given to another namespace later. Therefore the maps of bounds
/// use it as a key.
///
/// # Errors
///
/// Where the kernel is older or allows no socket.
pub fn netns_cookie() -> io::Result<u64> {
    // The socket is bound to the unspecified address, which works even while the loopback
    // interface is down.
    let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
    let socket = any.or_else(|_| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)))?;
    Ok(getsockopt(&socket, NetnsCookie)?)
}

#[derive(Clone, Copy)]
struct NetnsCookie;

nix::getsockopt_impl!(NetnsCookie, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, u64, GetStruct<u64>);

/// The error of the operation `asked`, for which the cookie could not be read.
pub(crate) fn unreadable(asked: &str, error: io::Error) -> Error {
    if error.raw_os_error() != Some(libc::ENOPROTOOPT) {
        return Error::from_io("read the namespace's cookie", error);
    }
    Error::Feature {
        asked: asked.to_owned(),
        lacks: "cookies of network namespaces (SO_NETNS_COOKIE)".to_owned(),
        remedy: "use Linux 6.0 or later".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_of_one_namespace_read_one_cookie() {
        let other = std::thread::spawn(netns_cookie).join().unwrap().unwrap();
        assert_eq!(netns_cookie().unwrap(), other);
        assert_ne!(other, 0);
    }
}
