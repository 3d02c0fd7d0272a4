//! Results that go into the agent's configuration.

use anyhow::Context as _;
use wakeai_api::config::{Changed, EditError, Measured, write_measured};

use crate::args::WriteArguments;
use crate::failure::{Failure, note};

/// Writes the value if the user asked for it, and reports the changes.
pub(super) fn write(
    arguments: &WriteArguments,
    measured: Result<Measured, String>,
) -> Result<Vec<Changed>, Failure> {
    let Some(path) = &arguments.write else { return Ok(Vec::new()) };
    let shown = path.display();
    let measured = measured
        .map_err(|why| Failure::failed(anyhow::anyhow!("{shown} was not changed: {why}")))?;
    let changed = write_measured(path, &[measured]);
    let changed = changed.with_context(|| format!("{shown} was not changed")).map_err(|error| {
        let is_usage = matches!(error.downcast_ref(), Some(EditError::Config(_)));
        if is_usage { Failure::usage(error) } else { Failure::failed(error) }
    })?;
    for Changed { key, before, after } in &changed {
        match before {
            Some(before) if before == after => {
                note(format_args!("{shown}: {key} was {after} before"));
            }
            Some(before) => note(format_args!("{shown}: {key} = {after}, was {before}")),
            None => note(format_args!("{shown}: {key} = {after}, was not there")),
        }
    }
    if changed.iter().any(|one| one.before.as_ref() != Some(&one.after)) {
        note("an agent that runs reads it at its next start");
    }
    Ok(changed)
}
