//! The native module of the Python package `wakeai`: scenarios, the simulator, and tables.
//!
//! Python code calls it through `python/src/wakeai`, which has the documentation for users. A table
//! leaves the module as an Arrow stream, so polars, pandas and pyarrow take it without a copy.

#![allow(
    clippy::needless_pass_by_value,
    reason = "the arguments of a Python function are converted into values of their own"
)]

mod errors;
mod report;
mod scenario;
mod simulate;
mod table;

use pyo3::prelude::*;

/// The native part of the package `wakeai`.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::report::{PyReport, interval, tables_of, wall_times_of};
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::simulate::{run, solo, solos};
    #[pymodule_export]
    use super::table::{Table, read_parquet};
    use super::{Bound, PyModule, PyModuleMethods as _, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", wakeai_world::VERSION)
    }
}
