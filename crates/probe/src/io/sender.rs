//! The sending end: a session with one listener, on a UDP socket.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, send, setsockopt, sockopt};
use wakeai_units::{Duration, Instant};

use super::clock;
use super::listen::Stop;
use crate::arrivals::{Arrival, Part, entries_in};
use crate::datagram::{HEADER_BYTES, Header, Kind, LONGEST_BYTES, Seal};
use crate::token::Token;

/// The size of the queue of the sender's own socket, which has room for some 30 packets. The queue
/// of a network interface is far longer, so the socket holds datagrams back before the interface
/// drops any.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// The time after which a request is repeated.
const AGAIN: Duration = Duration::from_millis(300);
/// The time without an answer after which the listener counts as gone. It is long because the full
/// queue of a slow access point takes seconds to empty.
const PATIENCE: Duration = Duration::from_secs(12);
/// The longest wait for the first answer. Before the first burst there is no queue that could delay
/// it.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);
/// A round trip that takes longer counts as lost.
const LOST: Duration = Duration::from_secs(5);
/// A burst has arrived when no further datagram of it came for this long.
const QUIET: Duration = Duration::from_millis(150);
/// The number of requests for parts of a list that are sent at a time.
const PARTS: usize = 16;

/// Why a sender had to give up.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The listener has never answered.
    #[error(
        "{to} does not answer: does `--listen` still run there, was the token copied whole, and does a firewall let UDP \
         pass? A listener serves one sender and then ends"
    )]
    NoAnswer {
        /// The listener.
        to: SocketAddr,
    },
    /// The listener has stopped answering.
    #[error("the listener at {to} has not answered for {} s: it has ended, or left the network", PATIENCE.as_secs_f64())]
    Gone {
        /// The listener.
        to: SocketAddr,
    },
    /// A signal has ended the command.
    #[error("interrupted")]
    Stopped,
    /// The socket fails.
    #[error("cannot {what}: {source}")]
    Socket {
        /// The operation.
        what: String,
        /// The reason.
        source: io::Error,
    },
}

/// A session with a listener. Dropping this value tells the listener that the session has ended.
pub(crate) struct Sender<'a> {
    socket: UdpSocket,
    seal: Seal,
    session: u64,
    to: SocketAddr,
    requests: u64,
    stop: Stop<'a>,
    buffer: [u8; LONGEST_BYTES],
}

/// What happened to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The kernel took it at once.
    Sent,
    /// The kernel took it later, because the socket's queue was full.
    HeldBack,
    /// The queue of the network interface dropped it.
    DroppedHere,
}

impl<'a> Sender<'a> {
    /// Begins a session.
    pub(crate) fn connect(
        to: SocketAddr,
        token: &Token,
        stop: Stop<'a>,
    ) -> Result<Self, SendError> {
        let socket = socket(to)?;
        let failed = |source| SendError::Socket { what: "draw a random number".to_owned(), source };
        let random =
            || getrandom::u64().map_err(|error| failed(io::Error::other(error.to_string())));
        let (session, nonce) = (random()?, random()?);
        let buffer = [0; LONGEST_BYTES];
        let seal = Seal::new(token);
        let mut sender = Self { socket, seal, session, to, requests: nonce, stop, buffer };
        let hello = sender.header(Kind::Hello, 0, 0);
        match sender.ask(&hello, HEADER_BYTES, Kind::Welcome, FIRST_PATIENCE) {
            Ok(_) => Ok(sender),
            Err(SendError::Gone { to }) => Err(SendError::NoAnswer { to }),
            Err(error) => Err(error),
        }
    }

    /// Another socket to the same listener, whose port makes it a flow of its own.
    pub(crate) fn another_socket(&self) -> Result<UdpSocket, SendError> {
        socket(self.to)
    }

    /// The bytes of UDP (RFC 768) and IP around a datagram.
    pub(crate) fn overhead(&self) -> usize {
        8 + if self.to.is_ipv4() { 20 } else { 40 }
    }

    /// The number of the session.
    pub(crate) fn session(&self) -> u64 {
        self.session
    }

