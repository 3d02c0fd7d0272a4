//! The sending end: a session with one listener, on a UDP socket.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send, setsockopt, sockopt};
use wakeai_net::{Race, Unreached};
use wakeai_units::{Duration, Instant};

use super::clock;
use super::listen::{STOP_MS, Stop, await_datagram};
use crate::arrivals::{BurstArrival, Part, entries_in};
use crate::datagram::{DatagramKind, HEADER_BYTES, Header, LONGEST_BYTES, Seal};
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
        "the listener does not answer ({0}): does `--listen` still run there, was the token copied whole, and does a \
         firewall let UDP pass? A listener serves one sender and then ends"
    )]
    NoAnswer(Unreached<io::Error>),
    /// The listener answers in a form that this program does not know.
    #[error(
        "the listener at {0} answers in a form that this version cannot read: run the same version of wakeai at both ends"
    )]
    Unreadable(SocketAddr),
    /// The listener has stopped answering.
    #[error("the listener at {0} has not answered for {s} s: it has ended, or left the network", s = PATIENCE.as_secs_f64())]
    Gone(SocketAddr),
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
pub(crate) struct ProbeSender<'a> {
    socket: UdpSocket,
    seal: Seal,
    pub(crate) session: u64,
    pub(crate) to: SocketAddr,
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

impl<'a> ProbeSender<'a> {
    /// Begins a session with the first of the addresses `to` that answers, by the rules of RFC 8305. The other attempts
    /// are closed.
    pub(crate) fn connect(
        to: &[SocketAddr],
        token: &Token,
        stop: Stop<'a>,
    ) -> Result<Self, SendError> {
        let mut race = Race::new(to.iter().copied(), FIRST_PATIENCE, clock::now());
        let mut running: Vec<Self> = Vec::new();
        let mut again = clock::now();
        while !race.is_over(clock::now()) {
            while let Some(address) = race.poll_attempt(clock::now()) {
                match Self::new(address, token, stop) {
                    Ok(sender) => running.push(sender),
                    Err(SendError::Socket { source, .. }) => {
                        race.handle_failure(clock::now(), address, source);
                    }
                    Err(error) => return Err(error),
                }
                again = clock::now();
            }
            while let Some(abandoned) = race.poll_abandoned() {
                running.retain(|sender| sender.to != abandoned);
            }
            if clock::now() >= again {
                running.iter_mut().try_for_each(Self::greet)?;
                again = clock::now() + AGAIN;
            }
            let sockets = running.iter().map(|sender| &sender.socket);
            await_datagram(sockets, race.next_timeout().min(again)).map_err(|source| {
                SendError::Socket { what: "wait for an answer".to_owned(), source }
            })?;
            if stop() {
                return Err(SendError::Stopped);
            }
            if let Some(place) = running.iter_mut().position(Self::is_welcome) {
                return Ok(running.swap_remove(place));
            }
        }
        Err(SendError::NoAnswer(race.into_error()))
    }

    fn new(to: SocketAddr, token: &Token, stop: Stop<'a>) -> Result<Self, SendError> {
        let socket = socket(to)?;
        let failed = |source| SendError::Socket { what: "draw a random number".to_owned(), source };
        let random =
            || getrandom::u64().map_err(|error| failed(io::Error::other(error.to_string())));
        let (session, requests) = (random()?, random()?);
        let (buffer, seal) = ([0; LONGEST_BYTES], Seal::new(token));
        Ok(Self { socket, seal, session, to, requests, stop, buffer })
    }

    /// Asks for the session.
    fn greet(&mut self) -> Result<(), SendError> {
        let hello = self.header(DatagramKind::Hello, 0, 0);
        self.send_request(&hello, HEADER_BYTES)
    }

