//! Relays between a client and its destination: passes bytes, half-closes and resets from one side
//! to the other.

use std::cell::Cell;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::fcntl::{SpliceFFlags, splice};
use nix::sys::socket::{MsgFlags, recv, send};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::counters::Count;
use crate::pipes::{Loan, PIPE_BYTES};
use crate::shared::Shared;
use crate::shares::SHORTEST;
use crate::slot::Slot;

/// The number of chunks that a connection relays before another connection takes its turn.
const CHUNKS_PER_TURN: usize = 16;

/// How a relayed connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Both sides have closed, and everything was passed on.
    Finished,
    /// One side was reset or lost.
    Reset,
    /// No byte was carried for the time that [`Slot::idle_limit`] allows.
    Idle,
    /// One side no longer answered.
    Dead,
}

/// Relays until the end. The caller then drops both connections. This closes them after
/// [`End::Finished`], and resets them after any other end.
///
/// A half-close is passed on after all bytes before it, and the other direction goes on. A reset of
/// one connection resets the other at once. The bytes in between are discarded, as on a connection
/// without a proxy.
pub(crate) async fn relay(
    slot: &Slot,
    client: &TcpStream,
    destination: &TcpStream,
    early: Vec<u8>,
) -> End {
    let shared = &*slot.shared;
    for leg in [client, destination] {
        probe(leg, shared.idle_timeout);
    }
    let moved = Cell::new(Instant::now());
    let counters = &shared.counters;
    let up = async {
        write_all(destination, early, |bytes| counters.bytes_up.add(bytes)).await?;
        pump(shared, client, destination, &moved, &counters.bytes_up).await
    };
    let down = pump(shared, destination, client, &moved, &counters.bytes_down);
    let end = tokio::select! {
        both = async { tokio::try_join!(up, down) } => match both {
            Ok(_) => End::Finished,
            Err(error) => {
                tracing::debug!(%error, "a connection failed");
                ended_by(Some(error))
            }
        },
        () = failed(client) => ended_by(client.take_error().unwrap_or_default()),
        () = failed(destination) => ended_by(destination.take_error().unwrap_or_default()),
        () = idle(&moved, slot) => End::Idle,
    };
    if end != End::Finished {
        reset(client);
        reset(destination);
    }
    end
}

/// Makes the connection end with a reset when it is dropped.
pub(crate) fn reset(stream: &TcpStream) {
    if let Err(error) = SockRef::from(stream).set_linger(Some(Duration::ZERO)) {
        tracing::debug!(%error, "cannot make the connection end with a reset");
    }
}

/// Returns when the connection was reset or lost. It notices this even while nothing is read or
/// written.
pub(crate) async fn failed(stream: &TcpStream) {
    while let Ok(ready) = stream.ready(Interest::ERROR).await {
        if ready.is_error() {
            return;
        }
    }
}

/// Classifies the end of a connection that failed with `error` (RFC 9293 section 3.10.8, RFC 1122
/// section 4.2.3.5).
fn ended_by(error: Option<io::Error>) -> End {
    match error.map(|error| error.kind()) {
        Some(
            io::ErrorKind::TimedOut
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable,
        ) => End::Dead,
        _ => End::Reset,
    }
}

/// Makes the kernel send keepalive probes on an idle connection (RFC 9293 section 3.8.4). The first
/// comes after a twelfth of the idle timeout. Three more follow at intervals of a tenth of this
/// time.
fn probe(stream: &TcpStream, idle_timeout: Duration) {
    // tcp(7): whole seconds, at most 32,767.
    let seconds = |time: Duration| time.clamp(Duration::from_secs(1), Duration::from_secs(32_767));
    let first = seconds(idle_timeout / 12);
    let probes = TcpKeepalive::new().with_time(first).with_interval(seconds(first / 10));
    if let Err(error) = SockRef::from(stream).set_tcp_keepalive(&probes.with_retries(4)) {
        tracing::debug!(%error, "cannot enable keepalive probes");
    }
}

/// Returns when no byte was carried for the time that [`Slot::idle_limit`] allows.
async fn idle(moved: &Cell<Instant>, slot: &Slot) {
    let timeout = slot.shared.idle_timeout;
    while let Some(rest) = slot.idle_limit().checked_sub(moved.get().elapsed()) {
        let sleep = rest.min(timeout / SHORTEST).max(Duration::from_millis(1));
        tokio::time::sleep(sleep).await;
    }
}

