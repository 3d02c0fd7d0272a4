//! Reads the request of a client that names its destination. The first byte of the request tells
//! whether it is SOCKS5 or HTTP CONNECT.

mod connect;
mod socks;

use std::net::SocketAddr;

use crate::target::Target;

/// The largest length of a request in bytes. Only the head of a CONNECT can be that long; a SOCKS
/// request is far shorter.
pub const REQUEST_LIMIT: usize = 8192;

/// The reason why a request is not served. If the protocol has an answer for this case,
/// [`Negotiation::poll_transmit`] returns the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The request is neither SOCKS5 nor HTTP. It gets no answer.
    #[error("neither SOCKS5 nor HTTP")]
    Protocol,
    /// The client of SOCKS5 insists on authentication.
    #[error("the client offers no SOCKS5 method without authentication")]
    Authentication,
    /// A SOCKS5 command other than CONNECT, or an HTTP method other than CONNECT.
    #[error("a command other than CONNECT")]
    Command,
    /// A SOCKS5 address type that RFC 1928 does not list.
    #[error("an unknown address type")]
    AddressType,
    /// A request that the protocol does not allow.
    #[error("a malformed request")]
    Malformed,
    /// The head of the CONNECT does not end within [`REQUEST_LIMIT`].
    #[error("a request of more than {REQUEST_LIMIT} bytes")]
    TooLong,
}

/// The outcome of a request, in the words that a person gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Outcome {
    /// The proxy has connected to the destination, from this address.
    #[error("connected from {0}")]
    Connected(SocketAddr),
    /// The access lists or a firewall of this machine do not allow the destination.
    #[error("the proxy's access list (--allow-to) or the firewall there forbids this destination")]
    Denied,
    /// The name does not exist, or has no address.
    #[error("the host's name does not exist or has no address")]
    NoSuchName,
    /// The name servers have not answered, or not within the connect timeout.
    #[error("the proxy's name servers do not answer: try again later")]
    LookupFailed,
    /// The destination refused the connection.
    #[error("the destination refused the connection: nothing listens at this port")]
    Refused,
    /// No route to the network.
    #[error("the proxy has no route to the destination's network")]
    NetworkUnreachable,
    /// The host is unreachable.
    #[error("the destination is unreachable: it is off, or a firewall is before it")]
    HostUnreachable,
    /// No answer within the connect timeout.
    #[error("the destination did not answer within the proxy's --connect-timeout")]
    TimedOut,
    /// Any other failure.
    #[error(
        "the proxy has too few open files or too little memory left, or failed: try again later"
    )]
    Failed,
}

/// The negotiation with one client; it does no input or output. The default is one before the client's first byte.
///
/// Order of calls: [`handle_input`](Self::handle_input) with each input, then
/// [`poll_transmit`](Self::poll_transmit) until it returns `None`. Both are repeated until
/// `handle_input` returns a target or a rejection. After a target:
/// [`answer`](Self::answer), `poll_transmit`, and [`into_early_data`](Self::into_early_data), which
/// returns the bytes after the request.
///
/// A negotiation holds at most [`REQUEST_LIMIT`] bytes and one input.
#[derive(Debug, Default)]
pub struct Negotiation {
    input: Vec<u8>,
    output: Vec<u8>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing has been read yet.
    #[default]
    Start,
    /// SOCKS5: the client lists its methods (RFC 1928 §3).
    SocksMethods,
    /// SOCKS5: the client sends its request (RFC 1928 §4).
    SocksRequest,
    /// HTTP: this many bytes of the head have been searched for its end.
    HttpHead { searched: usize },
    /// The target is known. The answer will be in this protocol.
    Asked(Protocol),
    /// Nothing more is expected.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Socks,
    Http,
}

/// The result of a step.
enum Step {
    /// More input is needed.
    Incomplete,
    /// This many bytes are consumed.
    Next(usize, Phase),
    /// This many bytes are consumed, and the target is known.
    Target(usize, Protocol, Target),
}

impl Negotiation {
    /// Handles bytes from the client. Returns the target when the request is complete. Bytes after
    /// the request are early data, which is for the destination.
    ///
    /// # Errors
    ///
    /// [`Rejection`]. The caller then sends what [`Self::poll_transmit`] returns, and closes the
    /// connection.
    pub fn handle_input(&mut self, bytes: &[u8]) -> Result<Option<Target>, Rejection> {
        self.input.extend_from_slice(bytes);
        loop {
            match self.step() {
                Ok(Step::Incomplete) => return Ok(None),
                Ok(Step::Next(used, phase)) => {
                    self.input.drain(..used);
                    self.phase = phase;
                }
                Ok(Step::Target(used, protocol, target)) => {
                    self.input.drain(..used);
                    self.phase = Phase::Asked(protocol);
                    return Ok(Some(target));
                }
                Err(rejection) => {
                    self.phase = Phase::Over;
                    return Err(rejection);
                }
            }
        }
    }

    fn step(&mut self) -> Result<Step, Rejection> {
        match self.phase {
            Phase::Start => match self.input.first() {
                None => Ok(Step::Incomplete),
                Some(&socks::VERSION) => Ok(Step::Next(0, Phase::SocksMethods)),
                // RFC 9112 section 2.2: an empty line before a request is ignored.
                Some(b'\r') if self.input.len() == 1 => Ok(Step::Incomplete),
                Some(b'\r') if self.input.starts_with(b"\r\n") => Ok(Step::Next(2, Phase::Start)),
                Some(b'A'..=b'Z') => Ok(Step::Next(0, Phase::HttpHead { searched: 0 })),
                Some(_) => Err(Rejection::Protocol),
            },
            Phase::SocksMethods => socks::methods(&self.input, &mut self.output),
            Phase::SocksRequest => socks::request(&self.input, &mut self.output),
            Phase::HttpHead { searched } => {
                let step = connect::head(&self.input, searched, &mut self.output)?;
                if matches!(step, Step::Incomplete) {
                    self.phase = Phase::HttpHead { searched: self.input.len() };
                }
                Ok(step)
            }
            Phase::Asked(_) | Phase::Over => Ok(Step::Incomplete),
        }
    }

    /// The bytes that are to be sent to the client now.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        (!self.output.is_empty()).then(|| std::mem::take(&mut self.output))
    }

    /// Prepares the answer to the request.
    pub fn answer(&mut self, outcome: Outcome) {
        match self.phase {
            Phase::Asked(Protocol::Socks) => socks::answer(outcome, &mut self.output),
            Phase::Asked(Protocol::Http) => connect::answer(outcome, &mut self.output),
            _ => {}
        }
        self.phase = Phase::Over;
    }

    /// The bytes that the client sent after its request, without waiting for the answer.
    pub fn into_early_data(self) -> Vec<u8> {
        self.input
    }

    /// The number of bytes that the negotiation holds.
    pub fn held(&self) -> usize {
        self.input.len() + self.output.len()
    }
}
