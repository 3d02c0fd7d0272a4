//! The tables of a result: `runs` has a row for each run, and `stations`, `groups` and `flows` have one for each
//! entry of these lists in a run. `wakeai_results::columns` has their columns. A row begins with the run's condition,
//! repeat and seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value as Json;
use wakeai_results::columns;
use wakeai_results::document::{NotAReport, six_decimals};
use wakeai_results::figures::Interval;
use wakeai_results::result::{Report, Run};
use wakeai_tables::Column;

use crate::table::Table;

/// The result of runs.
#[pyclass(frozen, name = "Report", module = "wakeai._native")]
pub(crate) struct PyReport(pub(crate) Report);

#[pymethods]
impl PyReport {
    /// Reads a report from its JSON.
    #[staticmethod]
    fn parse(text: &str) -> PyResult<Self> {
        let invalid = |error: NotAReport| PyValueError::new_err(error.to_string());
        Report::from_json(text).map(Self).map_err(invalid)
    }

    /// The report as one line of JSON.
    fn to_json(&self) -> String {
        self.0.to_json()
    }
}

/// A result, and a number that is added to its repeats.
type Numbered<'py> = (PyRef<'py, PyReport>, u64);

/// Makes the tables of results. `columns` is a JSON object of further columns, which begin each row and have the
/// same value in all rows; a column is a pair of type and value.
#[pyfunction]
#[pyo3(signature = (results, columns = "{}", with_wall = true))]
pub(crate) fn tables_of(
    results: Vec<Numbered<'_>>,
    columns: &str,
    with_wall: bool,
) -> PyResult<BTreeMap<&'static str, Table>> {
    let runs = runs_of(&results);
    let constants = constants(columns)?;
    let mut of_runs = columns::runs();
    let any = |has: fn(&Run) -> bool| runs.iter().any(|(_, run)| has(run));
    if any(|run| run.frames.is_some()) {
        of_runs.extend(columns::frames());
    }
    if any(|run| run.drops.is_some()) {
        of_runs.extend(columns::drops());
    }
    if any(|run| run.lateness.is_some()) {
        of_runs.extend(columns::lateness());
    }
    if with_wall {
        of_runs.extend(columns::wall());
    }
    let mut of_flows = columns::flows();
    of_flows.extend(columns::simulated());
    if any(|run| run.flows.iter().any(|flow| flow.reservation.is_some())) {
        of_flows.extend(columns::reservation());
    }
    let number = |(_, run): &(Place, &Run)| 0..run.flows.len() as u64;
    let numbers: UInt64Array = runs.iter().flat_map(number).map(Some).collect();
    let numbers = ("flow".to_owned(), Arc::new(numbers) as ArrayRef);
    Ok(BTreeMap::from([
        ("runs", table(&constants, &runs, |run| std::slice::from_ref(run), &of_runs, None)?),
        ("stations", table(&constants, &runs, |run| &run.stations, &columns::stations(), None)?),
        ("groups", table(&constants, &runs, |run| &run.groups, &columns::groups(), None)?),
        ("flows", table(&constants, &runs, |run| &run.flows, &of_flows, Some(numbers))?),
    ]))
}

/// A table of the real times that runs took, with the columns of `tables_of`.
#[pyfunction]
#[pyo3(signature = (results, columns = "{}"))]
pub(crate) fn wall_times_of(results: Vec<Numbered<'_>>, columns: &str) -> PyResult<Table> {
    let (runs, constants) = (runs_of(&results), constants(columns)?);
    table(&constants, &runs, |run| std::slice::from_ref(run), &columns::wall(), None)
}

/// The number and the seed of a repeat.
type Place = (u64, u64);

fn runs_of<'a>(results: &'a [Numbered<'_>]) -> Vec<(Place, &'a Run)> {
    let of_one = |(report, offset): &'a Numbered<'_>| {
        report.0.runs.iter().map(move |run| {
            let repeat = u64::from(run.repeat);
            ((repeat + offset, report.0.seed.wrapping_add(repeat)), run)
        })
    };
    results.iter().flat_map(of_one).collect()
}

/// The names, types and values of the columns that have the same value in all rows.
fn constants(columns: &str) -> PyResult<BTreeMap<String, (String, Json)>> {
    let invalid = |error| PyValueError::new_err(format!("columns: {error}"));
    serde_json::from_str(columns).map_err(invalid)
}

/// The table of the rows that `rows_of` finds in each run.
fn table<T>(
    constants: &BTreeMap<String, (String, Json)>,
    runs: &[(Place, &Run)],
    rows_of: for<'a> fn(&'a Run) -> &'a [T],
    columns: &[Column<T>],
    numbers: Option<(String, ArrayRef)>,
) -> PyResult<Table> {
    let places = || runs.iter().flat_map(|(place, run)| rows_of(run).iter().map(move |_| *place));
    let conditions = runs.iter().flat_map(|(_, run)| rows_of(run).iter().map(|_| &run.condition));
    let rows: Vec<&T> = runs.iter().flat_map(|(_, run)| rows_of(run)).collect();
    let constants = constants.iter();
    let mut arrays: Vec<(String, ArrayRef)> = constants
        .map(|(name, (kind, value))| (name.clone(), repeated(kind, value, rows.len())))
        .collect();
    let conditions: StringArray = conditions.map(Some).collect();
    let repeats: UInt64Array = places().map(|(repeat, _)| Some(repeat)).collect();
    let seeds: UInt64Array = places().map(|(_, seed)| Some(seed)).collect();
    arrays.push(("condition".to_owned(), Arc::new(conditions)));
    arrays.push(("repeat".to_owned(), Arc::new(repeats)));
    arrays.push(("seed".to_owned(), Arc::new(seeds)));
    arrays.extend(numbers);
    arrays.extend(columns.iter().map(|one| (one.name.to_owned(), array(one, &rows))));
    let batch = RecordBatch::try_from_iter_with_nullable(
        arrays.into_iter().map(|(name, array)| (name, array, true)),
    );
    batch.map(Table::new).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A column with the same value in each row.
fn repeated(kind: &str, value: &Json, rows: usize) -> ArrayRef {
    match kind {
        "integer" => Arc::new(Int64Array::from(vec![value.as_i64(); rows])),
        "float" => Arc::new(Float64Array::from(vec![value.as_f64(); rows])),
        "boolean" => Arc::new(BooleanArray::from(vec![value.as_bool(); rows])),
        _ => Arc::new(StringArray::from(vec![value.as_str(); rows])),
    }
}

/// The values of a column. Figures have the six decimals that they have in JSON.
fn array<T>(column: &Column<T>, rows: &[&T]) -> ArrayRef {
    let values = column.array(rows.iter().copied());
    let Some(figures) = values.as_primitive_opt::<Float64Type>() else { return values };
    let figure = |value: f64| value.is_finite().then(|| six_decimals(value));
    Arc::new(figures.unary_opt::<_, Float64Type>(figure))
}

/// The mean of `values` and half the width of its 95 % confidence interval (Student's t); `None` without values.
#[pyfunction]
pub(crate) fn interval(values: Vec<f64>) -> Option<(f64, Option<f64>)> {
    Interval::of(&values).map(|Interval { mean, half }| (mean, half))
}
