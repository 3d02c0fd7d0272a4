//! Reads `[[flows]]`.

use std::sync::Arc;

use wakeai_settings::{Field, Fields, Problems};
use wakeai_units::{Bytes, Duration, Rate};

use super::names::{Names, overlap};
use super::{Context, LONGEST_RUN, Span, TablePlace, rate, with_places};
use crate::experiment::{Chunks, Endpoint, FlowKind, FlowKnobs, FlowSpec, Selector, StationGroup};

/// The largest number of single flows in all entries together.
const MOST: u64 = 100_000;
/// The largest transfer.
const LARGEST: Bytes = Bytes::new(1_000_000_000_000_000);
/// The largest number of connections over which one transfer is split.
const MOST_CHUNKS: u32 = 100_000;

/// The allowed values of `rtt_ref`, the RTT at which `wakeai_rtt` grows as fast as CUBIC.
const RTT_REF: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(60);

/// The congestion controls of QUIC.
const QUIC_ALGORITHMS: [&str; 2] = ["cubic", "reno"];

const ENDPOINT: &str = "\"server\", or the name of a group or of one station";

pub(super) fn read(fields: &mut Fields<'_>, context: &Context<'_>) -> Vec<FlowSpec> {
    let &Context { names, groups, span, .. } = context;
    let problems = fields.problems;
    let Some(field) = fields.require("flows", "at least one [[flows]]") else {
        return Vec::new();
    };
    let tables = field.tables(MOST as usize);
    if tables.is_empty() {
        field.refuse_as("no flow that can be read", "at least one [[flows]]");
    }
    let (places, flows) = with_places(tables, |table| flow(table, names, span));
    check_proxied(&flows, &places, groups, problems);
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
    let from = fields.require("from", ENDPOINT).and_then(|field| endpoint(&field, names));
    let to = fields.require("to", ENDPOINT);
    let to = to.and_then(|field| {
        let to = endpoint(&field, names)?;
        if from.is_some_and(|from| same(from, to)) {
            let found = "the sender itself among the receivers";
            field.refuse_as(found, "a receiver other than `from`");
            return None;
        }
        Some(to)
    });
    let kinds = [FlowKind::Tcp, FlowKind::Udp, FlowKind::Quic].map(|kind| (kind.into(), kind));
    let kind = fields.read_or("kind", FlowKind::Tcp, |field| field.choice(&kinds));
    let size = fields.read("size", |field| field.size(Bytes::new(1)..=LARGEST));
    let (start, jitter) = start(&mut fields, span);
    let algorithm = fields.read("algorithm", |field| algorithm(field, kind));
    let chunks = fields.read_or("chunks", Chunks::Count(1), |field| chunks(field, kind, size));
    let turns = fields.read_or("turns", false, |field| turns(field, kind, size));
    let target = fields.read("rate", |field| target(field, kind));
    let limit = fields.read("limit", |field| limit(field, kind));
    let reserve = fields.read_or("reserve", false, |field| {
        let reserve = field.boolean()?;
        if reserve && (target.is_none() || kind != FlowKind::Tcp) {
            field.refuse("false, or a TCP flow with `rate`, which is what is reserved");
        }
        Some(reserve)
    });
    let knobs = FlowKnobs {
        beta_ppm: fields
            .read("beta", |field| tcp_only(field, kind).and_then(Field::parts_per_million)),
        rtt_ref: fields.read("rtt_ref", |field| tcp_only(field, kind)?.duration(RTT_REF)),
        tcp_friendliness: fields
            .read("tcp_friendliness", |field| tcp_only(field, kind).and_then(Field::boolean)),
    };
    fields.finish();
    Some(FlowSpec {
        from: from?,
        to: to?,
        kind,
        size,
        start,
        jitter,
        algorithm: kind.is_reliable().then(|| algorithm.unwrap_or_else(|| Arc::from("cubic"))),
        knobs,
        chunks,
        turns,
        rate: target,
        limit,
        reserve,
    })
}

fn endpoint(field: &Field<'_>, names: &Names<'_>) -> Option<Endpoint> {
    if field.node.as_str() == Some("server") {
        return Some(Endpoint::Server);
    }
    selector(field, names, ENDPOINT).map(Endpoint::Stations)
}

/// The stations that the field names.
pub(super) fn selector(field: &Field<'_>, names: &Names<'_>, allowed: &str) -> Option<Selector> {
    let selector = names.resolve(field.text_if(allowed, |_| true)?);
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
    let start = fields.read_or("start", Duration::ZERO, |field| {
        let start = field.duration(range.clone())?;
        if start >= span.duration {
            field.refuse(format!("less than `duration`, {}", span.duration));
        }
        Some(start)
    });
    let jitter = fields.read_or("jitter", Duration::ZERO, |field| {
        let jitter = field.duration(range)?;
        if start < span.duration && start + jitter >= span.duration {
            field.refuse(format!("with `start` less than `duration`, {}", span.duration));
        }
        Some(jitter)
    });
    (start, jitter)
}

