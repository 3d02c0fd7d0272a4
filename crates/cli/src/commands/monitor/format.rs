//! Formats a record as one line, of text or of JSON.

use std::io::Write as _;

use serde::Serialize;
use wakeai_kernel::{EventKind, INFINITE_SSTHRESH, Record};
use wakeai_units::{Duration, Rate, Segments};

/// A record as a JSON object. `docs/reference/cli.md` lists the fields.
#[derive(Serialize)]
struct MonitorLine {
    #[serde(rename = "type")]
    kind: &'static str,
    at_s: f64,
    netns: u32,
    cookie: u64,
    local: String,
    remote: String,
    #[serde(flatten)]
    detail: Detail,
    state: &'static str,
    cwnd: u32,
    ssthresh: Option<u32>,
    rtt_ms: Option<f64>,
    latest_rtt_ms: Option<f64>,
    min_rtt_ms: Option<f64>,
    packets_out: u32,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    send_queue_bytes: u64,
    delivered: u64,
    delivery_rate_mbps: f64,
    pacing_rate_mbps: Option<f64>,
    k_ms: Option<f64>,
}

/// The details of an event.
#[derive(Serialize)]
#[serde(untagged)]
enum Detail {
    None {},
    Change { from: &'static str, to: &'static str },
    Error { code: u8, error: &'static str },
}

pub(super) fn json(record: &Record, out: &mut Vec<u8>) {
    let Record { at, socket, figures, event } = record;
    let (kind, detail) = kind(*event);
    let time = |time: Option<Duration>| time.map(Duration::as_millis_f64);
    let line = MonitorLine {
        kind,
        at_s: at.as_secs_f64(),
        netns: socket.netns_inode,
        cookie: socket.cookie,
        local: socket.local.to_string(),
        remote: socket.remote.to_string(),
        detail,
        state: figures.congestion_state.name(),
        cwnd: figures.cwnd.get(),
        ssthresh: threshold(figures.ssthresh),
        rtt_ms: time(figures.smoothed_rtt),
        latest_rtt_ms: time(figures.latest_rtt),
        min_rtt_ms: time(figures.min_rtt),
        packets_out: figures.packets_out.get(),
        sacked: figures.sacked_out.get(),
        lost: figures.lost_out.get(),
        retransmitted: figures.retrans_out.get(),
        send_queue_bytes: figures.send_queue.get(),
        delivered: figures.delivered,
        delivery_rate_mbps: figures.delivery_rate.map_or(0.0, Rate::as_mbps_f64),
        pacing_rate_mbps: figures.pacing_rate.map(Rate::as_mbps_f64),
        k_ms: figures.k.map(Duration::as_millis_f64),
    };
    // Writing into memory fails only on a map whose keys are not strings.
    if serde_json::to_writer(&mut *out, &line).is_ok() {
        out.push(b'\n');
    }
}

pub(super) fn text(record: &Record, out: &mut Vec<u8>) {
    let Record { at, socket, figures, event } = record;
    let (kind, detail) = kind(*event);
    let time = |time: Option<Duration>| {
        time.map_or("-".to_owned(), |time| format!("{:.3}ms", time.as_millis_f64()))
    };
    let threshold = threshold(figures.ssthresh).map_or("-".to_owned(), |value| value.to_string());
    let extra = match detail {
        Detail::Change { from, to } => format!(" {from}->{to}"),
        Detail::Error { code, error } => format!(" {code} {error}"),
        Detail::None {} => String::new(),
    };
    // Writing into memory cannot fail.
    let _ = writeln!(
        out,
        "{:.6} {kind}{extra} {}>{} {} cwnd {} ssthresh {threshold} rtt {} latest {} min {} \
         out {} sacked {} lost {} retrans {} queue {} delivered {} pacing {} k {}",
        at.as_secs_f64(),
        socket.local,
        socket.remote,
        figures.congestion_state.name(),
        figures.cwnd.get(),
        time(figures.smoothed_rtt),
        time(figures.latest_rtt),
        time(figures.min_rtt),
        figures.packets_out.get(),
        figures.sacked_out.get(),
        figures.lost_out.get(),
        figures.retrans_out.get(),
        figures.send_queue.get(),
        figures.delivered,
        figures.pacing_rate.map_or("-".to_owned(), |rate| rate.to_string()),
        figures.k.map_or("-".to_owned(), |k| format!("{:.0}ms", k.as_millis_f64())),
    );
}

fn kind(event: Option<EventKind>) -> (&'static str, Detail) {
    let detail = match event {
        Some(EventKind::StateChange { from, to, .. }) => {
            Detail::Change { from: from.name(), to: to.name() }
        }
        Some(EventKind::Error(code)) => Detail::Error { code: code.number(), error: code.name() },
        _ => Detail::None {},
    };
    (event.map_or("sample", EventKind::name), detail)
}

fn threshold(ssthresh: Segments) -> Option<u32> {
    (ssthresh.get() < INFINITE_SSTHRESH).then(|| ssthresh.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeai_kernel::{CongestionState, ErrorCode, Figures, Socket};
    use wakeai_units::{Bytes, Instant};

    fn socket() -> Socket {
        Socket {
            cookie: 9,
            netns_cookie: 1,
            netns_inode: 4_026_531_840,
            local: "10.0.0.1:5000".parse().unwrap(),
            remote: "10.0.0.2:80".parse().unwrap(),
        }
    }

    fn figures() -> Figures {
        Figures {
            cwnd: Segments::new(10),
            ssthresh: Segments::new(INFINITE_SSTHRESH),
            smoothed_rtt: Some(Duration::from_micros(1500)),
            latest_rtt: Some(Duration::from_millis(2)),
            packets_out: Segments::new(4),
            send_queue: Bytes::new(5792),
            delivered: 77,
            delivery_rate: Some(Rate::from_mbps(3)),
            mss: Bytes::new(1448),
            ..Figures::default()
        }
    }

    fn line(record: &Record) -> serde_json::Value {
        let mut out = Vec::new();
        json(record, &mut out);
        assert_eq!(out.pop(), Some(b'\n'));
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_sample_is_one_object_with_null_for_what_is_unknown() {
        let at = Instant::from_nanos(1_500_000_000);
        let found = line(&Record { at, socket: socket(), figures: figures(), event: None });
        assert_eq!(found["type"], "sample");
        assert_eq!(found["at_s"], 1.5);
        assert_eq!(found["local"], "10.0.0.1:5000");
        assert_eq!(found["rtt_ms"], 1.5);
        assert_eq!(found["min_rtt_ms"], serde_json::Value::Null);
        assert_eq!(found["ssthresh"], serde_json::Value::Null);
        assert_eq!(found["k_ms"], serde_json::Value::Null);
        assert!(found.get("code").is_none());
    }

    #[test]
    fn an_error_event_has_the_number_of_the_papers_table() {
        let event = |kind| {
            let at = Instant::ZERO;
            Record { at, socket: socket(), figures: figures(), event: Some(kind) }
        };
        let codes = [
            ErrorCode::Reordering,
            ErrorCode::LocalOverflow,
            ErrorCode::DuplicateAck,
            ErrorCode::Timeout,
        ];
        for (number, code) in (1..).zip(codes) {
            assert_eq!(line(&event(EventKind::Error(code)))["code"], number);
        }
        let (from, to) = (CongestionState::Open, CongestionState::Loss);
        let change = line(&event(EventKind::StateChange { from, to, signal: None }));
        assert_eq!((&change["from"], &change["to"]), (&"open".into(), &"loss".into()));
    }

    #[test]
    fn a_text_line_ends_once_and_names_both_ends() {
        let mut out = Vec::new();
        let at = Instant::ZERO;
        text(&Record { at, socket: socket(), figures: figures(), event: None }, &mut out);
        let line = String::from_utf8(out).unwrap();
        assert_eq!(line.lines().count(), 1);
        assert!(
            line.contains("sample 10.0.0.1:5000>10.0.0.2:80 open cwnd 10 ssthresh -"),
            "{line}"
        );
    }
}
