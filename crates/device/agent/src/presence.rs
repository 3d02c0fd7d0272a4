//! The UDP socket of presence messages, bound to one interface.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::OnceCell;
use wakeai_units::text::visible;

/// The size of the buffer for a datagram, in bytes. A presence message is far shorter. A longer
/// datagram is truncated, and then refused because of its length.
const LONGEST_DATAGRAM: usize = 512;
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;
/// The largest number of datagrams that are received before the event loop checks its timers again.
const BATCH: usize = 64;

/// A socket that sends to and receives from one interface only.
#[derive(Debug)]
pub(crate) struct PresenceSocket {
    /// A send fails at once if the socket's queue is full.
    sender: std::net::UdpSocket,
    /// The same socket in the event loop, which waits for datagrams.
    receiver: OnceCell<UdpSocket>,
    pub(crate) to: SocketAddrV4,
    /// The index of the interface.
    pub(crate) index: u32,
}

impl PresenceSocket {
    /// Opens the socket on the interface that has this name and index now. An interface that was
    /// removed and added again needs a new socket. `to` is the destination address of messages, and
    /// the reason for this address, which is logged. If the port is in use, the error names the
    /// processes that use it.
    pub(crate) fn open(
        interface: &str,
        index: u32,
        to: (Ipv4Addr, String),
        port: u16,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        // `bind_device` comes before `bind`, so that the queue never holds a datagram of another
        // interface.
        socket.bind_device(Some(interface.as_bytes()))?;
        socket.set_broadcast(true)?;
        socket.set_nonblocking(true)?;
        // A large queue keeps a flood of datagrams during a tick from displacing the peers'
        // messages. With CAP_NET_ADMIN the size may exceed `net.core.rmem_max`. Without this
        // capability the default size stays.
        let _ = setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER_BYTES);
        let bound = socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into());
        bound.map_err(|error| taken(error, port))?;
        let (to, why) = to;
        tracing::info!("presence messages are sent to {to}:{port} ({why})");
        Ok(Self {
            sender: socket.into(),
            receiver: OnceCell::new(),
            to: SocketAddrV4::new(to, port),
            index,
        })
    }

    /// Sends to this address from now on.
    pub(crate) fn set_destination(&mut self, (to, why): (Ipv4Addr, String)) {
        if to != *self.to.ip() {
            self.to.set_ip(to);
            tracing::info!("presence messages are sent to {} ({why})", self.to);
        }
    }

    /// Waits until a datagram can be received.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        let register = async || UdpSocket::from_std(self.sender.try_clone()?);
        self.receiver.get_or_try_init(register).await?.readable().await
    }

    /// Gives the waiting datagrams to `take`, each with its source address. Gives at most one
    /// batch.
    pub(crate) fn receive(&self, mut take: impl FnMut(IpAddr, &[u8])) -> io::Result<()> {
        let mut buffer = [0; LONGEST_DATAGRAM];
        for _ in 0..BATCH {
            let Some(receiver) = self.receiver.get() else { break };
            match receiver.try_recv_from(&mut buffer) {
                Ok((length, from)) => take(from.ip(), &buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Broadcasts `datagram`. Returns an error if the socket's queue is full.
    pub(crate) fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.sender.send_to(datagram, self.to).map(|_| ())
    }
}

/// Replaces the error of a port that is in use by an error that names the processes with this port.
/// Returns any other error unchanged.
fn taken(error: io::Error, port: u16) -> io::Error {
    if error.kind() != io::ErrorKind::AddrInUse {
        return error;
    }
    let holders = holders(port);
    let holders = if holders.is_empty() {
        "a socket that has been closed since".to_owned()
    } else {
        holders.join(", ")
    };
    let said =
        format!("in use by {holders}; end it, or state another presence.port on all stations");
    io::Error::new(io::ErrorKind::AddrInUse, said)
}

/// Names the user of each UDP socket on this port in this network namespace. Also names the
/// process, if it is visible.
fn holders(port: u16) -> Vec<String> {
    let sockets = ["udp", "udp6"].map(|table| {
        fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default()
    });
    let sockets = sockets.iter().flat_map(|table| sockets_on(table, port));
    sockets
        .map(|(user, inode)| match process_with(inode) {
            Some(process) => format!("{process} of user {user}"),
            None => format!("a process of user {user}"), // only CAP_SYS_PTRACE shows the process
        })
        .collect()
}

/// The user and the inode of each socket on this port. In the table, the second column is the local
/// address, the eighth is the user and the tenth is the inode (`proc_pid_net(5)`).
fn sockets_on(table: &str, port: u16) -> Vec<(u32, u64)> {
    let socket = |line: &str| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let local = words.get(1)?.rsplit_once(':')?.1;
        let found = u16::from_str_radix(local, 16).ok()?;
        let (user, inode) = (words.get(7)?.parse().ok()?, words.get(9)?.parse().ok()?);
        (found == port).then_some((user, inode))
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// The process that has this socket open.
fn process_with(inode: u64) -> Option<String> {
    let link = format!("socket:[{inode}]");
    fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        process.file_name().to_str()?.parse::<u32>().ok()?; // only process ids, not `self`
        let mut files = fs::read_dir(process.path().join("fd")).ok()?.flatten();
        files.find(|file| {
            fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == link.as_str())
        })?;
        let name = fs::read(process.path().join("comm")).ok()?;
        let name = visible(&String::from_utf8_lossy(&name)); // a process chooses its name itself
        Some(format!("process {} ({name})", process.file_name().display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn the_first_message_is_sent_at_once_on_the_interface() {
        let to = Ipv4Addr::new(127, 255, 255, 255);
        let port = wakeai_api::config::DEFAULT_PORT + 1;
        let presence = PresenceSocket::open("lo", 1, (to, String::new()), port).unwrap();
        presence.send(b"here").unwrap();
        presence.readable().await.unwrap();
        let mut heard = Vec::new();
        presence.receive(|_, datagram| heard.push(datagram.to_vec())).unwrap();
        assert_eq!(heard, [b"here".to_vec()]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_interface_that_is_not_there_is_an_error() {
        let to = (Ipv4Addr::BROADCAST, String::new());
        assert!(PresenceSocket::open("wlan77", 77, to, 0).is_err());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_port_that_is_taken_is_refused_with_the_process_that_has_it() {
        let holder = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = holder.local_addr().unwrap().port();
        let to = (Ipv4Addr::BROADCAST, String::new());
        let refused = PresenceSocket::open("lo", 1, to, port).unwrap_err();
        let expected = format!("process {} (", std::process::id());
        assert!(refused.to_string().contains(&expected), "{refused}");
        let user = format!("of user {}", nix::unistd::getuid());
        assert!(refused.to_string().contains(&user), "{refused}");
    }

    #[test]
    fn sockets_on_other_ports_are_not_named() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  \
                     timeout inode ref pointer drops\n\
                     12: 00000000:4D07 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000 \
                     0 4242 2 0000 0\n\
                     13: 00000000:4D08 00000000:0000 07 00000000:00000000 00:00000000 00000000  1001 \
                     0 4243 2 0000 0\n";
        assert_eq!(sockets_on(table, 19719), [(1000, 4242)]);
    }
}
