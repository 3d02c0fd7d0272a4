//! The counters of the server. `docs/guides/metrics.md` lists their metrics.

wakeai_daemon::counters! {
    "wakeai_serve",
    // The page has them by reason.
    besides refused "Requests that were refused.", denied "Requests without a valid token.";
    gauge "connections" None "Connections that are open now.": active;
    gauge "connections_peak" None "The most connections that were open at a time.": most_active;
    counter "connections_accepted" None "Connections that were accepted.": accepted;
    counter "connections_closed" None
        "Connections that the server closed or that ended with an error, by reason.":
        over_share(reason = "over_share")
            "Closed at once, because their client had its share of connections and none of these was idle.",
        evicted(reason = "evicted")
            "Closed while they were idle, because another one needed their place.",
        failed_handshakes(reason = "failed_handshake") "Their TLS handshake failed.",
        broken(reason = "broken")
            "They ended with an error, such as a request that is not HTTP or that came too slowly.";
    counter "requests" None "Requests that were answered.": requests;
    counter "uploads_created" None "Uploads that were created.": created;
    counter "uploads_ended" None "Uploads that ended, by how they did.":
        completed(end = "completed") "They became complete.",
        ended(end = "deleted") "A client ended them.",
        expired(end = "expired") "They expired before they were complete.";
    counter "bodies_interrupted" None "Bodies that did not count as a whole, by reason.":
        cut(reason = "cut") "The connection was lost, or no byte came for too long.",
        taken_over(reason = "taken_over") "A newer request took the upload over.",
        mismatched(reason = "mismatched") "Their checksum did not match.";
    counter "received" Bytes "Bytes that arrived in bodies.": bytes_received;
    counter "acknowledged" Bytes "Bytes that were acknowledged.": bytes_acknowledged;
    counter "disk_full" None "Requests that failed because the disk was full.": disk_full;
}
