//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::Socket;
use wakeai_daemon::BACKLOG;

use crate::error::ProxyError;

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
pub(crate) struct Listener<S = TcpListener> {
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
        let socket = wakeai_daemon::listen(address, BACKLOG, prepare)?;
        let address = socket.local_addr()?;
        Ok(Listener { socket, address, entry })
    };
    open().map_err(|source| ProxyError::Listen { address, source })
}
