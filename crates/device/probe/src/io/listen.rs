//! Runs the listener, which records the datagrams of a sender, on a socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use wakeai_units::Duration;

use super::clock;
use super::receive::{ReceivedDatagram, prepare, receive};
use crate::listener::{Ending, Limits, Listener, Tally};
use crate::token::Token;

/// A function that is called now and then. It returns whether the caller has to end at once.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The time between two calls of a [`Stop`].
pub(crate) const STOP_MS: u16 = 100;

/// The result of a listener that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// Why the listener ended; `None` where it was stopped.
    pub ending: Option<Ending>,
    /// The sender's address, if there was a sender.
    pub peer: Option<SocketAddr>,
    /// What the listener has counted.
    pub tally: Tally,
}

/// Binds the socket of a listener.
///
/// # Errors
/// The address is not this machine's, or is in use.
pub fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    prepare(&socket)?;
    Ok(socket)
}

/// Listens until the session has ended.
///
/// # Errors
/// The socket fails.
pub fn listen(
    socket: &UdpSocket,
    token: &Token,
    limits: Limits,
    stop: Stop<'_>,
) -> io::Result<Heard> {
    listen_to(socket, token, limits, stop, &|_, _| {})
}

/// Does what [`listen`] does. When the session begins, it calls `greeted` with the sender's address
/// and the number of the session.
pub(super) fn listen_to(
    socket: &UdpSocket,
    token: &Token,
    limits: Limits,
    stop: Stop<'_>,
    greeted: &dyn Fn(SocketAddr, u64),
) -> io::Result<Heard> {
    let mut listener = Listener::new(clock::now(), token, limits);
    let (mut buffer, mut is_greeted) = ([0; 2048], false);
    while listener.ended().is_none() && !stop() {
        let due = listener.next_timeout().unwrap_or_default();
        let wait = due.saturating_since(clock::now()).min(Duration::from_millis(STOP_MS.into()));
        let mut ready = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        let wait_ms = u16::try_from(wait.as_millis() + 1).unwrap_or(STOP_MS);
        match poll(&mut ready, PollTimeout::from(wait_ms)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        // The number is limited, so that a flood does not keep the listener from its timeouts.
        for _ in 0..1_000 {
            let Some(found) = receive(socket, &mut buffer)? else { break };
            let ReceivedDatagram { from, length, at, overflowed } = found;
            if let Some(overflowed) = overflowed {
                listener.handle_overflow(overflowed);
            }
            let answer = listener.handle_datagram(clock::now(), at, from, &buffer[..length]);
            let Some(answer) = answer.map(<[u8]>::to_vec) else { continue };
            if let Some((peer, session)) = listener.session().filter(|_| !is_greeted) {
                is_greeted = true;
                greeted(peer, session);
            }
            // An error is only logged, because the sender repeats a request without an answer.
            if let Err(error) = socket.send_to(&answer, from) {
                tracing::debug!(%error, %from, "an answer was not sent");
            }
        }
        listener.handle_timeout(clock::now());
    }
    Ok(Heard {
        ending: listener.ended(),
        peer: listener.session().map(|(peer, _)| peer),
        tally: listener.tally(),
    })
}
