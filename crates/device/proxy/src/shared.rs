//! The state that all connections of a proxy share, and the slots that they take. One thread serves all connections.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use wakeai_daemon::{Share, Shares};
use wakeai_host::{Drift, Drifts, Outcome};
use wakeai_kernel::Control;

use crate::config::{Config, Leg};
use crate::counters::Counters;
use crate::pipes::Pipes;

/// The largest number of name lookups at a time. Each needs a thread, because the resolver of the C
/// library blocks.
pub(crate) const LOOKUPS: usize = 16;
/// The largest number of connection attempts at a time beside the first one of each client, for the
/// further addresses of a name. Each needs a file descriptor.
pub(crate) const ATTEMPTS: usize = 128;
/// The size of the buffer through which bytes are copied.
const BUFFER_BYTES: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    /// What other programs have changed of what the proxy holds.
    pub(crate) drifts: RefCell<Drifts>,
    pub(crate) lookups: Shares,
    pub(crate) attempts: Shares,
    /// The addresses on which the proxy listens for SOCKS5 and CONNECT.
    pub(crate) listening: Vec<SocketAddr>,
    /// The handle that sets target rates, if any are configured.
    pub(crate) targets: Option<Control>,
    pub(crate) pipes: Pipes,
    pub(crate) can_splice: Cell<bool>,
    pub(crate) buffer: RefCell<Box<[u8]>>,
}

impl Shared {
    pub(crate) fn new(config: Config, targets: Option<Control>) -> Self {
        Self {
            lookups: Shares::new(LOOKUPS, None),
            attempts: Shares::new(ATTEMPTS, None),
            listening: Vec::new(),
            counters: Counters::default(),
            drifts: RefCell::default(),
            targets,
            pipes: Pipes::new(config.memory),
            can_splice: Cell::new(true),
            buffer: RefCell::new(vec![0; BUFFER_BYTES].into_boxed_slice()),
            config,
        }
    }

    /// Counts what was found, and returns the first finding that was not put back.
    pub(crate) fn take_in(&self, found: Vec<Drift>) -> Option<Drift> {
        let mut lost = None;
        for drift in found {
            self.counters.drifts.one();
            if matches!(drift.outcome, Outcome::Lost(_)) {
                lost.get_or_insert_with(|| drift.clone());
            }
            self.drifts.borrow_mut().add(drift);
        }
        lost
    }

    /// Whether a client at `source` may connect to `destination`. The proxy's own listening
    /// addresses are refused, because the proxy would connect to itself without end.
    pub(crate) fn allows(&self, source: IpAddr, destination: SocketAddr) -> bool {
        let is_own = |address| {
            wakeai_host::is_own(address).unwrap_or_else(|error| {
                tracing::warn!(%address, %error, "cannot look a route up: the address is refused");
                true
            })
        };
        let to = destination.ip();
        let is_proxy = self.listening.iter().any(|listening| {
            let here = listening.ip();
            listening.port() == destination.port()
                && (here.to_canonical() == to || (here.is_unspecified() && is_own(to)))
        });
        !is_proxy && self.config.access.allows(source, to, is_own)
    }

    /// The congestion control of the connection to the destination.
    pub(crate) fn destination_algorithm(&self) -> Option<&str> {
        let asked = self.config.leg != Leg::Client;
        self.config.algorithm.as_deref().filter(|_| asked)
    }

    /// The congestion control of the connection to the client.
    pub(crate) fn client_algorithm(&self) -> Option<&str> {
        let asked = self.config.leg != Leg::Destination;
        self.config.algorithm.as_deref().filter(|_| asked)
    }
}

/// A slot of the proxy: the right of a client to one connection. It is held while its connection exists, and while the
/// destination's name is being looked up.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) shared: Rc<Shared>,
    share: Share,
}

impl Slot {
    pub(crate) fn new(shared: &Rc<Shared>, share: Share) -> Self {
        let counters = &shared.counters;
        counters.accepted.one();
        counters.active.one();
        counters.most_active.raise_to(counters.active.get());
        Self { shared: Rc::clone(shared), share }
    }

    /// The time for which the connection may be idle now.
    pub(crate) fn idle_limit(&self) -> Duration {
        self.share.idle_limit(self.shared.config.idle_timeout.into())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.counters.active.less_one();
    }
}
