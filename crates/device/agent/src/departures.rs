//! The queueing discipline of the agent's interface: while the agent governs datagrams, `fq` stands in place of the
//! kernel's default. The process that supervises the agent puts it and takes it back.

use std::cell::{Cell, RefCell};

use wakeai_api::config::{Config, Queue};
use wakeai_host::{Guard, Lease, PutDepartures, put_departures};

/// The discipline of one interface. It is put at the start, and again whenever the program that governs datagrams is
/// attached; it is taken back when that program is detached because the agent hangs or its interface has gone.
#[derive(Debug)]
pub(crate) struct Departures<'a> {
    lease: &'a Lease,
    interface: String,
    /// Undoes the change, where one was made.
    put: RefCell<Option<Guard>>,
    /// Whether the program was attached at the last look.
    was_attached: Cell<bool>,
    /// Whether the last attempt to put it failed, for example because the interface was just made anew.
    failed: Cell<bool>,
}

impl<'a> Departures<'a> {
    /// Puts the discipline, where the configuration does not leave it alone. The log says what was done, or why nothing.
    pub(crate) fn put(lease: &'a Lease, config: &Config) -> Option<Self> {
        let own = Self {
            lease,
            interface: config.interface.clone(),
            put: RefCell::new(None),
            was_attached: Cell::new(false),
            failed: Cell::new(false),
        };
        (config.datagrams.queue == Queue::Fq).then(|| {
            own.put_again();
            own
        })
    }

    /// Follows the program that governs datagrams. What could not be put is tried again at each look.
    pub(crate) fn follow(&self, is_attached: bool) {
        let was_attached = self.was_attached.replace(is_attached);
        let is_missing = self.put.borrow().is_none();
        if is_attached && is_missing && (!was_attached || self.failed.get()) {
            self.put_again();
        } else if was_attached && !is_attached {
            self.take_back();
        }
    }

    /// Takes it back, if it was put.
    pub(crate) fn take_back(&self) {
        let Some(guard) = self.put.take() else { return };
        if let Err(error) = guard.restore(self.lease) {
            tracing::warn!(%error, "the queueing discipline could not be restored; the next wakeai command will restore it");
        }
    }

    fn put_again(&self) {
        let interface = &self.interface;
        let put = put_departures(self.lease, interface);
        let had_failed = self.failed.replace(put.is_err());
        match put {
            Ok(PutDepartures::Done(guard, before)) => {
                let before = before.as_deref().unwrap_or("none");
                tracing::info!(
                    interface,
                    before,
                    "fq is in place of the default queueing discipline: datagrams above their rate wait"
                );
                *self.put.borrow_mut() = Some(guard);
            }
            Ok(PutDepartures::Obeyed) => {
                tracing::info!(
                    interface,
                    "the queueing discipline obeys departure times: datagrams above their rate wait"
                );
            }
            Ok(PutDepartures::Chosen(found)) => {
                tracing::info!(
                    interface,
                    found,
                    "another program has chosen the queueing discipline: datagrams above their rate are dropped"
                );
            }
            Ok(PutDepartures::NoFq) => {
                tracing::info!(
                    interface,
                    "the kernel has no fq (sch_fq): datagrams above their rate are dropped"
                );
            }
            Err(error) if had_failed => tracing::debug!(%error, "still cannot be put"),
            Err(error) => tracing::warn!(%error, "datagrams above their rate are dropped"),
        }
    }
}
