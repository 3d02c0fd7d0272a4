//! The tables of a result: each list of its JSON becomes a table. No figure is computed here.
//!
//! `runs` has a row for each run, and each list in a run (`stations`, `groups`, `flows`) is a table
//! whose rows begin with the run's condition, repeat and seed. An object inside a row becomes
//! columns whose names are joined by an underscore: `rtt_ms.p95` is `rtt_ms_p95`. Keys that this
//! file does not know become columns, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, StringArray,
    UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;
use wakeai_results::figures::Interval;

use crate::table::Table;

/// The real time of a run. It differs from one simulation of the same run to the next.
const WALL: &str = "wall_s";

/// Optional columns, with their types for the case that all values are null. All other columns
/// without a value are floating-point numbers.
const NULLABLE: &[(&str, Kind)] = &[("reservation_standing", Kind::Text)];

/// The tables of results, and the columns that each always has, so that all results of one version
/// have them. They come first in a table, in this order.
const TABLES: &[(&str, &[(&str, Kind)])] = &[
    (
        "runs",
        &[
            ("simulated_s", Kind::Float),
            ("total_goodput_mbps", Kind::Float),
            ("jain", Kind::Float),
            ("capacity_normalised", Kind::Float),
            ("mean_utilisation", Kind::Float),
            ("rtt_ms_p50", Kind::Float),
            ("rtt_ms_p95", Kind::Float),
            ("rtt_ms_p99", Kind::Float),
            ("errors_reordering", Kind::Unsigned),
            ("errors_local_overflow", Kind::Unsigned),
            ("errors_duplicate_ack", Kind::Unsigned),
            ("errors_timeout", Kind::Unsigned),
        ],
    ),
    (
        "stations",
        &[
            ("station", Kind::Text),
            ("direction", Kind::Text),
            ("goodput_mbps", Kind::Float),
            ("max_mbps", Kind::Float),
            ("max_from", Kind::Text),
        ],
    ),
    (
        "groups",
        &[
            ("group", Kind::Text),
            ("goodput_mbps", Kind::Float),
            ("jain", Kind::Float),
            ("rtt_ms_p50", Kind::Float),
            ("rtt_ms_p95", Kind::Float),
            ("rtt_ms_p99", Kind::Float),
        ],
    ),
    (
        "flows",
        &[
            ("flow", Kind::Unsigned),
            ("station", Kind::Text),
            ("direction", Kind::Text),
            ("kind", Kind::Text),
            ("algorithm", Kind::Text),
            ("bytes", Kind::Unsigned),
            ("goodput_mbps", Kind::Float),
            ("completion_s", Kind::Float),
            ("retransmits", Kind::Unsigned),
            ("timeouts", Kind::Unsigned),
            ("avr", Kind::Float),
            ("syn_timeouts", Kind::Unsigned),
            ("syn_wait_s", Kind::Float),
            ("longest_stall_s", Kind::Float),
        ],
    ),
];

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Integer,
    Float,
    Text,
    Boolean,
    Null,
}

/// Makes the tables of results. Each result is given as its JSON and a number that is added to its
/// repeats. `columns` is a JSON object of further columns, which begin each row and have the same
/// value in all rows; a column is a pair of type and value.
#[pyfunction]
#[pyo3(signature = (results, columns = "{}", with_wall = true))]
pub(crate) fn tables_of(
    results: Vec<(String, u64)>,
    columns: &str,
    with_wall: bool,
) -> PyResult<BTreeMap<String, Table>> {
    let mut tables = Tables::new(columns)?;
    for (json, offset) in &results {
        tables.add(&parsed(json)?, *offset, with_wall);
    }
    tables.finish()
}

/// A table of the real times that runs took, with the columns of `tables_of`.
#[pyfunction]
#[pyo3(signature = (results, columns = "{}"))]
pub(crate) fn wall_times_of(results: Vec<(String, u64)>, columns: &str) -> PyResult<Table> {
    let mut tables = Tables::new(columns)?;
    for (json, offset) in &results {
        let report = parsed(json)?;
        for run in report["runs"].as_array().into_iter().flatten() {
            let mut row = tables.of_run(&report, run, *offset);
            row.set(WALL, run[WALL].clone());
            tables.rows.entry(WALL.to_owned()).or_default().push(row);
        }
    }
    let rows = tables.rows.remove(WALL).unwrap_or_default();
    table(&tables.first, &[(WALL, Kind::Float)], &rows)
}

fn parsed(json: &str) -> PyResult<Value> {
    let invalid = |error| PyValueError::new_err(format!("a result is not JSON: {error}"));
    serde_json::from_str(json).map_err(invalid)
}

/// A row: the values by column.
#[derive(Clone, Default)]
struct Row(BTreeMap<String, Value>);

impl Row {
    fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }
}

struct Tables {
    /// The columns that begin each row.
    first: Vec<(String, Kind)>,
    constant: Row,
    rows: BTreeMap<String, Vec<Row>>,
}

impl Tables {
    fn new(columns: &str) -> PyResult<Self> {
        let Value::Object(columns) = parsed(columns)? else {
            return Err(PyValueError::new_err("columns is not an object"));
        };
        let (mut first, mut constant) = (Vec::new(), Row::default());
        for (name, pair) in columns {
            let kind = match pair[0].as_str() {
                Some("integer") => Kind::Integer,
                Some("float") => Kind::Float,
                Some("boolean") => Kind::Boolean,
                _ => Kind::Text,
            };
            constant.set(&name, pair[1].clone());
            first.push((name, kind));
        }
        let run = [("condition", Kind::Text), ("repeat", Kind::Unsigned), ("seed", Kind::Unsigned)];
        first.extend(run.map(|(name, kind)| (name.to_owned(), kind)));
        let rows = TABLES.iter().map(|(name, _)| ((*name).to_owned(), Vec::new())).collect();
        Ok(Self { first, constant, rows })
    }

