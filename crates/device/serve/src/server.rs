//! The state that all connections of a server share. One thread serves all connections.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use tokio::sync::{Semaphore, watch};
use wakeai_units::{Bytes, Duration, Instant, Serializer};

use super::config::ServeConfig;
use super::counters::Counters;
use super::store::Store;
use super::tokens::Tokens;

/// The time by which the bytes of a client may be ahead of its rate.
const BURST: Duration = Duration::from_millis(100);

/// The rate of one client. `until` is the time at which the last received byte would have arrived at this rate.
#[derive(Debug)]
struct Pacer {
    serializer: Serializer,
    until: Instant,
}

#[derive(Debug)]
pub(crate) struct UploadServer {
    pub(crate) config: ServeConfig,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) store: Store,
    pub(crate) counters: Counters,
    /// The requests that were refused, by the name of the reason.
    pub(crate) refusals: RefCell<BTreeMap<&'static str, u64>>,
    /// The number of bytes that were free on the disk at the last check.
    pub(crate) disk_free: Cell<Option<u64>>,
    /// Becomes true when the server stops.
    pub(crate) stopping: watch::Sender<bool>,
    /// The number of connections that are open.
    pub(crate) open: watch::Sender<usize>,
    /// The number of bodies that are being received or written.
    pub(crate) bodies: watch::Sender<usize>,
    /// The permit to compute a digest, which keeps a processor busy. There is only one permit.
    pub(crate) digests: Semaphore,
    pacers: RefCell<HashMap<Rc<str>, Pacer>>,
    start: std::time::Instant,
}

impl UploadServer {
    pub(crate) fn new(config: ServeConfig, tokens: Option<Tokens>, store: Store) -> Self {
        Self {
            config,
            tokens,
            store,
            counters: Counters::default(),
            refusals: RefCell::default(),
            disk_free: Cell::new(None),
            stopping: watch::Sender::new(false),
            open: watch::Sender::new(0),
            bodies: watch::Sender::new(0),
            digests: Semaphore::new(1),
            pacers: RefCell::default(),
            start: std::time::Instant::now(),
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Counts bytes that arrived.
    pub(crate) fn received(&self, client: &Rc<str>, count: u64) {
        self.counters.bytes_received.add(count);
        let Some(rate) = self.config.limits.rate else { return };
        let mut pacers = self.pacers.borrow_mut();
        let pacer = || Pacer { serializer: Serializer::new(rate), until: Instant::ZERO };
        let pacer = pacers.entry(Rc::clone(client)).or_insert_with(pacer);
        pacer.until = pacer.serializer.send(self.now(), Bytes::new(count));
    }

    /// Waits until the client's rate allows more bytes.
    pub(crate) async fn pace(&self, client: &Rc<str>) {
        loop {
            let until = self.pacers.borrow().get(client).map(|pacer| pacer.until);
            let ahead = until.map(|until| until.saturating_since(self.now()));
            let Some(ahead) = ahead.filter(|&ahead| ahead > BURST) else { return };
            tokio::time::sleep(ahead.saturating_sub(BURST).into()).await;
        }
    }

    /// Forgets the rates of clients that do not send.
    pub(crate) fn forget_pacers(&self) {
        let now = self.now();
        self.pacers.borrow_mut().retain(|_, pacer| pacer.until > now);
    }
}
