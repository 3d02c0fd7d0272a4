//! The UDP socket of presence messages, bound to one interface.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

/// The size of the buffer for a datagram, bytes. A presence message is far shorter. A longer datagram is cut, and
/// then refused for its length.
const LONGEST_DATAGRAM: usize = 512;
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;
/// The most datagrams that are received before the loop looks at its timers again.
const BATCH: usize = 64;

/// Sends to and receives from one interface only.
#[derive(Debug)]
pub(crate) struct Presence {
    receiver: UdpSocket,
    /// The same socket outside the event loop: sending does not wait for room, it fails instead.
    sender: std::net::UdpSocket,
    to: SocketAddrV4,
}

impl Presence {
    /// Opens the socket on the interface that has this name now. After the interface was removed and added again,
    /// another socket is needed.
    pub(crate) fn open(interface: &str, to: Ipv4Addr, port: u16) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        // Before `bind`, so that its queue never holds a datagram of another interface.
        socket.bind_device(Some(interface.as_bytes()))?;
        socket.set_broadcast(true)?;
        socket.set_nonblocking(true)?;
        // A large queue, so that a flood during a tick does not displace the peers' messages. With
        // CAP_NET_ADMIN it may exceed `net.core.rmem_max`; without, the default stays.
        let _ = setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER_BYTES);
        socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into())?;
        let sender = socket.try_clone()?.into();
        let receiver = UdpSocket::from_std(socket.into())?;
        Ok(Self { receiver, sender, to: SocketAddrV4::new(to, port) })
    }

    /// The destination of messages.
    pub(crate) fn to(&self) -> SocketAddrV4 {
        self.to
    }

    /// Waits until a datagram can be received.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.receiver.readable().await
    }

    /// Gives at most a batch of the waiting datagrams to `take`.
    pub(crate) fn receive(&self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = [0; LONGEST_DATAGRAM];
        for _ in 0..BATCH {
            match self.receiver.try_recv(&mut buffer) {
                Ok(length) => take(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Broadcasts `datagram`; a full socket queue is an error.
    pub(crate) fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.sender.send_to(datagram, self.to).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn the_first_message_is_sent_at_once_on_the_interface() {
        let to = Ipv4Addr::new(127, 255, 255, 255);
        let port = wakeai_api::config::DEFAULT_PORT + 1;
        let presence = Presence::open("lo", to, port).unwrap();
        presence.send(b"here").unwrap();
        presence.readable().await.unwrap();
        let mut heard = Vec::new();
        presence.receive(|datagram| heard.push(datagram.to_vec())).unwrap();
        assert_eq!(heard, [b"here".to_vec()]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_interface_that_is_not_there_is_an_error() {
        assert!(Presence::open("wlan77", Ipv4Addr::BROADCAST, 0).is_err());
    }
}