    /// The columns that each row of a run has.
    fn of_run(&self, report: &Value, run: &Value, offset: u64) -> Row {
        let repeat = run["repeat"].as_u64().unwrap_or_default();
        let mut row = self.constant.clone();
        row.set("condition", run["condition"].clone());
        row.set("repeat", (repeat + offset).into());
        row.set("seed", report["seed"].as_u64().map(|seed| seed.wrapping_add(repeat)).into());
        row
    }

    fn add(&mut self, report: &Value, offset: u64, with_wall: bool) {
        for run in report["runs"].as_array().into_iter().flatten() {
            let of_run = self.of_run(report, run, offset);
            let mut own = of_run.clone();
            for (key, value) in run.as_object().into_iter().flatten() {
                match value {
                    Value::Array(entries) => {
                        let rows = self.rows.entry(key.clone()).or_default();
                        for (index, entry) in entries.iter().enumerate() {
                            let mut row = of_run.clone();
                            if key == "flows" {
                                row.set("flow", index.into());
                            }
                            flatten(&mut row, "", entry);
                            rows.push(row);
                        }
                    }
                    _ if key == WALL && !with_wall => {}
                    _ if matches!(key.as_str(), "condition" | "repeat") => {}
                    _ => flatten(&mut own, key, value),
                }
            }
            self.rows.entry("runs".to_owned()).or_default().push(own);
        }
    }

    fn finish(self) -> PyResult<BTreeMap<String, Table>> {
        let Self { first, rows, .. } = self;
        let convert = |(name, rows): (String, Vec<Row>)| {
            let known = TABLES.iter().find(|(table, _)| *table == name);
            let table = table(&first, known.map_or(&[][..], |(_, columns)| columns), &rows)?;
            Ok((name, table))
        };
        rows.into_iter().map(convert).collect()
    }
}

/// Adds a value to a row. The keys of an object are appended to the name, also in objects in it.
fn flatten(row: &mut Row, name: &str, value: &Value) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let name = if name.is_empty() { key.clone() } else { format!("{name}_{key}") };
                flatten(row, &name, value);
            }
        }
        Value::Array(_) => row.set(name, value.to_string().into()),
        _ => row.set(name, value.clone()),
    }
}

fn table(first: &[(String, Kind)], known: &[(&str, Kind)], rows: &[Row]) -> PyResult<Table> {
    let mut columns: Vec<(String, Kind)> = first.to_vec();
    columns.extend(known.iter().map(|(name, kind)| ((*name).to_owned(), *kind)));
    let mut others = BTreeMap::<&str, Kind>::new();
    for (name, value) in rows.iter().flat_map(|row| &row.0) {
        if !columns.iter().any(|(known, _)| known == name) {
            let kind = others.entry(name).or_insert(Kind::Null);
            *kind = wider(*kind, kind_of(value));
        }
    }
    columns.extend(others.into_iter().map(|(name, kind)| {
        let known = NULLABLE.iter().find(|(nullable, _)| *nullable == name);
        let of_null = known.map_or(Kind::Float, |(_, kind)| *kind);
        (name.to_owned(), if kind == Kind::Null { of_null } else { kind })
    }));
    let fields: Vec<Field> = columns.iter().map(|(name, kind)| field(name, *kind)).collect();
    let arrays = columns.iter().map(|(name, kind)| array(*kind, rows, name)).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
    batch.map(Table::new).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn kind_of(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Boolean,
        Value::Number(number) if number.is_u64() => Kind::Unsigned,
        Value::Number(number) if number.is_i64() => Kind::Integer,
        Value::Number(_) => Kind::Float,
        _ => Kind::Text,
    }
}

/// The type of a column that has values of both types.
fn wider(one: Kind, other: Kind) -> Kind {
    match (one, other) {
        (Kind::Null, kind) | (kind, Kind::Null) => kind,
        (one, other) if one == other => one,
        (Kind::Unsigned, Kind::Integer) | (Kind::Integer, Kind::Unsigned) => Kind::Integer,
        (Kind::Unsigned | Kind::Integer | Kind::Float, Kind::Float)
        | (Kind::Float, Kind::Unsigned | Kind::Integer) => Kind::Float,
        _ => Kind::Text,
    }
}

fn field(name: &str, kind: Kind) -> Field {
    let data_type = match kind {
        Kind::Unsigned => DataType::UInt64,
        Kind::Integer => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Text => DataType::Utf8,
        Kind::Boolean => DataType::Boolean,
        Kind::Null => DataType::Null,
    };
    Field::new(name, data_type, true)
}

fn array(kind: Kind, rows: &[Row], name: &str) -> ArrayRef {
    let values = rows.iter().map(|row| row.0.get(name));
    match kind {
        Kind::Unsigned => Arc::new(values.map(|value| value?.as_u64()).collect::<UInt64Array>()),
        Kind::Integer => Arc::new(values.map(|value| value?.as_i64()).collect::<Int64Array>()),
        Kind::Float => Arc::new(values.map(|value| value?.as_f64()).collect::<Float64Array>()),
        Kind::Boolean => Arc::new(values.map(|value| value?.as_bool()).collect::<BooleanArray>()),
        Kind::Text => Arc::new(values.map(text).collect::<StringArray>()),
        Kind::Null => Arc::new(NullArray::new(rows.len())),
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The mean of `values` and half the width of its 95 % confidence interval (Student's t); `None` without values.
#[pyfunction]
pub(crate) fn interval(values: Vec<f64>) -> Option<(f64, Option<f64>)> {
    Interval::of(&values).map(|Interval { mean, half }| (mean, half))
}
