//! What the other end of a connection has not acknowledged.

#![allow(unsafe_code, reason = "no library that is used here has this request of ioctl(2)")]

use std::os::fd::AsRawFd as _;

use nix::libc::{TIOCOUTQ, c_int, ioctl};
use tokio::net::TcpStream;

/// The number of bytes in the socket's send buffer that the other end has not acknowledged, a
/// half-close counted as one (`SIOCOUTQ`, tcp(7)).
pub(crate) fn unacknowledged(stream: &TcpStream) -> usize {
    let mut bytes: c_int = 0;
    // SAFETY: the request writes one int, to which the pointer leads.
    let asked = unsafe { ioctl(stream.as_raw_fd(), TIOCOUTQ, &raw mut bytes) };
    if asked == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
}
