//! The listening end of a measurement, as a state machine without socket and clock.

use std::net::SocketAddr;

use wakeai_units::{Duration, Instant};

use crate::arrivals::{BurstArrival, Part, entries_in};
use crate::datagram::{DatagramKind, HEADER_BYTES, Header, LONGEST_BYTES, Seal};
use crate::token::Token;

/// The limits of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest wait for a sender.
    pub wait: Duration,
    /// The longest session.
    pub session: Duration,
    /// The longest silence of a sender in its session.
    pub silence: Duration,
    /// The largest number of answers per second.
    pub answers_per_s: u32,
    /// The largest number of arrivals of a burst that are kept.
    pub arrivals: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(600),
            session: Duration::from_secs(600),
            silence: Duration::from_secs(15),
            answers_per_s: 1_000,
            arrivals: 200_000,
        }
    }
}

/// Why a listener has ended.
/// It is named in snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Ending {
    /// The sender has ended its session.
    Done,
    /// No sender came in time.
    NobodyCame,
    /// The sender has sent nothing for too long.
    Silence,
    /// The session took too long.
    TooLong,
}

/// What a listener has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Datagrams of the sender in its session.
    pub accepted: u64,
    /// All other datagrams: malformed, forged, of another session.
    pub refused: u64,
    /// Answers to the sender.
    pub answers: u64,
    /// Bytes of the accepted datagrams.
    pub received_bytes: u64,
    /// Bytes of the answers.
    pub sent_bytes: u64,
}

/// The listening end: it records the datagrams of one session, and answers its sender.
///
/// Only datagrams with an authentication code made from the token count. The first `Hello` begins
/// the only session. Datagrams of another session are refused, so an attacker cannot repeat a
/// recorded one. No answer is longer than its request.
///
/// Order of calls: [`Listener::handle_datagram`] for each datagram, and its answer is sent back;
/// [`Listener::handle_timeout`] at the time of [`Listener::next_timeout`]; both until
/// [`Listener::ended`] returns a reason.
#[derive(Clone)]
pub struct Listener {
    seal: Seal,
    limits: Limits,
    began: Instant,
    session: Option<Session>,
    ended: Option<Ending>,
    tally: Tally,
    overflowed: u32,
    answers: Bucket,
    buffer: [u8; LONGEST_BYTES],
}

#[derive(Clone)]
struct Session {
    id: u64,
    /// The random number of the `Hello` that has begun the session.
    nonce: u64,
    /// The address and port that requests come from. Data may come from other ports of this
    /// address, because each flow has a port of its own.
    peer: SocketAddr,
    began: Instant,
    heard: Instant,
    burst: u32,
    arrivals: Vec<BurstArrival>,
}

impl Listener {
    /// A listener that waits from `now` on.
    pub fn new(now: Instant, token: &Token, limits: Limits) -> Self {
        Self {
            seal: Seal::new(token),
            limits,
            began: now,
            session: None,
            ended: None,
            tally: Tally::default(),
            overflowed: 0,
            answers: Bucket { per_s: limits.answers_per_s, left_ns: NANOS_PER_S, at: now },
            buffer: [0; LONGEST_BYTES],
        }
    }

