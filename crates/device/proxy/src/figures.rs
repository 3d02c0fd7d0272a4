//! The proxy's figures for Prometheus, from its counters. `docs/guides/metrics.md` lists them.

use wakeai_host::Drifts;
use wakeai_metrics::{Page, Unit};

use crate::counters::Report;
use crate::shared::Shared;
use crate::shares::Shares;

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
    // All fields are named here, so that a counter without a figure is a compile error.
    let Report {
        accepted,
        active,
        most_active,
        denied_sources,
        over_share,
        drifts: _, // the page has them by kind and outcome
        accept_failures,
        denied_destinations,
        bad_requests,
        silent_clients,
        failed_connects,
        left_clients,
        connected,
        finished,
        reset,
        idle,
        dead,
        bytes_up,
        bytes_down,
        bytes_copied,
    } = shared.counters.report();
    page.gauge("wakeai_proxy_connections", Unit::None, "Connections that are open now.").is(active);
    page.gauge(
        "wakeai_proxy_connections_peak",
        Unit::None,
        "The most connections that were open at a time.",
    )
    .is(most_active);
    add_slots(&mut page, slots);
    page.counter(
        "wakeai_proxy_connections_accepted",
        Unit::None,
        "Connections that were accepted from allowed sources.",
    )
    .is(accepted);
    page.counter(
        "wakeai_proxy_connections_connected",
        Unit::None,
        "Connections that reached their destination.",
    )
    .is(connected);
    page.counter(
        "wakeai_proxy_connections_refused",
        Unit::None,
        "Connections that were refused, by reason.",
    )
    .with("reason", "denied_source", denied_sources)
    .with("reason", "over_share", over_share)
    .with("reason", "denied_destination", denied_destinations)
    .with("reason", "bad_request", bad_requests)
    .with("reason", "silent_client", silent_clients)
    .with("reason", "failed_connect", failed_connects);
    page.counter(
        "wakeai_proxy_connections_left",
        Unit::None,
        "Connections that clients closed before they were connected.",
    )
    .is(left_clients);
    page.counter(
        "wakeai_proxy_connections_ended",
        Unit::None,
        "Connections that had reached their destination and ended, by how they did.",
    )
    .with("end", "finished", finished)
    .with("end", "reset", reset)
    .with("end", "idle", idle)
    .with("end", "dead", dead);
    add_drifts(&mut page, &shared.drifts.borrow());
    page.counter(
        "wakeai_proxy_accept_failures",
        Unit::None,
        "Times that no connection could be accepted, because file descriptors or memory were short.",
    )
    .is(accept_failures);
    page.counter(
        "wakeai_proxy_relayed",
        Unit::Bytes,
        "Bytes that were relayed, from clients (up) and to them (down).",
    )
    .with("direction", "up", bytes_up)
    .with("direction", "down", bytes_down);
    page.counter(
        "wakeai_proxy_copied",
        Unit::Bytes,
        "Bytes that were copied, because no pipe was free or the kernel cannot splice.",
    )
    .is(bytes_copied);
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
