//! Listening sockets of the proxy, for each way in which a client names its destination.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::Socket;
use wakeai_daemon::BACKLOG;

use crate::config::Intercepted;
use crate::error::ProxyError;

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener<S = TcpListener> {
    pub(crate) socket: S,
    pub(crate) address: SocketAddr,
    /// Whose connections the rules of the transparent mode give to it. Their destination is the address that the client
    /// connected to. Without such rules the client names its destination, in SOCKS5 or HTTP.
    pub(crate) intercepted: Option<Intercepted>,
}

/// Opens a listening socket. `prepare` sets socket options before the socket is bound.
pub(crate) fn listen(
    address: SocketAddr,
    intercepted: Option<Intercepted>,
    prepare: impl FnOnce(&Socket) -> io::Result<()>,
) -> Result<Listener, ProxyError> {
    let open = || {
        let socket = wakeai_daemon::listen(address, BACKLOG, prepare)?;
        let address = socket.local_addr()?;
        Ok(Listener { socket, address, intercepted })
    };
    open().map_err(|source| ProxyError::Listen { address, source })
}