    /// Takes a datagram that arrived at `at`, and returns the answer. `at` may come from any clock
    /// of this machine that does not jump.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        at: Instant,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Option<&[u8]> {
        let header = self.seal.read(datagram).map(|(header, _)| header);
        let Some(header) = header.filter(|header| self.belongs(now, from, header)) else {
            self.tally.refused += 1;
            return None;
        };
        self.tally.accepted += 1;
        self.tally.received_bytes += datagram.len() as u64;
        let session = self.session.as_mut()?; // `belongs` has made the session
        session.heard = now;
        let (kind, body) = match header.kind {
            DatagramKind::Hello => (DatagramKind::Welcome, Vec::new()),
            DatagramKind::Ping => (DatagramKind::Pong, Vec::new()),
            DatagramKind::Data => {
                session.record(&header, at, self.limits.arrivals);
                return None;
            }
            DatagramKind::Fetch => {
                let room = datagram.len().min(LONGEST_BYTES) - HEADER_BYTES;
                (DatagramKind::Arrivals, session.list(&header, self.overflowed, room)?)
            }
            DatagramKind::Bye => {
                self.ended = Some(Ending::Done);
                return None;
            }
            DatagramKind::Welcome | DatagramKind::Arrivals | DatagramKind::Pong => return None,
        };
        if !self.answers.take(now) {
            return None;
        }
        // A pong is padded to the length of its ping. Other answers have no padding.
        let least = HEADER_BYTES + body.len();
        let length =
            if kind == DatagramKind::Pong { datagram.len().min(LONGEST_BYTES) } else { least };
        let header = Header { kind, ..header };
        let answer = self.seal.write(&header, &body, length, &mut self.buffer)?;
        self.tally.answers += 1;
        self.tally.sent_bytes += answer.len() as u64;
        Some(answer)
    }

    /// Whether the datagram belongs to the session, which a first `Hello` begins.
    fn belongs(&mut self, now: Instant, from: SocketAddr, header: &Header) -> bool {
        let Some(session) = &self.session else {
            let is_first = header.kind == DatagramKind::Hello && self.ended.is_none();
            if is_first {
                self.session = Some(Session {
                    id: header.session,
                    nonce: header.tag,
                    peer: from,
                    began: now,
                    heard: now,
                    burst: 0,
                    arrivals: Vec::new(),
                });
            }
            return is_first;
        };
        let is_ours = session.id == header.session && self.ended.is_none();
        is_ours
            && match header.kind {
                DatagramKind::Data => session.peer.ip() == from.ip(),
                DatagramKind::Hello => session.peer == from && session.nonce == header.tag,
                DatagramKind::Fetch | DatagramKind::Ping | DatagramKind::Bye => {
                    session.peer == from
                }
                DatagramKind::Welcome | DatagramKind::Arrivals | DatagramKind::Pong => false, // only a listener sends these
            }
    }

    /// Takes the number of datagrams that this end's socket had no room for since it was opened.
    pub fn handle_overflow(&mut self, since_start: u32) {
        self.overflowed = since_start;
    }

    /// The time of the next call of [`Self::handle_timeout`]; `None` after the end.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.ended.is_some() {
            return None;
        }
        Some(match &self.session {
            None => self.began + self.limits.wait,
            Some(session) => {
                (session.heard + self.limits.silence).min(session.began + self.limits.session)
            }
        })
    }

    /// Ends the listener if one of its limits on time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_none_or(|due| now < due) {
            return;
        }
        self.ended = Some(match &self.session {
            None => Ending::NobodyCame,
            Some(session) if now >= session.began + self.limits.session => Ending::TooLong,
            Some(_) => Ending::Silence,
        });
    }

    /// The address of the sender and the number of its session, from its first datagram on.
    pub fn session(&self) -> Option<(SocketAddr, u64)> {
        self.session.as_ref().map(|session| (session.peer, session.id))
    }

    /// Why the listener has ended; `None` before its end.
    pub fn ended(&self) -> Option<Ending> {
        self.ended
    }

    /// What the listener has counted.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

impl Session {
    fn record(&mut self, header: &Header, at: Instant, most: usize) {
        if header.burst > self.burst {
            self.burst = header.burst;
            self.arrivals.clear();
        }
        if header.burst == self.burst && self.arrivals.len() < most {
            let flow = u8::try_from(header.tag).unwrap_or(u8::MAX);
            self.arrivals.push(BurstArrival { flow, number: header.number, at });
        }
    }

    /// The part of a burst's list of arrivals that begins at `header.number`, in a body of at most
    /// `room` bytes. The list of any burst but the latest is empty.
    fn list(&self, header: &Header, overflowed: u32, room: usize) -> Option<Vec<u8>> {
        let arrivals = if header.burst == self.burst { self.arrivals.as_slice() } else { &[] };
        let rest = arrivals.get(header.number as usize..).unwrap_or(&[]);
        let listed = &rest[..rest.len().min(entries_in(room))];
        let body = Part::encode(arrivals.len() as u32, overflowed, listed);
        (body.len() <= room).then_some(body)
    }
}

const NANOS_PER_S: u64 = 1_000_000_000;

/// A token bucket, which limits the rate of answers. It holds the answers of one second.
#[derive(Clone, Copy)]
struct Bucket {
    per_s: u32,
    /// What is left in the bucket. Each answer takes `NANOS_PER_S / per_s` of it.
    left_ns: u64,
    at: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_since(self.at).as_nanos();
        self.at = now;
        self.left_ns = self.left_ns.saturating_add(passed).min(NANOS_PER_S);
        let price = NANOS_PER_S / u64::from(self.per_s.max(1));
        let enough = self.left_ns >= price;
        if enough {
            self.left_ns -= price;
        }
        enough
    }
}

#[cfg(test)]
mod tests;