/// Writes all `bytes`. `wrote` is called with the number of bytes of each write.
pub(crate) async fn write_all(
    to: &TcpStream,
    bytes: Vec<u8>,
    wrote: impl Fn(u64),
) -> io::Result<()> {
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to.writable().await?;
        match to.try_write(rest) {
            Ok(written) => {
                wrote(written as u64);
                rest = &rest[written..];
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The result of a turn, in which a connection relays a few chunks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// There may be more data.
    More,
    /// Everything was passed on, and the sender has closed.
    End,
}

/// Relays one direction up to its end.
async fn pump(
    shared: &Shared,
    from: &TcpStream,
    to: &TcpStream,
    moved: &Cell<Instant>,
    count: &Count,
) -> io::Result<()> {
    let moved = |bytes: usize| {
        moved.set(Instant::now());
        count.add(bytes as u64);
    };
    loop {
        // Bytes are read only when the receiver has room. Until then they stay in the sender's
        // socket, and TCP's window stops the sender.
        from.readable().await?;
        to.writable().await?;
        let loan = if shared.can_splice.get() { shared.pipes.lend() } else { None };
        let turn = match loan {
            Some(loan) => spliced(shared, loan, from, to, &moved).await?,
            None => copied(shared, from, to, &moved).await?,
        };
        if turn == Turn::End {
            return shut(to);
        }
        tokio::task::yield_now().await;
    }
}

/// Closes this direction towards the receiver. If the connection is already gone, this is not an
/// error here, because the other direction reports it.
fn shut(to: &TcpStream) -> io::Result<()> {
    match SockRef::from(to).shutdown(Shutdown::Write) {
        Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error),
        _ => Ok(()),
    }
}

/// A turn through a pipe, without a copy.
async fn spliced(
    shared: &Shared,
    mut loan: Loan<'_>,
    from: &TcpStream,
    to: &TcpStream,
    moved: &impl Fn(usize),
) -> io::Result<Turn> {
    for _ in 0..CHUNKS_PER_TURN {
        let taken =
            from.try_io(Interest::READABLE, || move_bytes(from, &loan.pipe().write, PIPE_BYTES));
        match taken {
            Ok(0) => return Ok(Turn::End),
            Ok(bytes) => loan.held = bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Turn::More),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                tracing::warn!(%error, "this kernel does not splice these sockets: copying");
                shared.can_splice.set(false);
                return Ok(Turn::More);
            }
            Err(error) => return Err(error),
        }
        while loan.held > 0 {
            let given =
                to.try_io(Interest::WRITABLE, || move_bytes(&loan.pipe().read, to, loan.held));
            match given {
                Ok(bytes) => {
                    loan.held -= bytes;
                    moved(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Turn::More)
}

fn move_bytes(from: impl AsFd, to: impl AsFd, most: usize) -> io::Result<usize> {
    let flags = SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK;
    Ok(splice(from, None, to, None, most, flags)?)
}

/// A turn without a pipe. It peeks at the bytes in the sender's socket, sends as many as the
/// receiver has room for, and then removes the sent bytes from the sender's socket. So a waiting
/// connection takes no memory of the proxy.
async fn copied(
    shared: &Shared,
    from: &TcpStream,
    to: &TcpStream,
    moved: &impl Fn(usize),
) -> io::Result<Turn> {
    for _ in 0..CHUNKS_PER_TURN {
        match copy_chunk(shared, from, to) {
            Ok(None) => return Ok(Turn::More),
            Ok(Some(0)) => return Ok(Turn::End),
            Ok(Some(bytes)) => {
                moved(bytes);
                shared.counters.bytes_copied.add(bytes as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(Turn::More)
}

/// Returns the number of bytes moved. It is 0 at the end of the stream, and `None` if there is
/// nothing to read now. The error `WouldBlock` means that the receiver has no room.
fn copy_chunk(shared: &Shared, from: &TcpStream, to: &TcpStream) -> io::Result<Option<usize>> {
    let mut buffer = shared.buffer.borrow_mut();
    let seen = from.try_io(Interest::READABLE, || {
        Ok(recv(from.as_raw_fd(), &mut buffer, MsgFlags::MSG_PEEK)?)
    });
    let seen = match seen {
        Ok(0) => return Ok(Some(0)),
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    };
    let sent = to.try_io(Interest::WRITABLE, || {
        Ok(send(to.as_raw_fd(), &buffer[..seen], MsgFlags::MSG_NOSIGNAL)?)
    })?;
    // With MSG_TRUNC TCP discards the bytes and does not copy them again (tcp(7)).
    let taken = recv(from.as_raw_fd(), &mut buffer[..sent], MsgFlags::MSG_TRUNC)?;
    debug_assert_eq!(taken, sent, "the bytes peeked at are still in the socket");
    Ok(Some(sent))
}
