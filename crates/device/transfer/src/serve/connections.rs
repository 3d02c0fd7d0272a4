//! The open connections and their limits.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// A connection without a request for this long may be closed to make room for another one.
const SPARED: Duration = Duration::from_secs(1);

/// One open connection.
#[derive(Debug)]
pub(crate) struct Open {
    key: u64,
    from: IpAddr,
    idle_since: Cell<Option<Instant>>,
    /// Whether a body was refused before its end, so that more of it may be on its way.
    pub(crate) has_unread: Cell<bool>,
    /// Tells the connection to close.
    pub(crate) close: Notify,
    all: Rc<Connections>,
}

impl Open {
    /// Marks the connection as busy: a request has begun.
    pub(crate) fn is_busy(&self) {
        self.idle_since.set(None);
    }

    /// Whether no request is being received or answered.
    pub(crate) fn has_no_request(&self) -> bool {
        self.idle_since.get().is_some()
    }

    /// Marks the connection as idle: a request has been answered.
    pub(crate) fn is_idle(&self) {
        self.idle_since.set(Some(Instant::now()));
    }
}

/// The reason why a connection gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Its client has all of its connections in use.
    Client,
    /// All connections are in use.
    All,
}

#[derive(Debug)]
pub(crate) struct Connections {
    limit: usize,
    client_limit: usize,
    next: Cell<u64>,
    open: RefCell<BTreeMap<u64, Rc<Open>>>,
    freed: Notify,
    pub(crate) evicted: Cell<u64>,
}

impl Connections {
    pub(crate) fn new(limit: usize, client_limit: usize) -> Rc<Self> {
        Rc::new(Self {
            limit,
            client_limit,
            next: Cell::new(0),
            open: RefCell::default(),
            freed: Notify::new(),
            evicted: Cell::new(0),
        })
    }

    /// Gives a connection a place. If no place is free, this closes the connection that has been idle for longest.
    pub(crate) fn admit(self: &Rc<Self>, from: IpAddr) -> Result<Rc<Open>, Busy> {
        let from = network(from);
        let own = self.open.borrow().values().filter(|open| open.from == from).count();
        if own >= self.client_limit && !self.evict(|open| open.from == from) {
            return Err(Busy::Client);
        }
        if self.count() >= self.limit && !self.evict(|_| true) {
            return Err(Busy::All);
        }
        let key = self.next.replace(self.next.get() + 1);
        let open = Rc::new(Open {
            key,
            from,
            idle_since: Cell::new(Some(Instant::now())),
            has_unread: Cell::new(false),
            close: Notify::new(),
            all: Rc::clone(self),
        });
        self.open.borrow_mut().insert(key, Rc::clone(&open));
        Ok(open)
    }

    fn evict(&self, may: impl Fn(&Open) -> bool) -> bool {
        let longest = {
            let open = self.open.borrow();
            let idle = open.values().filter(|open| may(open)).filter_map(|open| {
                open.idle_since
                    .get()
                    .filter(|since| since.elapsed() >= SPARED)
                    .map(|since| (since, open.key))
            });
            idle.min()
        };
        let Some((_, key)) = longest else { return false };
        if let Some(open) = self.open.borrow_mut().remove(&key) {
            open.close.notify_one();
            self.evicted.set(self.evicted.get() + 1);
        }
        true
    }

    pub(crate) fn count(&self) -> usize {
        self.open.borrow().len()
    }

    /// Returns when a place may have become free.
    pub(crate) async fn freed(&self) {
        let _ = tokio::time::timeout(SPARED, self.freed.notified()).await;
    }
}

/// The place of a connection. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Place(pub(crate) Rc<Open>);

impl Drop for Place {
    fn drop(&mut self) {
        let all = &self.0.all;
        all.open.borrow_mut().remove(&self.0.key);
        all.freed.notify_one();
    }
}

/// The IPv4 address, or the /64 network of an IPv6 client. One IPv6 client has all addresses of such a network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}