/// The name of a congestion control. The kernel limits it to 15 bytes (`TCP_CA_NAME_MAX` is 16 with
/// the zero at its end).
fn name(field: &Field<'_>) -> Option<Arc<str>> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let name = field
        .text_if("the name of a congestion control: 1 to 15 of a-z, 0-9, - and _", |text| {
            (1..=15).contains(&text.len()) && text.chars().all(allowed)
        });
    name.map(Arc::from)
}

/// The congestion control of a flow. QUIC does not use the kernel's.
fn algorithm(field: &Field<'_>, kind: FlowKind) -> Option<Arc<str>> {
    match kind {
        FlowKind::Tcp => name(field),
        FlowKind::Udp => {
            field.refuse("nothing: a flow of kind \"udp\" has no congestion control");
            None
        }
        FlowKind::Quic => field.choice(&QUIC_ALGORITHMS.map(|name| (name, name))).map(Arc::from),
    }
}

/// The field of a parameter of the kernel's congestion control. In a flow of another kind it is refused.
fn tcp_only<'f, 'a>(field: &'f Field<'a>, kind: FlowKind) -> Option<&'f Field<'a>> {
    field.or_refuse((kind == FlowKind::Tcp).then_some(field), || {
        format!("nothing: a flow of kind \"{kind}\" has no such parameter")
    })
}

/// What a UDP flow sends, or what a TCP sender holds.
fn target(field: &Field<'_>, kind: FlowKind) -> Option<Rate> {
    if kind == FlowKind::Quic {
        field.refuse("nothing: what a flow of kind \"quic\" sends at most is its `limit`");
        return None;
    }
    rate(field)
}

fn limit(field: &Field<'_>, kind: FlowKind) -> Option<Rate> {
    if kind == FlowKind::Udp {
        field.refuse("nothing: what a flow of kind \"udp\" sends is its `rate`");
        return None;
    }
    rate(field)
}

fn chunks(field: &Field<'_>, kind: FlowKind, size: Option<Bytes>) -> Option<Chunks> {
    let chunks = match field.node.as_str() {
        Some("auto") => Chunks::Auto,
        Some(_) => {
            field.refuse(format!("an integer from 1 to {MOST_CHUNKS}, or \"auto\""));
            return None;
        }
        None => Chunks::Count(field.integer(1..=MOST_CHUNKS)?),
    };
    if chunks != Chunks::Count(1) && (kind != FlowKind::Tcp || size.is_none()) {
        field.refuse("1, or a TCP flow with `size`, which is what is split");
    }
    if let Chunks::Count(count) = chunks
        && size.is_some_and(|size| size.get() < u64::from(count))
    {
        field.refuse("no more chunks than `size` has bytes");
    }
    Some(chunks)
}

fn turns(field: &Field<'_>, kind: FlowKind, size: Option<Bytes>) -> Option<bool> {
    let turns = field.boolean()?;
    if turns && (kind != FlowKind::Tcp || size.is_none()) {
        field.refuse("false, or a TCP flow with `size`, which is what a turn sends");
    }
    Some(turns)
}

/// Reports the flows that a station's proxy cannot carry: the proxy only relays TCP to the server,
/// with one congestion control and one target rate for all flows. `places` has the place of each
/// flow in the file.
fn check_proxied(
    flows: &[FlowSpec],
    places: &[TablePlace],
    groups: &[StationGroup],
    problems: &Problems,
) {
    let behind = |endpoint| match endpoint {
        Endpoint::Stations(selector) if groups[selector.group].proxy => Some(selector),
        _ => None,
    };
    for (index, (flow, (origin, path))) in flows.iter().zip(places).enumerate() {
        let refuse = |key: &str, found: &str, allowed: &str| {
            problems.add(*origin, format!("{path}.{key}"), found, allowed);
        };
        if behind(flow.to).is_some() {
            refuse("to", "a station with `proxy`", "a station without: it carries uploads alone");
        }
        let Some(sender) = behind(flow.from) else { continue };
        if flow.to != Endpoint::Server {
            refuse("to", "a flow to a station, from one with `proxy`", "\"server\"");
        }
        if flow.kind != FlowKind::Tcp {
            let found = format!("\"{}\" from a station with `proxy`", flow.kind);
            refuse("kind", &found, "\"tcp\", which it relays");
        }
        let differs = |other: &FlowSpec| {
            matches!(other.from, Endpoint::Stations(from) if overlap(from, sender))
                && (&other.algorithm, other.rate) != (&flow.algorithm, flow.rate)
        };
        if flows[..index].iter().any(differs) {
            let found = "another algorithm or rate than the station's flow before";
            refuse("algorithm", found, "the same for all flows of a station with `proxy`");
        }
    }
}
