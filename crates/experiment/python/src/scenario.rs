//! The Python class of a scenario. The code that reads and checks it is that of the commands.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors;

/// A scenario that was read and checked.
#[pyclass(frozen, module = "wakeai._native")]
pub(crate) struct Scenario {
    pub(crate) read: wakeai_scenario::Scenario,
    /// Whether the user wrote the text, so that errors may give its lines.
    has_lines: bool,
    pub(crate) file: Option<PathBuf>,
}

#[pymethods]
impl Scenario {
    /// Reads a scenario from TOML. `has_lines` tells whether the user wrote the text.
    #[staticmethod]
    #[pyo3(signature = (text, has_lines = true))]
    fn parse(py: Python<'_>, text: &str, has_lines: bool) -> PyResult<Self> {
        let scenario = wakeai_scenario::Scenario::parse(text)
            .map_err(|error| errors::scenario(py, &error, has_lines))?;
        Ok(Self { read: scenario, has_lines, file: None })
    }

    /// Reads a scenario from a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let scenario = wakeai_scenario::Scenario::load(&path)
            .map_err(|error| errors::scenario(py, &error, true))?;
        Ok(Self { read: scenario, has_lines: true, file: Some(path) })
    }

    /// A copy with changed keys. Each value is written as after `--set KEY=`.
    fn with_overrides(&self, py: Python<'_>, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let scenario = self
            .read
            .with_overrides(&overrides)
            .map_err(|error| errors::scenario(py, &error, self.has_lines))?;
        Ok(Self { read: scenario, has_lines: self.has_lines, file: self.file.clone() })
    }

    /// The scenario as TOML, with the overrides applied.
    fn to_toml(&self) -> String {
        self.read.to_toml()
    }

    /// A text that is equal for two scenarios of the same file with changed keys exactly if they mean the same: `1s`
    /// and `1000ms` do. It is for comparisons, not for readers.
    fn meaning(&self) -> String {
        format!("{:?}", *self.read)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.read.name
    }

    /// The length of a run in seconds, warmup included.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.read.duration.as_secs_f64()
    }

    #[getter]
    fn conditions(&self) -> Vec<String> {
        self.read.conditions.iter().map(|condition| condition.name.clone()).collect()
    }
}
