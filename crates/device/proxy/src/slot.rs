//! A slot: the right of a client to one connection.

use std::rc::Rc;
use std::time::Duration;

use wakeai_daemon::Share;

use crate::shared::Shared;

/// A slot of the proxy. It is held while its connection exists, and while the destination's name is
/// being looked up.
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
        self.share.idle_limit(self.shared.idle_timeout)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.counters.active.less_one();
    }
}
