//! The counters of the proxy. `docs/guides/metrics.md` lists their metrics.

wakeai_daemon::counters! {
    "wakeai_proxy",
    // The page has them by outcome.
    besides drifts
        "Times that another program had changed the rules, the route or the algorithms of the proxy.";
    gauge "connections" None "Connections that are open now.": active;
    gauge "connections_peak" None "The most connections that were open at a time.": most_active;
    counter "connections_accepted" None "Connections that were accepted from allowed sources.": accepted;
    counter "connections_connected" None "Connections that reached their destination.": connected;
    counter "connections_refused" None "Connections that were refused, by reason.":
        denied_sources(reason = "denied_source")
            "Closed without an answer: the source is not allowed.",
        over_share(reason = "over_share")
            "Closed without an answer: the client holds its share of the connections.",
        denied_destinations(reason = "denied_destination")
            "The destination is not allowed.",
        bad_requests(reason = "bad_request")
            "The request is of another protocol or is not served.",
        silent_clients(reason = "silent_client")
            "Closed: no request within the connect timeout.",
        failed_connects(reason = "failed_connect")
            "The destination could not be reached.";
    counter "connections_left" None "Connections that clients closed before they were connected.":
        left_clients;
    counter "connections_ended" None "Connections that had reached their destination and ended, by how they did.":
        finished(end = "finished")
            "Both ends have closed, and have acknowledged everything that was passed on.",
        reset(end = "reset") "Reset because one end was reset.",
        idle(end = "idle") "Reset because no byte was carried for the idle timeout.",
        dead(end = "dead") "Reset because one end no longer answered.";
    counter "accept_failures" None
        "Times that no connection could be accepted, because file descriptors or memory were short.":
        accept_failures "Clients then wait.";
    counter "relayed" Bytes "Bytes that were relayed, from clients (up) and to them (down).":
        bytes_up(direction = "up")
            "Bytes that were passed on to destinations. Of a connection that was reset, the last of \
             them may not have arrived.",
        bytes_down(direction = "down") "Bytes that were passed on to clients, in the same way.";
    counter "copied" Bytes
        "Bytes that were copied, because no pipe was free or the kernel cannot splice.":
        bytes_copied;
}
