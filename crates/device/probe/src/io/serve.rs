//! The sockets of a listener, and the streams of `probe solo`, which measures what a station reaches alone: they receive and
//! send as fast as one connection can.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use wakeai_units::Duration;

use super::clock;
use super::listen::{Heard, STOP_MS, Stop, listen_to};
use super::receive::prepare;
use crate::listener::Limits;
use crate::solo::{Meter, SoloStream, StreamDirection, StreamKey};
use crate::token::Token;

/// The longest wait for the first bytes, and for any progress.
const STALLED: std::time::Duration = std::time::Duration::from_secs(10);
/// The time that a connection may last beyond the time that it measures.
const BEYOND: Duration = Duration::from_secs(20);
/// The longest time in which the rest of a measured connection is read.
const PARTING: Duration = Duration::from_secs(5);
/// The number of bytes of a read or a write.
const CHUNK: usize = 1 << 17;

/// The sender of the UDP side, and the state of its TCP connections.
#[derive(Default)]
struct Guest {
    session: Mutex<Option<(SocketAddr, u64)>>,
    last_stream: AtomicU64,
    busy: AtomicBool,
}

/// The sockets of a listener.
#[derive(Debug)]
pub struct ProbeSockets {
    udp: UdpSocket,
    tcp: Option<TcpListener>,
}

impl ProbeSockets {
    /// Binds a socket for datagrams, and for `probe solo` another one for streams, to the same port.
    ///
    /// # Errors
    /// The address is not this machine's, or is in use.
    pub fn bind(address: SocketAddr, takes_streams: bool) -> io::Result<Self> {
        let tcp = takes_streams.then(|| TcpListener::bind(address)).transpose()?;
        tcp.iter().try_for_each(|tcp| tcp.set_nonblocking(true))?;
        let bound = tcp.as_ref().map(TcpListener::local_addr).transpose()?;
        let udp = UdpSocket::bind(bound.unwrap_or(address))?;
        prepare(&udp)?;
        Ok(Self { udp, tcp })
    }

    /// The address of the sockets.
    ///
    /// # Errors
    /// A socket fails.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Serves one session, until it has ended.
    ///
    /// # Errors
    /// A socket fails.
    pub fn listen(&self, token: &Token, limits: Limits, stop: Stop<'_>) -> io::Result<Heard> {
        let (guest, ended) = (Guest::default(), AtomicBool::new(false));
        let key = StreamKey::new(token);
        let over = || ended.load(Ordering::Relaxed) || stop();
        let serve = |connection: TcpStream| {
            let served = serve(connection, &key, &guest, &over);
            // The next measurement need not wait until the rest of this one has been read.
            guest.busy.store(false, Ordering::Relaxed);
            let parted =
                served.and_then(|rest| rest.map_or(Ok(()), |mut rest| part(&mut rest, &over)));
            if let Err(error) = parted {
                tracing::debug!(%error, "a connection has ended");
            }
        };
        std::thread::scope(|scope| {
            if let Some(tcp) = &self.tcp {
                scope.spawn(|| {
                    while !over() {
                        match tcp.accept() {
                            // One connection is served at a time, so that nobody can start many threads.
                            Ok((connection, from)) if guest.expects(from) => {
                                if !guest.busy.swap(true, Ordering::Relaxed) {
                                    let serve = &serve;
                                    scope.spawn(move || serve(connection));
                                }
                            }
                            Ok(_) => {} // any other connection is closed at once
                            Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
                        }
                    }
                });
            }
            let greeted = |from, session| {
                *guest.session.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some((from, session));
            };
            let heard = listen_to(&self.udp, token, limits, stop, &greeted);
            ended.store(true, Ordering::Relaxed);
            heard
        })
    }
}

impl Guest {
    fn session(&self) -> Option<(SocketAddr, u64)> {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expects(&self, from: SocketAddr) -> bool {
        self.session().is_some_and(|(peer, _)| peer.ip() == from.ip())
    }
}

/// Serves one measurement. Returns a connection whose client may still send when it is over.
fn serve(
    mut connection: TcpStream,
    key: &StreamKey,
    guest: &Guest,
    over: &dyn Fn() -> bool,
) -> io::Result<Option<TcpStream>> {
    connection.set_nonblocking(false)?;
    connection.set_read_timeout(Some(STALLED))?;
    connection.set_write_timeout(Some(std::time::Duration::from_millis(STOP_MS.into())))?;
    let mut opening = [0; crate::solo::OPENING_BYTES];
    connection.read_exact(&mut opening)?;
    let refused = || io::Error::new(io::ErrorKind::InvalidData, "no opening of this session");
    let stream = key.read(&opening).ok_or_else(refused)?;
    let is_new = guest.last_stream.fetch_max(stream.number, Ordering::Relaxed) < stream.number;
    if !is_new || guest.session().is_none_or(|(_, session)| session != stream.session) {
        return Err(refused());
    }
    let give_up = clock::now() + stream.time + BEYOND;
    match stream.direction {
        StreamDirection::Up => {
            let result = receive(&mut connection, &stream, &|| over() || clock::now() >= give_up)?;
            connection.set_write_timeout(Some(STALLED))?;
            connection.write_all(&key.result(&stream, &result))?;
            Ok(Some(connection))
        }
        StreamDirection::Down => {
            let chunk = vec![0; CHUNK];
            while !over() && clock::now() < give_up {
                match connection.write(&chunk) {
                    Ok(_) => {}
                    Err(error) if is_timeout(&error) => {}
                    Err(error) => return Err(error), // the client has measured, and has closed
                }
            }
            Ok(None)
        }
    }
}

/// Closes a connection after the result, once the bytes that the client still sends have been read: closing with unread
/// bytes sends a reset, and a result that has to be sent again would then be lost.
fn part(connection: &mut TcpStream, over: &dyn Fn() -> bool) -> io::Result<()> {
    connection.shutdown(Shutdown::Write)?;
    let give_up = clock::now() + PARTING;
    connection.set_read_timeout(Some(std::time::Duration::from_millis(STOP_MS.into())))?;
    let mut chunk = vec![0; CHUNK];
    while !over() && clock::now() < give_up {
        match connection.read(&mut chunk) {
            Ok(0) => break,
            Err(error) if !is_timeout(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Reads from the connection until its goodput has been measured for the time that `stream` names.
pub(super) fn receive(
    connection: &mut TcpStream,
    stream: &SoloStream,
    over: &dyn Fn() -> bool,
) -> io::Result<crate::solo::Goodput> {
    let mut meter = Meter::new(stream.time);
    let mut chunk = vec![0; CHUNK];
    while !over() {
        let count = connection.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        meter.on_bytes(clock::now(), count as u64);
        if let Some(goodput) = meter.goodput() {
            return Ok(goodput);
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended before its time"))
}

pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
