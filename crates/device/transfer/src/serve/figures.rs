//! The server's figures for Prometheus, from its counters. `docs/guides/metrics.md` lists them.

use strum::VariantNames as _;
use wakeai_metrics::{Page, Unit};

use super::counters::Report;
use super::refusal::Refusal;
use super::server::Server;

/// The present value of every figure. `report` has the counts.
pub(crate) fn page(server: &Server, report: &Report) -> Page {
    let mut page = Page::new();
    let texts = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    page.info("wakeai_serve", "The server's version.", Some(texts));
    connections(&mut page, server, report);
    requests(&mut page, server, report);
    uploads(&mut page, server, report);
    page
}

fn connections(page: &mut Page, server: &Server, report: &Report) {
    page.gauge("wakeai_serve_connections", Unit::None, "Connections that are open now.")
        .is(report.active);
    page.gauge(
        "wakeai_serve_connections_peak",
        Unit::None,
        "The most connections that were open at a time.",
    )
    .is(report.most_active);
    page.gauge(
        "wakeai_serve_connections_limit",
        Unit::None,
        "The most connections that may be open.",
    )
    .is(server.config.limits.connections as u64);
    page.counter(
        "wakeai_serve_connections_accepted",
        Unit::None,
        "Connections that were accepted.",
    )
    .is(report.accepted);
    page.counter(
        "wakeai_serve_connections_closed",
        Unit::None,
        "Connections that the server closed or that ended with an error, by reason.",
    )
    .with("reason", "over_share", report.over_share)
    .with("reason", "evicted", report.evicted)
    .with("reason", "failed_handshake", report.failed_handshakes)
    .with("reason", "broken", report.broken);
}

fn requests(page: &mut Page, server: &Server, report: &Report) {
    page.counter("wakeai_serve_requests", Unit::None, "Requests that were answered.")
        .is(report.requests);
    let refused = page.counter(
        "wakeai_serve_requests_refused",
        Unit::None,
        "Requests that were refused, by reason.",
    );
    let counts = server.refusals.borrow();
    for name in Refusal::VARIANTS {
        refused.with("reason", name, counts.get(name).copied().unwrap_or(0));
    }
}

fn uploads(page: &mut Page, server: &Server, report: &Report) {
    let accounts = &server.store.accounts;
    page.gauge(
        "wakeai_serve_uploads_unfinished",
        Unit::None,
        "Uploads that have begun and are not complete.",
    )
    .is(accounts.unfinished_uploads() as u64);
    page.gauge("wakeai_serve_bodies", Unit::None, "Bodies that are being received or written.")
        .is(*server.bodies.borrow() as u64);
    page.counter("wakeai_serve_uploads_created", Unit::None, "Uploads that were created.")
        .is(report.created);
    page.counter("wakeai_serve_uploads_ended", Unit::None, "Uploads that ended, by how they did.")
        .with("end", "completed", report.completed)
        .with("end", "deleted", report.ended)
        .with("end", "expired", report.expired);
    page.counter(
        "wakeai_serve_bodies_interrupted",
        Unit::None,
        "Bodies that did not count as a whole, by reason.",
    )
    .with("reason", "cut", report.cut)
    .with("reason", "taken_over", report.taken_over)
    .with("reason", "mismatched", report.mismatched);
    page.counter("wakeai_serve_received", Unit::Bytes, "Bytes that arrived in bodies.")
        .is(report.bytes_received);
    page.counter("wakeai_serve_acknowledged", Unit::Bytes, "Bytes that were acknowledged.")
        .is(report.bytes_acknowledged);
    page.counter(
        "wakeai_serve_disk_full",
        Unit::None,
        "Requests that failed because the disk was full.",
    )
    .is(report.disk_full);
    page.gauge(
        "wakeai_serve_disk_free",
        Unit::Bytes,
        "What the disk has left for the server, as of the last look, of which there is one per minute.",
    )
    .is_real(server.disk_free.get().map(|bytes| bytes as f64));
    page.gauge(
        "wakeai_serve_directory_lost",
        Unit::None,
        "1 where the server's directory was removed while it runs, as of the last look, of which there is one per 5 s.",
    )
    .is(u64::from(server.store.files.is_lost()));
    page.gauge(
        "wakeai_serve_quota",
        Unit::Bytes,
        "The limit of all files; no sample where there is none.",
    )
    .is_real(accounts.quota().map(|bytes| bytes as f64));
    page.gauge(
        "wakeai_serve_quota_used",
        Unit::Bytes,
        "What counts against that limit: files, and the lengths of unfinished uploads.",
    )
    .is_real(accounts.quota().map(|_| accounts.used() as f64));
    page.gauge(
        "wakeai_serve_client_quota",
        Unit::Bytes,
        "The limit of each client's uploads; no sample where there is none.",
    )
    .is_real(accounts.client_quota().map(|bytes| bytes as f64));
    page.gauge(
        "wakeai_serve_client_quota_used_most",
        Unit::Bytes,
        "What the client with the most bytes has of that limit.",
    )
    .is_real(accounts.client_quota().map(|_| accounts.largest_client() as f64));
}
