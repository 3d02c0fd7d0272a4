//! Relays between a client and its destination: passes bytes, half-closes and resets from one side
//! to the other.

use std::cell::Cell;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::FusedFuture;
use nix::fcntl::{SpliceFFlags, splice};
use nix::libc::{TIOCOUTQ, c_int, ioctl};
use nix::sys::socket::{MsgFlags, recv, send};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;
use wakeai_daemon::{Count, SHORTEST};

use crate::pipes::{Loan, PIPE_BYTES};
use crate::shared::{Shared, Slot};

/// The number of chunks that a connection relays before another connection takes its turn.
const CHUNKS_PER_TURN: usize = 16;
/// The longest time in which the bytes that a failed connection left behind go to the other end.
const DRAIN: Duration = Duration::from_secs(5);
/// The first and the longest pause between two looks at what an end has acknowledged.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(100);

/// How a relayed connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Both sides have closed, and have acknowledged everything that was passed on.
    Finished,
    /// One side was reset or lost.
    Reset,
    /// No byte was carried for the time that [`Slot::idle_limit`] allows.
    Idle,
    /// One side no longer answered.
    Dead,
}

/// One of the two connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Destination,
}

/// A connection that failed, and its error. A socket gives its error only once: it is `None` while
/// the socket still has it.
#[derive(Debug)]
struct Lost {
    side: Side,
    error: Option<io::Error>,
}

/// Why relaying stopped.
enum Stop {
    /// Both sides have closed.
    Closed,
    Lost(Lost),
    Idle,
}

