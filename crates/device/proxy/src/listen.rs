//! Listening sockets.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::ProxyError;

/// The length of the accept queue; the kernel limits it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// How connections come to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The client names its destination, in SOCKS5 or HTTP.
    Explicit,
    /// The rules of the transparent mode intercept forwarded connections. The destination is the
    /// address that the client connected to.
    Forwarded,
    /// The rules intercept connections that this machine opens itself. The destination is the
    /// address that the client connected to, as for [`Self::Forwarded`].
    Own,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener<S = Socket> {
    pub(crate) socket: S,
    pub(crate) address: SocketAddr,
    pub(crate) entry: Entry,
}

/// Opens a listening socket. `prepare` sets socket options before the socket is bound.
pub(crate) fn listen(
    address: SocketAddr,
    entry: Entry,
    prepare: impl FnOnce(&Socket) -> io::Result<()>,
) -> Result<Listener, ProxyError> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(true)?;
        prepare(&socket)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let address = socket.local_addr()?.as_socket().expect("the socket is one of IP");
        Ok(Listener { socket, address, entry })
    };
    open().map_err(|source| ProxyError::Listen { address, source })
}