    /// The round-trip time of a small datagram; `None` where no answer came within [`LOST`].
    pub(crate) fn ping(&mut self) -> Result<Option<Duration>, SendError> {
        self.requests = self.requests.wrapping_add(1);
        let request = self.header(Kind::Ping, 0, 0);
        let sent = clock::now();
        self.send_request(&request, HEADER_BYTES)?;
        while let Some((header, _)) = self.answer(sent + LOST)? {
            if (header.kind, header.tag) == (Kind::Pong, request.tag) {
                return Ok(Some(clock::now() - sent));
            }
        }
        Ok(None)
    }

    fn header(&self, kind: Kind, burst: u32, number: u32) -> Header {
        Header { kind, session: self.session, burst, number, tag: self.requests }
    }

    /// Sends a datagram of a burst, `length` bytes long, on the session's socket or on the socket
    /// `by`. Waits while the socket's queue is full.
    pub(crate) fn data(
        &mut self,
        by: Option<&UdpSocket>,
        flow: u8,
        burst: u32,
        number: u32,
        length: usize,
    ) -> Result<Fate, SendError> {
        let header =
            Header { kind: Kind::Data, session: self.session, burst, number, tag: flow.into() };
        let datagram = self.seal.write(&header, &[], length, &mut self.buffer);
        let datagram = datagram.expect("a shot's datagrams fit into a packet");
        let socket = by.unwrap_or(&self.socket);
        let mut fate = Fate::Sent;
        loop {
            match send(socket.as_raw_fd(), datagram, MsgFlags::MSG_DONTWAIT) {
                Ok(_) => return Ok(fate),
                Err(Errno::EAGAIN) => {
                    fate = Fate::HeldBack;
                    let mut ready = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
                    let _ = poll(&mut ready, PollTimeout::from(10_u16));
                    if (self.stop)() {
                        return Err(SendError::Stopped);
                    }
                }
                Err(Errno::ENOBUFS) => return Ok(Fate::DroppedHere),
                // ECONNREFUSED is an ICMP error about an earlier datagram. The next request, after
                // the burst, shows whether the listener still runs.
                Err(Errno::ECONNREFUSED | Errno::EINTR) => {}
                Err(error) => return Err(self.failed("send a datagram", error.into())),
            }
        }
    }

    fn failed(&self, what: &str, source: io::Error) -> SendError {
        SendError::Socket { what: format!("{what} to {}", self.to), source }
    }

    /// Sends a request of `length` bytes until its answer comes.
    fn ask(
        &mut self,
        request: &Header,
        length: usize,
        wanted: Kind,
        patience: Duration,
    ) -> Result<Vec<u8>, SendError> {
        let give_up = clock::now() + patience;
        loop {
            self.send_request(request, length)?;
            let again = clock::now() + AGAIN;
            while let Some((header, body)) = self.answer(again)? {
                if (header.kind, header.burst, header.number, header.tag)
                    == (wanted, request.burst, request.number, request.tag)
                {
                    return Ok(body);
                }
            }
            if clock::now() >= give_up {
                return Err(SendError::Gone { to: self.to });
            }
        }
    }

    fn send_request(&mut self, request: &Header, length: usize) -> Result<(), SendError> {
        let datagram = self.seal.write(request, &[], length, &mut self.buffer);
        let datagram = datagram.expect("a request fits into a packet");
        match send(self.socket.as_raw_fd(), datagram, MsgFlags::MSG_DONTWAIT) {
            // These errors are ignored, because a request without an answer is repeated.
            Ok(_) | Err(Errno::EAGAIN | Errno::ECONNREFUSED | Errno::ENOBUFS | Errno::EINTR) => {
                Ok(())
            }
            Err(error) => Err(self.failed("send a request", error.into())),
        }
    }

