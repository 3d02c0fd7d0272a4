//! Opens the connection to the destination: name, access lists, source address, algorithm, and what a failure
//! means.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_local;
use tokio::time::timeout;
use wakeai_daemon::Client;
use wakeai_net::{Failure, LookupError, lookup};

use crate::negotiation::Outcome;
use crate::shared::{Shared, Slot};
use crate::target::{Host, Target};
use crate::transparent::OWN_MARK;

/// Connects to the destination `target` of a client at `client`, if the access lists allow it. The
/// lookup of a name and the attempts at its addresses each take at most the connect timeout. The
/// destination sees the address `source`, with its port if that is free; without one the proxy's.
///
/// # Errors
///
/// The reason why there is no connection. The answer to the client states it.
pub(crate) async fn connect(
    slot: &Rc<Slot>,
    client: SocketAddr,
    target: &Target,
    source: Option<SocketAddr>,
) -> Result<TcpStream, Outcome> {
    let shared = &slot.shared;
    let looked_up =
        timeout(shared.config.connect_timeout.into(), addresses(slot, client, target)).await;
    let connected = match looked_up.unwrap_or(Err(Outcome::LookupFailed)) {
        Ok(addresses) => connect_to_one_of(shared, client, addresses, source).await,
        Err(outcome) => Err(outcome),
    };
    connected.inspect_err(|outcome| match outcome {
        Outcome::Denied => shared.counters.denied_destinations.one(),
        _ => shared.counters.failed_connects.one(),
    })
}

/// Tries the addresses by the rules of RFC 8305. Each of them passes the access lists before its
/// attempt, because a name could lead to an address that the lists forbid.
async fn connect_to_one_of(
    shared: &Shared,
    client: SocketAddr,
    addresses: Vec<SocketAddr>,
    source: Option<SocketAddr>,
) -> Result<TcpStream, Outcome> {
    // One attempt uses the file of the client's slot, which the connection will have. Attempts
    // beside it use files that all clients share.
    let own = Semaphore::new(1);
    let attempt = async |address| {
        if !shared.allows(client.ip(), address) {
            return Err(Outcome::Denied);
        }
        let _file = tokio::select! {
            biased;
            own = own.acquire() => (own.ok(), None),
            more = shared.attempts.take(Client::at(client.ip())) => (None, Some(more)),
        };
        connect_to(shared, address, source).await.map_err(|error| {
            tracing::debug!(%client, %address, %error, "cannot connect");
            outcome_of(&error)
        })
    };
    let connected = wakeai_net::connect(addresses, shared.config.connect_timeout, attempt).await;
    connected.map_err(|unreached| {
        let failures = unreached.attempts.into_iter().map(|attempt| match attempt.failure {
            Failure::Error(outcome) => outcome,
            Failure::NoAnswer | Failure::NotTried => Outcome::TimedOut,
        });
        failures.max_by_key(|outcome| weight(*outcome)).unwrap_or(Outcome::NoSuchName)
    })
}

/// Which outcome is told where the addresses of a name had different ones: the one that was found
/// nearest to the destination.
fn weight(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Refused => 5,
        Outcome::TimedOut => 4,
        Outcome::HostUnreachable => 3,
        Outcome::NetworkUnreachable => 2,
        Outcome::Failed => 1,
        _ => 0,
    }
}

/// The addresses of the destination.
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
                let found = lookup(&name, port).await.map_err(|error| {
                    tracing::debug!(%error, "the name was not found");
                    match error {
                        LookupError::NoSuchName(_) | LookupError::NoAddress(_) => {
                            Outcome::NoSuchName
                        }
                        _ => Outcome::LookupFailed,
                    }
                });
                drop((share, slot));
                let canonical = |found: SocketAddr| (found.ip().to_canonical(), port).into();
                // The client may be gone.
                let _ = tell.send(found.map(|found| found.into_iter().map(canonical).collect()));
            });
            told.await.unwrap_or(Err(Outcome::Failed))
        }
    }
}

async fn connect_to(
    shared: &Shared,
    to: SocketAddr,
    source: Option<SocketAddr>,
) -> io::Result<TcpStream> {
    let Some(client) = source else {
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
    if !shared.config.transparent.is_empty() {
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
        Some(Errno::ECONNREFUSED | Errno::ECONNRESET) => Outcome::Refused,
        // EINVAL: a link-local address without its zone, which no request of a client has.
        Some(Errno::ENETUNREACH | Errno::ENETDOWN | Errno::EINVAL) => Outcome::NetworkUnreachable,
        Some(Errno::EHOSTUNREACH | Errno::EHOSTDOWN) => Outcome::HostUnreachable,
        Some(Errno::ETIMEDOUT) => Outcome::TimedOut,
        // A firewall of this machine (connect(2)).
        Some(Errno::EACCES | Errno::EPERM) => Outcome::Denied,
        _ => Outcome::Failed,
    }
}
