//! Listening sockets.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::ProxyError;

/// The length of the accept queue; the kernel limits it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Opens a listening socket, and returns it with its address. `prepare` sets socket options before
/// the socket is bound.
pub(crate) fn listen(
    address: SocketAddr,
    prepare: impl FnOnce(&Socket) -> io::Result<()>,
) -> Result<(Socket, SocketAddr), ProxyError> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(true)?;
        prepare(&socket)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let bound = socket.local_addr()?;
        Ok((socket, bound.as_socket().expect("the socket is one of IP")))
    };
    open().map_err(|source| ProxyError::Listen { address, source })
}
