//! The server's figures for Prometheus, from its counters. `docs/guides/metrics.md` lists them.

use strum::VariantNames as _;
use wakeai_daemon::gauges;
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
    gauges! {
        page, "wakeai_serve";
        is "connections_limit" None "The most connections that may be open.":
            server.config.limits.connections as u64;
    }
    let help = "Requests that were refused, by reason.";
    let refused = page.counter("wakeai_serve_requests_refused", Unit::None, help);
    let counts = server.refusals.borrow();
    let count = |name: &&'static str| (*name, counts.get(name).copied().unwrap_or(0));
    refused.each("reason", Refusal::VARIANTS.iter().map(count));
}

fn store(page: &mut Page, server: &UploadServer) {
    let accounts = &server.store.accounts;
    gauges! {
        page, "wakeai_serve";
        is "uploads_unfinished" None "Uploads that have begun and are not complete.":
            accounts.unfinished_uploads() as u64;
        is "bodies" None "Bodies that are being received or written.":
            *server.bodies.borrow() as u64;
        is "disk_free" Bytes
            "What the disk has left for the server, as of the last look, of which there is one per minute.":
            server.disk_free.get();
        is "directory_lost" None
            "1 where the server's directory was removed while it runs, as of the last look, of which there is one per 5 s.":
            u64::from(server.store.files.is_lost());
        is "quota" Bytes "The limit of all files; no sample where there is none.": accounts.quota;
        is "quota_used" Bytes
            "What counts against that limit: files, and the lengths of unfinished uploads.":
            accounts.quota.map(|_| accounts.used());
        is "client_quota" Bytes
            "The limit of each client's uploads; no sample where there is none.":
            accounts.client_quota;
        is "client_quota_used_most" Bytes
            "What the client with the most bytes has of that limit.":
            accounts.client_quota.map(|_| accounts.largest_client());
    }
}