    /// Whether the listener has answered [`Self::greet`]. An ICMP error is no answer: the listener may start within the
    /// time that it has.
    fn is_welcome(&mut self) -> bool {
        let mut buffer = [0; 2048];
        loop {
            let length = match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => length,
                Err(Errno::ECONNREFUSED | Errno::EINTR) => continue,
                Err(_) => return false,
            };
            let wanted = (DatagramKind::Welcome, self.session, self.requests);
            let read = self.seal.read(&buffer[..length]);
            if read.is_some_and(|(found, _)| (found.kind, found.session, found.tag) == wanted) {
                return true;
            }
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

    /// The round-trip time of a small datagram; `None` where no answer came within [`LOST`].
    pub(crate) fn ping(&mut self) -> Result<Option<Duration>, SendError> {
        self.requests = self.requests.wrapping_add(1);
        let request = self.header(DatagramKind::Ping, 0, 0);
        let sent = clock::now();
        self.send_request(&request, HEADER_BYTES)?;
        while let Some((header, _)) = self.answer(sent + LOST)? {
            if (header.kind, header.tag) == (DatagramKind::Pong, request.tag) {
                return Ok(Some(clock::now() - sent));
            }
        }
        Ok(None)
    }

    fn header(&self, kind: DatagramKind, burst: u32, number: u32) -> Header {
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
        let header = Header {
            kind: DatagramKind::Data,
            session: self.session,
            burst,
            number,
            tag: flow.into(),
        };
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
            let wait = left.min(Duration::from_millis(STOP_MS.into()));
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
    pub(crate) fn fetch(&mut self, burst: u32) -> Result<(Vec<BurstArrival>, u32), SendError> {
        let mut last = None;
        let total = loop {
            let total = self.parts(burst, vec![0])?[&0].total;
            if last == Some(total) {
                break total;
            }
            last = Some(total);
            clock::sleep_until(clock::now() + QUIET);
        };
        let at_a_time = entries_in(LONGEST_BYTES - HEADER_BYTES);
        let parts = self.parts(burst, (0..total).step_by(at_a_time).collect())?;
        let overflowed = parts.values().last().map_or(0, |part| part.overflowed);
        Ok((parts.into_values().flat_map(|part| part.entries).collect(), overflowed))
    }

    /// Gets the parts of a list of arrivals that begin at the numbers in `missing`. Asks for some at a time, and again for
    /// those that do not come. They all have one tag, so that no part is of an earlier question.
    fn parts(
        &mut self,
        burst: u32,
        mut missing: Vec<u32>,
    ) -> Result<BTreeMap<u32, Part>, SendError> {
        let mut found = BTreeMap::new();
        let mut give_up = clock::now() + PATIENCE;
        self.requests = self.requests.wrapping_add(1);
        while !missing.is_empty() {
            let mut outstanding = missing.len().min(PARTS);
            for from in &missing[..outstanding] {
                let request = self.header(DatagramKind::Fetch, burst, *from);
                self.send_request(&request, LONGEST_BYTES)?;
            }
            let until = clock::now() + AGAIN;
            while outstanding > 0 {
                let Some((header, body)) = self.answer(until)? else { break };
                let wanted = (DatagramKind::Arrivals, burst, self.requests);
                if (header.kind, header.burst, header.tag) != wanted {
                    continue;
                }
                let part = Part::decode(&body).ok_or(SendError::Unreadable(self.to))?;
                if let Some(place) = missing.iter().position(|from| *from == header.number) {
                    missing.remove(place);
                    outstanding -= 1;
                    found.insert(header.number, part);
                    give_up = clock::now() + PATIENCE;
                }
            }
            if clock::now() >= give_up {
                return Err(SendError::Gone(self.to));
            }
        }
        Ok(found)
    }
}

impl Drop for ProbeSender<'_> {
    fn drop(&mut self) {
        let bye = self.header(DatagramKind::Bye, 0, 0);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What no text for a person has: the form in which Rust shows an error to a programmer.
    const DEBUG: [&str; 7] =
        ["Os {", "Custom {", "kind:", "code:", "Some(", "Err(", "os error 11)"];

    /// A listener whose lists of arrivals are torn after the first `whole` of them, until the sender says goodbye.
    fn tear_lists(socket: &UdpSocket, token: &Token, mut whole: usize) {
        let seal = Seal::new(token);
        let (mut request, mut buffer) = ([0; 2048], [0; LONGEST_BYTES]);
        loop {
            let (length, from) = socket.recv_from(&mut request).unwrap();
            let (header, _) = seal.read(&request[..length]).unwrap();
            let mut list = Part::encode(500, 0, &[]);
            let (kind, body) = match header.kind {
                DatagramKind::Hello => (DatagramKind::Welcome, &[][..]),
                DatagramKind::Fetch => {
                    list.truncate(list.len() - usize::from(whole == 0));
                    whole = whole.saturating_sub(1);
                    (DatagramKind::Arrivals, &list[..])
                }
                _ => return,
            };
            let header = Header { kind, ..header };
            let answer = seal.write(&header, body, HEADER_BYTES + body.len(), &mut buffer).unwrap();
            socket.send_to(answer, from).unwrap();
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_is_no_silence_of_the_listener() {
        let token = Token::from_bytes([3; 16]);
        // The list's length is asked for twice. After that its parts are fetched.
        for whole in [0, 1, 2] {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = socket.local_addr().unwrap();
            let fetched = std::thread::scope(|scope| {
                scope.spawn(|| tear_lists(&socket, &token, whole));
                ProbeSender::connect(&[to], &token, &|| false).unwrap().fetch(1)
            });
            assert!(matches!(fetched, Err(SendError::Unreadable(_))), "{whole}: {fetched:?}");
        }
    }

    #[test]
    fn every_error_of_a_sender_is_a_sentence() {
        let to: SocketAddr = "192.0.2.1:4780".parse().unwrap();
        let refused = || io::Error::from_raw_os_error(nix::libc::ECONNREFUSED);
        let mut race = Race::new([to], PATIENCE, Instant::ZERO);
        race.poll_attempt(Instant::ZERO).unwrap();
        race.handle_failure(Instant::ZERO, to, refused());
        for error in [
            SendError::NoAnswer(race.into_error()),
            SendError::Gone(to),
            SendError::Unreadable(to),
            SendError::Stopped,
            SendError::Socket { what: "reach it".to_owned(), source: refused() },
        ] {
            // A new variant needs an entry above.
            match error {
                SendError::NoAnswer(_)
                | SendError::Gone(_)
                | SendError::Unreadable(_)
                | SendError::Stopped
                | SendError::Socket { .. } => {}
            }
            let text = error.to_string();
            assert!(!DEBUG.iter().any(|debug| text.contains(debug)), "{text}");
        }
    }
}
