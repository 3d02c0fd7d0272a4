//! Makes the exceptions of the package, whose classes are in `wakeai._errors`.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wakeai_scenario::{Place, Problem, ScenarioError};
use wakeai_world::RunError;

/// The exception for a scenario that was refused. Lines and columns are those of a text of the
/// user; `has_lines` is false for a scenario that was made from keyword arguments.
pub(crate) fn scenario(py: Python<'_>, error: &ScenarioError, has_lines: bool) -> PyErr {
    if let ScenarioError::Unreadable { source, .. } = error {
        let message = error.to_string();
        return match source.raw_os_error() {
            Some(number) => pyo3::exceptions::PyOSError::new_err((number, message)),
            None => pyo3::exceptions::PyOSError::new_err(message),
        };
    }
    let text = if has_lines {
        error.to_string()
    } else {
        let lines =
            error.problems().iter().map(|problem| format!("\n  {}", without_place(problem)));
        format!("the scenario is refused:{}", lines.collect::<String>())
    };
    let made = problems(py, error.problems(), has_lines)
        .and_then(|problems| class(py, "ScenarioError")?.call1((text, problems)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The problem without its line and column, which belong to a text that the user never saw.
fn without_place(problem: &Problem) -> String {
    let mut text = match &problem.condition {
        Some(condition) => format!("condition \"{condition}\": "),
        None => String::new(),
    };
    if !problem.key.is_empty() {
        text = format!("{text}`{}`: ", problem.key);
    }
    format!("{text}found {}; allowed: {}", problem.found, problem.allowed)
}

fn problems<'py>(
    py: Python<'py>,
    problems: &[Problem],
    has_lines: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let class = class(py, "Problem")?;
    let convert = |problem: &Problem| {
        let fields = PyDict::new(py);
        let (line, column, key) = match &problem.place {
            Place::File { line, column } if has_lines => (Some(*line), Some(*column), None),
            Place::File { .. } => (None, None, None),
            Place::Override(key) => (None, None, Some(key.as_str())),
        };
        let key = if problem.key.is_empty() { key.unwrap_or_default() } else { &problem.key };
        fields.set_item("key", key)?;
        fields.set_item("line", line)?;
        fields.set_item("column", column)?;
        fields.set_item("condition", &problem.condition)?;
        fields.set_item("found", &problem.found)?;
        fields.set_item("allowed", &problem.allowed)?;
        class.call((), Some(&fields))
    };
    problems.iter().map(convert).collect()
}

/// The exception for runs that could not be made.
pub(crate) fn run(py: Python<'_>, error: &RunError) -> PyErr {
    if matches!(error, RunError::Interrupted) {
        return pyo3::exceptions::PyKeyboardInterrupt::new_err(());
    }
    new(py, "RunError", &error.to_string())
}

/// A new exception of a class in `wakeai._errors`.
pub(crate) fn new(py: Python<'_>, name: &str, message: &str) -> PyErr {
    let made = class(py, name).and_then(|class| class.call1((message,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("wakeai._errors")?.getattr(name)
}
