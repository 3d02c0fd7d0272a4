//! A reading as one JSON object. `docs/reference/cli.md` lists the fields.

use serde::Serialize;
use wakeai_api::Answers;
use wakeai_connection::INFINITE_SSTHRESH;
use wakeai_units::{Duration, Rate};

use crate::reading::{Reading, SeenConnection};
use crate::view::View;

#[derive(Serialize)]
struct Object<'a> {
    at_s: f64,
    clock_s: Option<u64>,
    connections: Vec<JsonRow<'a>>,
    agents: &'a [Answers],
    missing: &'a [String],
}

#[derive(Serialize)]
struct JsonRow<'a> {
    netns: u64,
    namespace: &'a str,
    cookie: u64,
    process: Option<&'a str>,
    pid: Option<u32>,
    local: String,
    remote: String,
    algorithm: &'a str,
    state: &'static str,
    limited_by: Option<&'static str>,
    cwnd: u32,
    ssthresh: Option<u32>,
    floor: Option<u32>,
    ceiling: Option<u32>,
    rtt_ms: Option<f64>,
    latest_rtt_ms: Option<f64>,
    min_rtt_ms: Option<f64>,
    queueing_ms: Option<f64>,
    packets_out: u32,
    lost: u32,
    retransmits: u64,
    send_queue_bytes: u64,
    mss_bytes: u64,
    sent_mbps: Option<f64>,
    received_mbps: Option<f64>,
    delivery_rate_mbps: Option<f64>,
    pacing_rate_mbps: Option<f64>,
    events: Option<EventCounts>,
}

#[derive(Serialize)]
struct EventCounts {
    reordering: u64,
    local_overflow: u64,
    duplicate_ack: u64,
    timeout: u64,
}

/// The connections that the view shows, in its order, with the agents and what is missing. Unknown values are null.
///
/// # Errors
///
/// The path of an agent's socket is not UTF-8.
pub fn to_json(view: &View, reading: &Reading) -> serde_json::Result<String> {
    serde_json::to_string(&Object {
        at_s: reading.at.as_secs_f64(),
        clock_s: reading.clock_s,
        connections: view.arrange(reading).into_iter().map(row).collect(),
        agents: &reading.agents,
        missing: &reading.missing,
    })
}

fn row(connection: &SeenConnection) -> JsonRow<'_> {
    let figures = &connection.figures;
    let ms = |span: Option<Duration>| span.map(Duration::as_millis_f64);
    let mbps = |rate: Option<Rate>| rate.map(Rate::as_mbps_f64);
    let (floor, ceiling, ..) = connection.bounds.to_numbers();
    let bound = |segments: u32| (segments > 0).then_some(segments);
    JsonRow {
        netns: connection.id.netns,
        namespace: &connection.namespace,
        cookie: connection.id.cookie,
        process: Some(&*connection.owner).filter(|name| !name.is_empty()),
        pid: connection.pid,
        local: connection.local.to_string(),
        remote: connection.remote.to_string(),
        algorithm: &connection.algorithm,
        state: figures.congestion_state.name(),
        limited_by: connection.limit.map(Into::into),
        cwnd: figures.cwnd.get(),
        ssthresh: Some(figures.ssthresh.get()).filter(|segments| *segments < INFINITE_SSTHRESH),
        floor: bound(floor),
        ceiling: bound(ceiling),
        rtt_ms: ms(figures.smoothed_rtt),
        latest_rtt_ms: ms(figures.latest_rtt),
        min_rtt_ms: ms(figures.min_rtt),
        queueing_ms: ms(connection.queueing()),
        packets_out: figures.packets_out.get(),
        lost: figures.lost_out.get(),
        retransmits: connection.retransmits,
        send_queue_bytes: figures.send_queue.get(),
        mss_bytes: figures.mss.get(),
        sent_mbps: mbps(connection.sent),
        received_mbps: mbps(connection.received),
        delivery_rate_mbps: mbps(figures.delivery_rate),
        pacing_rate_mbps: mbps(figures.pacing_rate),
        events: connection.events.map(|events| {
            let [reordering, local_overflow, duplicate_ack, timeout] = events.counts;
            EventCounts { reordering, local_overflow, duplicate_ack, timeout }
        }),
    }
}
