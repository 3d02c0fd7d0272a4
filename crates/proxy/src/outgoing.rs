//! Opens the connection to the destination.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use crate::negotiation::Outcome;
use crate::shared::Shared;
use crate::shares::Client;
use crate::slot::Slot;
use crate::target::{Host, Target};
use crate::transparent::OWN_MARK;

/// The source address that the destination sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The proxy's address.
    Proxy,
    /// The client's address, with the client's port if that is free.
    Client(SocketAddr),
}

/// Connects to the destination `target` of a client at `client`, if the access lists allow it.
///
/// # Errors
///
/// The reason why there is no connection. The answer to the client states it.
pub(crate) async fn connect(
    slot: &Rc<Slot>,
    client: SocketAddr,
    target: &Target,
    source: Source,
) -> Result<TcpStream, Outcome> {
    let shared = &slot.shared;
    let attempt = tokio::time::timeout(shared.connect_timeout, async {
        let mut outcome = Outcome::NoSuchName;
        for address in addresses(slot, client, target).await? {
            if !shared.allows(client.ip(), address) {
                outcome = Outcome::Denied;
                continue;
            }
            match connect_to(shared, address, source).await {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    tracing::debug!(%client, %address, %error, "cannot connect");
                    outcome = outcome_of(&error);
                }
            }
        }
        Err(outcome)
    });
    let outcome = match attempt.await {
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(outcome)) => outcome,
        Err(_elapsed) => Outcome::TimedOut,
    };
    match outcome {
        Outcome::Denied => shared.counters.denied_destinations.one(),
        _ => shared.counters.failed_connects.one(),
    }
    Err(outcome)
}

/// The addresses of the destination. The caller must check each of them against the access lists,
/// because a name could lead to an address that the lists forbid.
async fn addresses(
    slot: &Rc<Slot>,
    client: SocketAddr,
    target: &Target,
) -> Result<Vec<SocketAddr>, Outcome> {
    match &target.host {
        Host::Address(address) => Ok(vec![(address.to_canonical(), target.port).into()]),
        // localhost is always loopback; neither a name server nor /etc/hosts is asked (RFC 6761
        // section 6.3).
        Host::Name(_) if target.host.is_localhost() => {
            let both: [IpAddr; 2] = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
            Ok(both.map(|address| (address, target.port).into()).to_vec())
        }
        Host::Name(name) => {
            let share = slot.shared.lookups.take(Client::at(client.ip())).await;
            let (tell, told) = oneshot::channel();
            let (name, port, slot) = (name.clone(), target.port, Rc::clone(slot));
            // A lookup cannot be cancelled, so it continues after the client has left. Until it
            // ends it holds the client's slot (its right to a connection). A client that reconnects
            // again and again therefore cannot have more lookups than slots.
            spawn_local(async move {
                let found = match lookup_host((name.as_str(), port)).await {
                    Ok(found) => Ok(found
                        .map(|found| (found.ip().to_canonical(), found.port()).into())
                        .collect()),
                    Err(error) => {
                        tracing::debug!(name, %error, "the name was not found");
                        Err(Outcome::NoSuchName)
                    }
                };
                drop((share, slot));
                let _ = tell.send(found); // the client may be gone
            });
            told.await.unwrap_or(Err(Outcome::Failed))
        }
    }
}

async fn connect_to(shared: &Shared, to: SocketAddr, source: Source) -> io::Result<TcpStream> {
    let Source::Client(client) = source else {
        return TcpSocket::from_std_stream(socket(shared, to)?.into()).connect(to).await;
    };
    let attempt = async |from| {
        let socket = socket(shared, to)?;
        prepare_as_client(&socket, from)?;
        TcpSocket::from_std_stream(socket.into()).connect(to).await
    };
    let outcome = attempt(client).await;
    match outcome.as_ref().map_err(io::Error::kind) {
        // Another socket has a connection from this address and port to the same destination. If
        // the client runs on this machine, it is the client's own socket.
        Err(io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable) => {
            attempt(SocketAddr::new(client.ip(), 0)).await
        }
        _ => outcome,
    }
}

fn socket(shared: &Shared, to: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // Nagle's algorithm is off, so that the proxy passes every byte on at once.
    socket.set_tcp_nodelay(true)?;
    if let Some(algorithm) = shared.destination_algorithm() {
        socket.set_tcp_congestion(algorithm.as_bytes())?;
    }
    if shared.config.transparent.is_any() {
        socket.set_mark(OWN_MARK)?;
    }
    Ok(socket)
}

/// Gives a socket the client's address, which is not this machine's (`IP_TRANSPARENT`, ip(7)).
fn prepare_as_client(socket: &Socket, from: SocketAddr) -> io::Result<()> {
    match from.ip() {
        IpAddr::V4(_) => socket.set_ip_transparent_v4(true)?,
        IpAddr::V6(_) => socket.set_ip_transparent_v6(true)?,
    }
    socket.set_reuse_address(true)?;
    socket.bind(&from.into())
}

fn outcome_of(error: &io::Error) -> Outcome {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ECONNREFUSED) => Outcome::Refused,
        Some(Errno::ENETUNREACH) => Outcome::NetworkUnreachable,
        Some(Errno::EHOSTUNREACH) => Outcome::HostUnreachable,
        Some(Errno::ETIMEDOUT) => Outcome::TimedOut,
        _ => Outcome::Failed,
    }
}
