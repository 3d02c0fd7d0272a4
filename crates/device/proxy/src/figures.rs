//! The proxy's figures for Prometheus, from its counters. `docs/guides/metrics.md` lists them.

use wakeai_daemon::Shares;
use wakeai_daemon::metrics::{Page, Unit};
use wakeai_host::Drifts;

use crate::shared::Shared;

/// The slots of one kind of clients.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    /// `explicit` or `transparent`.
    pub(crate) entry: &'static str,
    pub(crate) shares: Shares,
}

/// The present value of every figure.
pub(crate) fn page(shared: &Shared, slots: &[Slots]) -> Page {
    let mut page = Page::new();
    let algorithm = shared.config.algorithm.clone().unwrap_or_default();
    let texts = vec![("version", env!("CARGO_PKG_VERSION").to_owned()), ("algorithm", algorithm)];
    page.info(
        "wakeai_proxy",
        "The proxy's version, and the congestion control of the wireless hop; empty for the host's default.",
        Some(texts),
    );
    shared.counters.report().add_to(&mut page);
    add_slots(&mut page, slots);
    add_drifts(&mut page, &shared.drifts.borrow());
    page
}

/// What other programs have changed of what the proxy holds on the host.
fn add_drifts(page: &mut Page, drifts: &Drifts) {
    let family = page.counter(
        "wakeai_proxy_drifts",
        Unit::None,
        "Times that another program had changed what the proxy holds on the host, by what was done.",
    );
    for (outcome, count) in drifts.counts() {
        family.with("outcome", outcome, count);
    }
}

/// The slots of each kind of clients, and how many of them are free.
fn add_slots(page: &mut Page, slots: &[Slots]) {
    let total = page.gauge(
        "wakeai_proxy_slots",
        Unit::None,
        "Connections that may be open, by how clients come.",
    );
    for slots in slots {
        total.with("entry", slots.entry, slots.shares.total() as u64);
    }
    let free = page.gauge(
        "wakeai_proxy_slots_free",
        Unit::None,
        "Connections that may be opened besides; while there are none, further clients wait.",
    );
    for slots in slots {
        free.with("entry", slots.entry, slots.shares.free() as u64);
    }
}
