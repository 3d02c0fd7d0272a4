//! `[[flows]]`.

use std::sync::Arc;

use wakeai_units::{Bytes, Duration, Rate};

use super::fields::{Field, Fields};
use super::names::{Names, overlap};
use super::proxied::{self, Written};
use super::{FASTEST, LONGEST_RUN, SLOWEST, Span};
use crate::experiment::{Endpoint, FlowKind, FlowKnobs, FlowSpec, Selector, StationGroup};
use crate::tree::Value;

/// Single flows in all entries together.
const MOST: u64 = 100_000;
/// The largest transfer.
const LARGEST: Bytes = Bytes::new(1_000_000_000_000_000);
/// Connections that one transfer is split over.
const MOST_CHUNKS: u32 = 100_000;

/// The allowed RTTs at which `wakeai_rtt` is as fast as CUBIC.
const RTT_REF: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(60);

const WHO: &str = "\"server\", or the name of a group or of one station";

pub(super) fn read(
    fields: &mut Fields<'_>,
    names: &Names<'_>,
    groups: &[StationGroup],
    span: &Span,
) -> Vec<FlowSpec> {
    let problems = fields.problems;
    let Some(field) = fields.require("flows", "at least one [[flows]]") else {
        return Vec::new();
    };
    let tables = field.tables(MOST as usize);
    if tables.is_empty() {
        field.refuse_as("no flow that can be read", "at least one [[flows]]");
    }
    let written = tables.into_iter().filter_map(|table| {
        let (origin, path) = (table.origin, table.path.clone());
        Some(Written { flow: flow(table, names, span)?, origin, path })
    });
    let written: Vec<Written> = written.collect();
    proxied::check(&written, groups, problems);
    let flows: Vec<FlowSpec> = written.into_iter().map(|written| written.flow).collect();
    let count = |endpoint| match endpoint {
        Endpoint::Server | Endpoint::Stations(Selector { number: Some(_), .. }) => 1,
        Endpoint::Stations(Selector { group, number: None }) => u64::from(groups[group].count),
    };
    let total: u64 = flows.iter().map(|flow| count(flow.from) * count(flow.to)).sum();
    if total > MOST {
        let allowed = format!("at most {MOST}, each sender to each receiver");
        problems.add(field.node.origin, "flows", format!("{total} flows"), allowed);
    }
    flows
}

fn flow(mut fields: Fields<'_>, names: &Names<'_>, span: &Span) -> Option<FlowSpec> {
    let from = fields.require("from", WHO).and_then(|field| endpoint(&field, names));
    let to = fields.require("to", WHO);
    let to = to.and_then(|field| {
        let to = endpoint(&field, names)?;
        if from.is_some_and(|from| same(from, to)) {
            field
                .refuse_as("the sender itself among the receivers", "a receiver other than `from`");
            return None;
        }
        Some(to)
    });
    let kinds = [("tcp", FlowKind::Tcp), ("udp", FlowKind::Udp)];
    let kind = fields.get("kind").and_then(|field| field.choice(&kinds)).unwrap_or(FlowKind::Tcp);
    let size = fields.get("size").and_then(|field| field.size(Bytes::new(1)..=LARGEST));
    let (start, jitter) = start(&mut fields, span);
    let algorithm = fields.get("algorithm");
    let algorithm = match kind {
        FlowKind::Tcp => {
            Some(algorithm.and_then(|field| name(&field)).unwrap_or_else(|| Arc::from("cubic")))
        }
        FlowKind::Udp => {
            refuse_for_udp(algorithm.as_ref());
            None
        }
    };
    let chunks = fields.get("chunks");
    let chunks = chunks.and_then(|field| chunks_of(&field, kind, size)).unwrap_or(1);
    let rate = fields.get("rate").and_then(|field| field.rate(SLOWEST..=FASTEST));
    let limit = fields.get("limit").and_then(|field| limit_of(&field, kind));
    let reserve = fields.get("reserve").and_then(|field| {
        let reserve = field.boolean()?;
        if reserve && (rate.is_none() || kind == FlowKind::Udp) {
            field.refuse("false, or a TCP flow with `rate`, which is what is reserved");
        }
        Some(reserve)
    });
    let knobs = knobs(&mut fields, kind);
    fields.finish();
    let reserve = reserve.unwrap_or(false);
    Some(FlowSpec {
        from: from?,
        to: to?,
        kind,
        size,
        start,
        jitter,
        algorithm,
        knobs,
        chunks,
        rate,
        limit,
        reserve,
    })
}

