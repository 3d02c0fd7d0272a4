//! The proxy's figures for Prometheus, from its counters. `docs/guides/metrics.md` lists them.

use wakeai_daemon::Shares;
use wakeai_daemon::metrics::{Page, Unit};

use crate::shared::Shared;

/// The present value of every figure. `slots` has the slots of each kind of clients, `explicit` or `transparent`.
pub(crate) fn page(shared: &Shared, slots: &[(&str, Shares)]) -> Page {
    let mut page = Page::new();
    let algorithm = shared.config.algorithm.clone().unwrap_or_default();
    let texts = vec![("version", env!("CARGO_PKG_VERSION").to_owned()), ("algorithm", algorithm)];
    page.info(
        "wakeai_proxy",
        "The proxy's version, and the congestion control of the wireless hop; empty for the host's default.",
        Some(texts),
    );
    shared.counters.report().add_to(&mut page);
    let of = |count: fn(&Shares) -> usize| {
        slots.iter().map(move |(entry, shares)| (*entry, count(shares) as u64))
    };
    let help = "Connections that may be open, by how clients come.";
    page.gauge("wakeai_proxy_slots", Unit::None, help).each("entry", of(Shares::total));
    let help =
        "Connections that may be opened besides; while there are none, further clients wait.";
    page.gauge("wakeai_proxy_slots_free", Unit::None, help).each("entry", of(Shares::free));
    let help = "Times that another program had changed what the proxy holds on the host, by what was done.";
    let drifts = page.counter("wakeai_proxy_drifts", Unit::None, help);
    drifts.each("outcome", shared.drifts.borrow().counts());
    page
}