    /// The next datagram that the listener sends before `until`; `None` if there is none.
    fn answer(&mut self, until: Instant) -> Result<Option<(Header, Vec<u8>)>, SendError> {
        let mut buffer = [0; 2048];
        loop {
            if (self.stop)() {
                return Err(SendError::Stopped);
            }
            let left = until.saturating_since(clock::now());
            if left.is_zero() {
                return Ok(None);
            }
            let wait = left.min(Duration::from_millis(super::listen::STOP_MS.into()));
            let set = self.socket.set_read_timeout(Some(wait.max(Duration::from_micros(1)).into()));
            set.map_err(|error| self.failed("wait for an answer", error))?;
            let Ok(length) = self.socket.recv(&mut buffer) else {
                // An ICMP error makes the call return at once, so the loop pauses here.
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            };
            let read = self.seal.read(&buffer[..length]);
            if let Some((header, body)) = read.filter(|(header, _)| header.session == self.session)
            {
                return Ok(Some((header, body.to_vec())));
            }
        }
    }

    /// Waits until no further datagram of the burst arrives, and gets the list of its arrivals.
    pub(crate) fn fetch(&mut self, burst: u32) -> Result<(Vec<Arrival>, u32), SendError> {
        let mut last = None;
        let total = loop {
            let part = self.part(burst, 0)?;
            if last == Some(part.total) {
                break part.total as usize;
            }
            last = Some(part.total);
            clock::sleep_until(clock::now() + QUIET);
        };
        let at_a_time = entries_in(LONGEST_BYTES - HEADER_BYTES);
        let mut missing: Vec<u32> = (0..total).step_by(at_a_time).map(|at| at as u32).collect();
        let mut found = BTreeMap::new();
        let mut overflowed = 0;
        let mut give_up = clock::now() + PATIENCE;
        while !missing.is_empty() {
            let asked = missing.len().min(PARTS);
            self.requests = self.requests.wrapping_add(1);
            for from in &missing[..asked] {
                let request = self.header(Kind::Fetch, burst, *from);
                self.send_request(&request, LONGEST_BYTES)?;
            }
            let until = clock::now() + AGAIN;
            let mut outstanding = asked;
            while outstanding > 0 {
                let Some((header, body)) = self.answer(until)? else { break };
                let part = Part::decode(&body).filter(|_| header.kind == Kind::Arrivals);
                let Some(part) = part.filter(|_| header.burst == burst) else { continue };
                if let Some(place) = missing.iter().position(|from| *from == header.number) {
                    missing.remove(place);
                    outstanding -= 1;
                    overflowed = part.overflowed;
                    found.insert(header.number, part.entries);
                    give_up = clock::now() + PATIENCE;
                }
            }
            if clock::now() >= give_up {
                return Err(SendError::Gone { to: self.to });
            }
        }
        Ok((found.into_values().flatten().collect(), overflowed))
    }

    fn part(&mut self, burst: u32, from: u32) -> Result<Part, SendError> {
        self.requests = self.requests.wrapping_add(1);
        let request = self.header(Kind::Fetch, burst, from);
        let body = self.ask(&request, LONGEST_BYTES, Kind::Arrivals, PATIENCE)?;
        Part::decode(&body).ok_or(SendError::Gone { to: self.to })
    }
}

impl Drop for Sender<'_> {
    fn drop(&mut self) {
        let bye = self.header(Kind::Bye, 0, 0);
        for _ in 0..3 {
            let _ = self.send_request(&bye, HEADER_BYTES); // without it the listener ends later
        }
    }
}

/// A socket that is connected to the listener. Its queue is short, and it reports the datagrams
/// that this machine drops.
fn socket(to: SocketAddr) -> Result<UdpSocket, SendError> {
    let failed = |source| SendError::Socket { what: format!("reach {to}"), source };
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    let set = || -> nix::Result<()> {
        setsockopt(&socket, sockopt::SndBuf, &SEND_BUFFER_BYTES)?;
        // Without this the kernel does not report a drop in the queue of the interface (udp(7)).
        match to {
            SocketAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4RecvErr, &true),
            SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6RecvErr, &true),
        }
    };
    set().map_err(|error| failed(error.into()))?;
    socket.connect(to).map_err(failed)?;
    Ok(socket)
}