pub(super) fn endpoint(field: &Field<'_>, names: &Names<'_>) -> Option<Endpoint> {
    if field.node.as_str() == Some("server") {
        return Some(Endpoint::Server);
    }
    selector(field, names, WHO).map(Endpoint::Stations)
}

pub(super) fn selector(field: &Field<'_>, names: &Names<'_>, allowed: &str) -> Option<Selector> {
    let selector = names.resolve(field.text(allowed)?);
    if selector.is_none() {
        let found = format!("{}, which no station or group is called", field.node.found());
        field.refuse_as(found, allowed);
    }
    selector
}

fn same(from: Endpoint, to: Endpoint) -> bool {
    match (from, to) {
        (Endpoint::Server, Endpoint::Server) => true,
        (Endpoint::Stations(from), Endpoint::Stations(to)) => overlap(from, to),
        _ => false,
    }
}

fn start(fields: &mut Fields<'_>, span: &Span) -> (Duration, Duration) {
    let range = Duration::ZERO..=LONGEST_RUN;
    let start = fields.get("start").and_then(|field| {
        let start = field.duration(range.clone())?;
        if start >= span.duration {
            field.refuse(format!("less than `duration`, {}", span.duration));
        }
        Some(start)
    });
    let start = start.unwrap_or(Duration::ZERO);
    let jitter = fields.get("jitter").and_then(|field| {
        let jitter = field.duration(range)?;
        if start < span.duration && start + jitter >= span.duration {
            field.refuse(format!("with `start` less than `duration`, {}", span.duration));
        }
        Some(jitter)
    });
    (start, jitter.unwrap_or(Duration::ZERO))
}

/// A congestion control's name, as the kernel limits it (`TCP_CA_NAME_MAX`, 16 with the end).
fn name(field: &Field<'_>) -> Option<Arc<str>> {
    const ALLOWED: &str = "the name of a congestion control: 1 to 15 of a-z, 0-9, - and _";
    let text = field.text(ALLOWED)?;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if !(1..=15).contains(&text.len()) || !text.chars().all(allowed) {
        field.refuse(ALLOWED);
        return None;
    }
    Some(Arc::from(text))
}

fn knobs(fields: &mut Fields<'_>, kind: FlowKind) -> FlowKnobs {
    let [beta, rtt_ref, friendliness] =
        ["beta", "rtt_ref", "tcp_friendliness"].map(|key| fields.get(key));
    if kind == FlowKind::Udp {
        for field in [&beta, &rtt_ref, &friendliness] {
            refuse_for_udp(field.as_ref());
        }
        return FlowKnobs::default();
    }
    FlowKnobs {
        beta_ppm: beta.and_then(|field| field.parts_per_million()),
        rtt_ref: rtt_ref.and_then(|field| field.duration(RTT_REF)),
        tcp_friendliness: friendliness.and_then(|field| field.boolean()),
    }
}

fn refuse_for_udp(field: Option<&Field<'_>>) {
    if let Some(field) = field {
        field.refuse("nothing: a flow of kind \"udp\" has no congestion control");
    }
}

fn limit_of(field: &Field<'_>, kind: FlowKind) -> Option<Rate> {
    if kind == FlowKind::Udp {
        field.refuse("nothing: what a flow of kind \"udp\" sends is its `rate`");
        return None;
    }
    field.rate(SLOWEST..=FASTEST)
}

fn chunks_of(field: &Field<'_>, kind: FlowKind, size: Option<Bytes>) -> Option<u32> {
    if let Value::String(text) = &field.node.value
        && text == "auto"
    {
        field.refuse(format!(
            "an integer from 1 to {MOST_CHUNKS}: a sender that decides by itself does not exist yet"
        ));
        return None;
    }
    let chunks = field.integer(1..=MOST_CHUNKS)?;
    if chunks > 1 && (kind == FlowKind::Udp || size.is_none()) {
        field.refuse("1, or a TCP flow with `size`, which is what is split");
    }
    if size.is_some_and(|size| size.get() < u64::from(chunks)) {
        field.refuse("no more chunks than `size` has bytes");
    }
    Some(chunks)
}
