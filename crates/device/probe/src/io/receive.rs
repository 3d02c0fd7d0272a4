//! Receives UDP datagrams with the kernel's time stamps.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use wakeai_units::Instant;

use super::clock;

/// The size of the socket's queue, which holds the datagrams that arrive while this process waits
/// for a processor.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// A received datagram, whose bytes are in the caller's buffer.
pub(crate) struct ReceivedDatagram {
    pub(crate) from: SocketAddr,
    pub(crate) length: usize,
    /// When the kernel received the datagram, by `CLOCK_MONOTONIC`.
    pub(crate) at: Instant,
    /// The number of datagrams that this socket had no room for until then; `None` if there were
    /// none.
    pub(crate) overflowed: Option<u32>,
}

/// Asks the kernel for time stamps, the number of overflows, and a long queue.
pub(crate) fn prepare(socket: &UdpSocket) -> io::Result<()> {
    setsockopt(socket, sockopt::ReceiveTimestampns, &true)?;
    setsockopt(socket, sockopt::RxqOvfl, &1)?;
    // Without root the sysctl net.core.rmem_max limits the length of the queue.
    if setsockopt(socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
        setsockopt(socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
    }
    Ok(())
}

/// The next datagram that waits; `None` if there is none.
pub(crate) fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
) -> io::Result<Option<ReceivedDatagram>> {
    let mut space = cmsg_space!(TimeSpec, u32);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_DONTWAIT;
    let message =
        match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Ok(message) => message,
            // ECONNREFUSED is an ICMP error about an earlier answer, and does not concern this
            // call.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
    let (mut at, mut overflowed) = (None, None);
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::ScmTimestampns(time) => at = Some(clock::instant(&time)),
            ControlMessageOwned::RxqOvfl(count) => overflowed = Some(count),
            _ => {}
        }
    }
    let Some(from) = message.address.as_ref().and_then(address) else { return Ok(None) };
    // The kernel stamps datagrams with the wall clock, which may be set during a measurement.
    let at = at.map_or_else(clock::now, clock::monotonic);
    Ok(Some(ReceivedDatagram { from, length: message.bytes, at, overflowed }))
}

/// The address in Rust's type. An IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2) stays as it is,
/// because the answer goes out on the same IPv6 socket.
fn address(found: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = found.as_sockaddr_in() {
        return Some(SocketAddr::from((v4.ip(), v4.port())));
    }
    found.as_sockaddr_in6().map(|v6| SocketAddr::V6(std::net::SocketAddrV6::from(*v6)))
}
