//! The open connections and their limits: the one that has been idle for longest makes room for another.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use wakeai_daemon::{Busy, Client, Count, Share, Shares};

/// A connection without a request for this long may be closed to make room for another one.
const SPARED: Duration = Duration::from_secs(1);

/// One open connection.
#[derive(Debug)]
pub(crate) struct Open {
    key: u64,
    client: Client,
    share: RefCell<Option<Share>>,
    idle_since: Cell<Option<Instant>>,
    /// Whether a body was refused before its end, so that more of it may be on its way.
    pub(crate) has_unread: Cell<bool>,
    /// Tells the connection to close.
    pub(crate) close: Notify,
    all: Rc<Connections>,
}

impl Open {
    /// Marks the connection as busy: a request has begun.
    pub(crate) fn set_busy(&self) {
        self.idle_since.set(None);
    }

    /// Whether no request is being received or answered.
    pub(crate) fn has_no_request(&self) -> bool {
        self.idle_since.get().is_some()
    }

    /// Marks the connection as idle: a request has been answered.
    pub(crate) fn set_idle(&self) {
        self.idle_since.set(Some(Instant::now()));
    }
}

#[derive(Debug)]
pub(crate) struct Connections {
    shares: Shares,
    next: Cell<u64>,
    open: RefCell<BTreeMap<u64, Rc<Open>>>,
    pub(crate) evicted: Count,
}

impl Connections {
    pub(crate) fn new(limit: usize, client_limit: usize) -> Rc<Self> {
        Rc::new(Self {
            shares: Shares::new(limit, Some(client_limit)),
            next: Cell::new(0),
            open: RefCell::default(),
            evicted: Count::default(),
        })
    }

    /// Gives a connection a place. If no place is free, this closes the connection that has been idle for longest.
    pub(crate) fn admit(self: &Rc<Self>, from: IpAddr) -> Result<Rc<Open>, Busy> {
        let client = Client::at(from);
        let share = loop {
            match self.shares.try_take(client) {
                Ok(share) => break share,
                Err(Busy::OverShare) if self.evict(|open| open.client == client) => {}
                Err(Busy::Full) if self.evict(|_| true) => {}
                Err(busy) => return Err(busy),
            }
        };
        let key = self.next.replace(self.next.get() + 1);
        let open = Rc::new(Open {
            key,
            client,
            share: RefCell::new(Some(share)),
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
        if let Some(open) = self.remove(key) {
            open.close.notify_one();
            self.evicted.one();
        }
        true
    }

    /// Takes a connection out of the open ones, and gives its share back.
    fn remove(&self, key: u64) -> Option<Rc<Open>> {
        let open = self.open.borrow_mut().remove(&key)?;
        drop(open.share.take());
        Some(open)
    }

    /// Returns when a place may have become free.
    pub(crate) async fn freed(&self) {
        let _ = tokio::time::timeout(SPARED, self.shares.given_back()).await;
    }
}

/// The place of a connection. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct ConnectionPlace(pub(crate) Rc<Open>);

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.0.all.remove(self.0.key);
    }
}
