//! Runs the listener, which records the datagrams of a sender, on a socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use wakeai_units::{Duration, Instant};

use super::clock;
use super::receive::{ReceivedDatagram, receive};
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

/// Serves the datagrams of one session. When it begins, this calls `greeted` with the sender's address and the number of
/// the session.
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
        await_datagram([socket], due)?;
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

/// Waits until one of the sockets has a datagram or an error, until `due`, or until the next call of a [`Stop`].
pub(super) fn await_datagram<'a>(
    sockets: impl IntoIterator<Item = &'a UdpSocket>,
    due: Instant,
) -> io::Result<()> {
    let ready = sockets.into_iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN));
    let wait = due.saturating_since(clock::now()).min(Duration::from_millis(STOP_MS.into()));
    let wait_ms = u16::try_from(wait.as_millis() + 1).unwrap_or(STOP_MS);
    match poll(&mut ready.collect::<Vec<_>>(), PollTimeout::from(wait_ms)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
