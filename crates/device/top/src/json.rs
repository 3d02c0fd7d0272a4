//! A reading as one JSON object. `docs/reference/cli.md` lists the fields.

use serde_json::{Value, json};
use wakeai_connection::INFINITE_SSTHRESH;
use wakeai_units::{Duration, Rate};

use crate::reading::{Reading, SeenConnection};
use crate::view::View;

/// The connections that the view shows, in its order, with the agents and what is missing. Unknown values are null.
///
/// # Errors
///
/// No reading causes an error, because all keys are strings.
pub fn to_json(view: &View, reading: &Reading) -> serde_json::Result<String> {
    serde_json::to_string(&json!({
        "at_s": reading.at.as_secs_f64(),
        "clock_s": reading.clock_s,
        "connections": view.arrange(reading).into_iter().map(row).collect::<Vec<_>>(),
        "agents": reading.agents,
        "missing": reading.missing,
    }))
}

fn row(connection: &SeenConnection) -> Value {
    let figures = &connection.figures;
    let ms = |span: Option<Duration>| span.map(Duration::as_millis_f64);
    let mbps = |rate: Option<Rate>| rate.map(Rate::as_mbps_f64);
    let (floor, ceiling, ..) = connection.bounds.to_numbers();
    let bound = |segments: u32| (segments > 0).then_some(segments);
    let events = connection.events.map(|events| {
        let [reordering, local_overflow, duplicate_ack, timeout] = events.counts;
        json!({
            "reordering": reordering,
            "local_overflow": local_overflow,
            "duplicate_ack": duplicate_ack,
            "timeout": timeout,
        })
    });
    json!({
        "netns": connection.id.netns,
        "namespace": &*connection.namespace,
        "cookie": connection.id.cookie,
        "process": Some(&*connection.owner).filter(|name| !name.is_empty()),
        "pid": connection.pid,
        "local": connection.local.to_string(),
        "remote": connection.remote.to_string(),
        "algorithm": &*connection.algorithm,
        "state": figures.congestion_state.name(),
        "limited_by": connection.limit.map(<&str>::from),
        "cwnd": figures.cwnd.get(),
        "ssthresh": Some(figures.ssthresh.get()).filter(|segments| *segments < INFINITE_SSTHRESH),
        "floor": bound(floor),
        "ceiling": bound(ceiling),
        "rtt_ms": ms(figures.smoothed_rtt),
        "latest_rtt_ms": ms(figures.latest_rtt),
        "min_rtt_ms": ms(figures.min_rtt),
        "queueing_ms": ms(connection.queueing()),
        "packets_out": figures.packets_out.get(),
        "lost": figures.lost_out.get(),
        "retransmits": connection.retransmits,
        "send_queue_bytes": figures.send_queue.get(),
        "mss_bytes": figures.mss.get(),
        "sent_mbps": mbps(connection.sent),
        "received_mbps": mbps(connection.received),
        "delivery_rate_mbps": mbps(figures.delivery_rate),
        "pacing_rate_mbps": mbps(figures.pacing_rate),
        "events": events,
    })
}