/// One direction, while it is relayed.
type Direction<'a> = Pin<&'a mut (dyn FusedFuture<Output = Result<(), Lost>> + 'a)>;

/// Relays until the end. The caller then drops both connections. This closes them after
/// [`End::Finished`], and resets them after any other end. It also resets them where relaying is cut
/// short or the process is killed, so that neither end takes a part of a stream for the whole.
///
/// A half-close is passed on after all bytes before it, and the other direction goes on. A reset of
/// one connection resets the other, after the bytes that came before it: a server that answers and
/// closes before it has read the whole request sends its answer and then a reset (RFC 9112 section
/// 9.6).
pub(crate) async fn relay(
    slot: &Slot,
    client: &TcpStream,
    destination: &TcpStream,
    early: Vec<u8>,
) -> End {
    let shared = &*slot.shared;
    for leg in [client, destination] {
        probe(leg, shared.config.idle_timeout.into());
        set_reset(leg, true);
    }
    let moved = Cell::new(Instant::now());
    let error_taken = Cell::new(false);
    let pump = |from, to, sides, count| Pump {
        shared,
        legs: (from, to),
        sides,
        moved: &moved,
        count,
        error_taken: &error_taken,
    };
    let counters = &shared.counters;
    let up = pump(client, destination, (Side::Client, Side::Destination), &counters.bytes_up);
    let down = pump(destination, client, (Side::Destination, Side::Client), &counters.bytes_down);
    let mut up = pin!(up.run(early).fuse());
    let mut down = pin!(down.run(Vec::new()).fuse());
    let stop = tokio::select! {
        both = async { tokio::try_join!(up.as_mut(), down.as_mut()) } => match both {
            Ok(_) => Stop::Closed,
            Err(lost) => Stop::Lost(lost),
        },
        () = failed(client) => Stop::Lost(Lost { side: Side::Client, error: None }),
        () = failed(destination) => Stop::Lost(Lost { side: Side::Destination, error: None }),
        () = idle(&moved, slot) => Stop::Idle,
    };
    match stop {
        Stop::Idle => End::Idle,
        Stop::Closed => closed(slot, client, destination, &moved).await,
        Stop::Lost(lost) => {
            error_taken.set(lost.error.is_some());
            match lost.side {
                Side::Client => drain(lost, client, destination, up).await,
                Side::Destination => drain(lost, destination, client, down).await,
            }
        }
    }
}

/// Both sides have closed. Waits until both have acknowledged what was passed on to them: until then
/// it can still be lost.
async fn closed(
    slot: &Slot,
    client: &TcpStream,
    destination: &TcpStream,
    moved: &Cell<Instant>,
) -> End {
    tokio::select! {
        _ = async { tokio::join!(acknowledged(client), acknowledged(destination)) } => {
            set_reset(client, false);
            set_reset(destination, false);
            End::Finished
        }
        () = failed(client) => ended_by(client.take_error().unwrap_or_default()),
        () = failed(destination) => ended_by(destination.take_error().unwrap_or_default()),
        () = idle(moved, slot) => End::Idle,
    }
}

/// Passes on what the failed connection `from` has left behind, in its socket and in the pipe of
/// `rest`, and waits until `to` has acknowledged it: a reset discards what is still in the send
/// buffer. It takes at most [`DRAIN`], and nothing new comes over a connection that has failed.
async fn drain(lost: Lost, from: &TcpStream, to: &TcpStream, rest: Direction<'_>) -> End {
    let mut error = lost.error;
    let drained = async {
        if !rest.is_terminated() {
            match rest.await {
                Err(other) if other.side != lost.side => return, // both connections have failed
                Err(same) => error = error.take().or(same.error),
                Ok(()) => {}
            }
        }
        tokio::select! {
            () = acknowledged(to) => {}
            () = failed(to) => {}
        }
    };
    if timeout(DRAIN, drained).await.is_err() {
        tracing::debug!("the other end did not take what was left of a failed connection");
    }
    let error = error.or_else(|| from.take_error().unwrap_or_default());
    tracing::debug!(error = error.as_ref().map(tracing::field::display), "a connection failed");
    ended_by(error)
}

/// Returns when the other end has acknowledged everything that was sent, and the half-close if one
/// was passed on.
async fn acknowledged(stream: &TcpStream) {
    let mut pause = FIRST_LOOK;
    while unacknowledged(stream) > 0 {
        tokio::time::sleep(pause).await;
        pause = LONGEST_LOOK.min(2 * pause);
    }
}

/// The number of bytes in the socket's send buffer that the other end has not acknowledged, a
/// half-close counted as one (`SIOCOUTQ`, tcp(7)).
#[allow(unsafe_code, reason = "no library that is used here has this request of ioctl(2)")]
fn unacknowledged(stream: &TcpStream) -> usize {
    let mut bytes: c_int = 0;
    // SAFETY: the request writes one int, to which the pointer leads.
    let asked = unsafe { ioctl(stream.as_raw_fd(), TIOCOUTQ, &raw mut bytes) };
    if asked == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
}

/// Decides whether the connection ends with a reset when it is dropped, or in order.
pub(crate) fn set_reset(stream: &TcpStream, is_reset: bool) {
    if let Err(error) = SockRef::from(stream).set_linger(is_reset.then_some(Duration::ZERO)) {
        tracing::debug!(%error, is_reset, "cannot decide how the connection ends");
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
    let timeout: Duration = slot.shared.config.idle_timeout.into();
    while let Some(rest) = slot.idle_limit().checked_sub(moved.get().elapsed()) {
        let sleep = rest.min(timeout / SHORTEST).max(Duration::from_millis(1));
        tokio::time::sleep(sleep).await;
    }
}

/// Writes all `bytes`. `wrote` is called with the number of bytes of each write.
pub(crate) async fn write_all(
    to: &TcpStream,
    bytes: Vec<u8>,
    wrote: impl Fn(usize),
) -> io::Result<()> {
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to.writable().await?;
        match to.try_write(rest) {
            Ok(written) => {
                wrote(written);
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

/// An error of reading or of writing.
enum Fault {
    From(io::Error),
    To(io::Error),
}

/// Relays one direction.
struct Pump<'a> {
    shared: &'a Shared,
    /// The connections of the sender and of the receiver.
    legs: (&'a TcpStream, &'a TcpStream),
    sides: (Side, Side),
    moved: &'a Cell<Instant>,
    count: &'a Count,
    /// Whether the error of a failed connection was taken from its socket. Reading then ends as
    /// after a half-close, and must not be taken for one.
    error_taken: &'a Cell<bool>,
}

impl Pump<'_> {
    /// Passes on the bytes `early`, and then everything up to the end of the stream.
    async fn run(self, early: Vec<u8>) -> Result<(), Lost> {
        self.relay(early).await.map_err(|fault| match fault {
            Fault::From(error) => Lost { side: self.sides.0, error: Some(error) },
            Fault::To(error) => Lost { side: self.sides.1, error: Some(error) },
        })
    }

    async fn relay(&self, early: Vec<u8>) -> Result<(), Fault> {
        let (from, to) = self.legs;
        write_all(to, early, |bytes| self.moved(bytes)).await.map_err(Fault::To)?;
        loop {
            // Bytes are read only when the receiver has room. Until then they stay in the sender's
            // socket, and TCP's window stops the sender.
            from.readable().await.map_err(Fault::From)?;
            to.writable().await.map_err(Fault::To)?;
            let pipes = &self.shared.pipes;
            let loan = if self.shared.can_splice.get() { pipes.lend() } else { None };
            let turn = match loan {
                Some(loan) => self.spliced(loan).await?,
                None => self.copied().await?,
            };
            if turn == Turn::End {
                return if self.error_taken.get() { Ok(()) } else { shut(to).map_err(Fault::To) };
            }
            tokio::task::yield_now().await;
        }
    }

    fn moved(&self, bytes: usize) {
        self.moved.set(Instant::now());
        self.count.add(bytes as u64);
    }

    /// A turn through a pipe, without a copy.
    async fn spliced(&self, mut loan: Loan<'_>) -> Result<Turn, Fault> {
        let (from, to) = self.legs;
        for _ in 0..CHUNKS_PER_TURN {
            let taken = from
                .try_io(Interest::READABLE, || move_bytes(from, &loan.pipe().write, PIPE_BYTES));
            match taken {
                Ok(0) => return Ok(Turn::End),
                Ok(bytes) => loan.held = bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Turn::More),
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    tracing::warn!(%error, "this kernel does not splice these sockets: copying");
                    self.shared.can_splice.set(false);
                    return Ok(Turn::More);
                }
                Err(error) => return Err(Fault::From(error)),
            }
            while loan.held > 0 {
                let given =
                    to.try_io(Interest::WRITABLE, || move_bytes(&loan.pipe().read, to, loan.held));
                match given {
                    Ok(bytes) => {
                        loan.held -= bytes;
                        self.moved(bytes);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        to.writable().await.map_err(Fault::To)?;
                    }
                    Err(error) => return Err(Fault::To(error)),
                }
            }
        }
        Ok(Turn::More)
    }

    /// A turn without a pipe. It peeks at the bytes in the sender's socket, sends as many as the
    /// receiver has room for, and then removes the sent bytes from the sender's socket. So a waiting
    /// connection takes no memory of the proxy.
    async fn copied(&self) -> Result<Turn, Fault> {
        for _ in 0..CHUNKS_PER_TURN {
            match self.copy_chunk()? {
                Copied::Nothing => return Ok(Turn::More),
                Copied::NoRoom => self.legs.1.writable().await.map_err(Fault::To)?,
                Copied::Bytes(0) => return Ok(Turn::End),
                Copied::Bytes(bytes) => {
                    self.moved(bytes);
                    self.shared.counters.bytes_copied.add(bytes as u64);
                }
            }
        }
        Ok(Turn::More)
    }

    fn copy_chunk(&self) -> Result<Copied, Fault> {
        let (from, to) = self.legs;
        let mut buffer = self.shared.buffer.borrow_mut();
        let seen = from.try_io(Interest::READABLE, || {
            Ok(recv(from.as_raw_fd(), &mut buffer, MsgFlags::MSG_PEEK)?)
        });
        let seen = match seen {
            Ok(0) => return Ok(Copied::Bytes(0)),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Copied::Nothing),
            Err(error) => return Err(Fault::From(error)),
        };
        let sent = to.try_io(Interest::WRITABLE, || {
            Ok(send(to.as_raw_fd(), &buffer[..seen], MsgFlags::MSG_NOSIGNAL)?)
        });
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Copied::NoRoom),
            Err(error) => return Err(Fault::To(error)),
        };
        // With MSG_TRUNC TCP discards the bytes and does not copy them again (tcp(7)).
        let taken = recv(from.as_raw_fd(), &mut buffer[..sent], MsgFlags::MSG_TRUNC)
            .map_err(|errno| Fault::From(errno.into()))?;
        debug_assert_eq!(taken, sent, "the bytes peeked at are still in the socket");
        Ok(Copied::Bytes(sent))
    }
}

/// The result of copying a chunk.
enum Copied {
    /// This many bytes; 0 at the end of the stream.
    Bytes(usize),
    /// There is nothing to read now.
    Nothing,
    /// The receiver has no room.
    NoRoom,
}

/// Closes this direction towards the receiver. If the connection is already gone, this is not an
/// error here, because the other direction reports it.
fn shut(to: &TcpStream) -> io::Result<()> {
    match SockRef::from(to).shutdown(Shutdown::Write) {
        Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error),
        _ => Ok(()),
    }
}

fn move_bytes(from: impl AsFd, to: impl AsFd, most: usize) -> io::Result<usize> {
    let flags = SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK;
    Ok(splice(from, None, to, None, most, flags)?)
}
