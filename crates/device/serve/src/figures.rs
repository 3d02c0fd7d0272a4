//! The server's figures for Prometheus, from its counters. `docs/guides/metrics.md` lists them.

use strum::VariantNames as _;
use wakeai_daemon::metrics::{Page, Unit};

use super::counters::Report;
use super::refusal::Refusal;
use super::server::UploadServer;

/// The present value of every figure. `report` has the counts.
pub(crate) fn page(server: &UploadServer, report: &Report) -> Page {
    let mut page = Page::new();
    let texts = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    page.info("wakeai_serve", "The server's version.", Some(texts));
    report.add_to(&mut page);
    requests(&mut page, server);
    store(&mut page, server);
    page
}

fn requests(page: &mut Page, server: &UploadServer) {
    page.gauge(
        "wakeai_serve_connections_limit",
        Unit::None,
        "The most connections that may be open.",
    )
    .is(server.config.limits.connections as u64);
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

fn store(page: &mut Page, server: &UploadServer) {
    let accounts = &server.store.accounts;
    page.gauge(
        "wakeai_serve_uploads_unfinished",
        Unit::None,
        "Uploads that have begun and are not complete.",
    )
    .is(accounts.unfinished_uploads() as u64);
    page.gauge("wakeai_serve_bodies", Unit::None, "Bodies that are being received or written.")
        .is(*server.bodies.borrow() as u64);
    page.gauge(
        "wakeai_serve_disk_free",
        Unit::Bytes,
        "What the disk has left for the server, as of the last look, of which there is one per minute.",
    )
    .is(server.disk_free.get());
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
    .is(accounts.quota);
    page.gauge(
        "wakeai_serve_quota_used",
        Unit::Bytes,
        "What counts against that limit: files, and the lengths of unfinished uploads.",
    )
    .is(accounts.quota.map(|_| accounts.used()));
    page.gauge(
        "wakeai_serve_client_quota",
        Unit::Bytes,
        "The limit of each client's uploads; no sample where there is none.",
    )
    .is(accounts.client_quota);
    page.gauge(
        "wakeai_serve_client_quota_used_most",
        Unit::Bytes,
        "What the client with the most bytes has of that limit.",
    )
    .is(accounts.client_quota.map(|_| accounts.largest_client()));
}
