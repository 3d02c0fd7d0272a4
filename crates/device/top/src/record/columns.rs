//! The columns of a recording, written and read.

use std::borrow::Borrow;
use std::sync::Arc;

use wakeai_connection::{Bounds, Figures};
use wakeai_tables::{Column, Group, TableError, Value, columns, figure_columns, figures_of};
use wakeai_units::{Instant, Rate};

use crate::reading::{ConnectionId, Events, Reading, SeenConnection, Texts};

/// A row of `connections-N.parquet`.
#[derive(Clone, Debug)]
pub(super) struct ConnectionRow {
    at: Instant,
    local: String,
    remote: String,
    connection: SeenConnection,
}

impl Borrow<Figures> for ConnectionRow {
    fn borrow(&self) -> &Figures {
        &self.connection.figures
    }
}

impl ConnectionRow {
    pub(super) fn new(at: Instant, connection: &SeenConnection) -> Self {
        let (local, remote) = (connection.local.to_string(), connection.remote.to_string());
        Self { at, local, remote, connection: connection.clone() }
    }

    fn event(&self, code: usize) -> Option<u64> {
        self.connection.events.map(|events| events.counts[code - 1])
    }
}

pub(super) fn connections() -> Vec<Column<ConnectionRow>> {
    let mut columns: Vec<Column<ConnectionRow>> = columns! { ConnectionRow as row:
        "at_ns" U64(row.at.as_nanos()),
        "netns" U64(row.connection.id.netns),
        "cookie" U64(row.connection.id.cookie),
        "namespace" Text(Some(&row.connection.namespace)),
        "owner" Text(Some(&row.connection.owner)),
        "pid" MaybeU64(row.connection.pid.map(u64::from)),
        "local" Text(Some(&row.local)),
        "remote" Text(Some(&row.remote)),
        "algorithm" Text(Some(&row.connection.algorithm)),
        "floor" MaybeU32(set(row.connection.bounds.to_numbers().0)),
        "ceiling" MaybeU32(set(row.connection.bounds.to_numbers().1)),
        "pacing_bound" MaybeU64(set(row.connection.bounds.to_numbers().2)),
        "small_queue" MaybeU64(set(row.connection.bounds.to_numbers().3)),
        "sent_bps" MaybeU64(bits(row.connection.sent)),
        "received_bps" MaybeU64(bits(row.connection.received)),
        "limit" Text(row.connection.limit.map(Into::into)),
        "reordering" MaybeU64(row.event(1)),
        "local_overflow" MaybeU64(row.event(2)),
        "duplicate_ack" MaybeU64(row.event(3)),
        "timeout" MaybeU64(row.event(4)),
        "retransmits" U64(row.connection.retransmits),
    };
    columns.extend(figure_columns());
    columns
}

/// A bound, if it is set: 0 is none.
fn set<N: Default + PartialEq>(bound: N) -> Option<N> {
    Some(bound).filter(|bound| *bound != N::default())
}

fn bits(rate: Option<Rate>) -> Option<u64> {
    rate.map(Rate::bits_per_second)
}

/// The connection in row `row`, and the time of its reading.
pub(super) fn connection(
    group: &Group,
    row: usize,
    texts: &mut Texts,
) -> Result<(Instant, SeenConnection), TableError> {
    let integer = |name| group.u64(name, row)?.ok_or_else(|| group.lacks(name));
    let maybe = |name| group.u64(name, row);
    let bound = |name| maybe(name).map(Option::unwrap_or_default);
    let segments =
        |name| bound(name).and_then(|value| u32::try_from(value).map_err(|_| group.lacks(name)));
    let mut text = |name| {
        let text = group.text(name, row)?.ok_or_else(|| group.lacks(name))?;
        Ok::<_, TableError>(texts.share(text))
    };
    let rate = |name| Ok::<_, TableError>(maybe(name)?.map(Rate::from_bps));
    let limit = group.text("limit", row)?;
    let limit = limit.map(|name| name.parse().map_err(|_| group.lacks("limit")));
    let counts = [
        maybe("reordering")?,
        maybe("local_overflow")?,
        maybe("duplicate_ack")?,
        maybe("timeout")?,
    ];
    let events = counts
        .iter()
        .all(Option::is_some)
        .then(|| Events { counts: counts.map(Option::unwrap_or_default) });
    let connection = SeenConnection {
        id: ConnectionId { netns: integer("netns")?, cookie: integer("cookie")? },
        namespace: text("namespace")?,
        owner: text("owner")?,
        pid: maybe("pid")?.and_then(|pid| u32::try_from(pid).ok()),
        local: text("local")?.into(),
        remote: text("remote")?.into(),
        algorithm: text("algorithm")?,
        figures: figures_of(group, row).ok_or_else(|| group.lacks("cwnd … interface"))?,
        bounds: Bounds::from_numbers(
            segments("floor")?,
            segments("ceiling")?,
            bound("pacing_bound")?,
            bound("small_queue")?,
        ),
        sent: rate("sent_bps")?,
        received: rate("received_bps")?,
        limit: limit.transpose()?,
        events,
        retransmits: integer("retransmits")?,
    };
    Ok((Instant::from_nanos(integer("at_ns")?), connection))
}

/// A row of `readings-N.parquet`.
#[derive(Clone, Debug)]
pub(super) struct ReadingRow {
    reading: Arc<Reading>,
    agents: String,
    missing: String,
}

impl ReadingRow {
    pub(super) fn new(reading: &Arc<Reading>) -> Self {
        // The agents and the missing parts are lists of structs and strings, which JSON can express.
        let agents = serde_json::to_string(&reading.agents).unwrap_or_default();
        let missing = serde_json::to_string(&reading.missing).unwrap_or_default();
        Self { reading: Arc::clone(reading), agents, missing }
    }
}

pub(super) fn readings() -> Vec<Column<ReadingRow>> {
    vec![
        Column::new("at_ns", Value::U64(|row| row.reading.at.as_nanos())),
        Column::new("clock_s", Value::MaybeU64(|row| row.reading.clock_s)),
        Column::new("connections", Value::U64(|row| row.reading.connections.len() as u64)),
        Column::new("agents", Value::Text(|row| Some(&row.agents))),
        Column::new("missing", Value::Text(|row| Some(&row.missing))),
    ]
}

/// The reading in row `row`, without its connections.
pub(super) fn reading(group: &Group, row: usize) -> Result<Reading, TableError> {
    let at = group.u64("at_ns", row)?.ok_or_else(|| group.lacks("at_ns"))?;
    let json = |name| group.text(name, row)?.ok_or_else(|| group.lacks(name));
    Ok(Reading {
        at: Instant::from_nanos(at),
        clock_s: group.u64("clock_s", row)?,
        connections: Vec::new(),
        agents: serde_json::from_str(json("agents")?).map_err(|_| group.lacks("agents"))?,
        missing: serde_json::from_str(json("missing")?).map_err(|_| group.lacks("missing"))?,
    })
}
