//! `wakeai agent`.

use std::fmt::Display;
use std::path::Path;

use anyhow::anyhow;
use tracing_subscriber::EnvFilter;
use wakeai_agent::AgentError;
use wakeai_agent::key::GroupKeys;
use wakeai_api::config::{Config, ConfigError, Examined};

use crate::args::AgentArguments;
use crate::failure::{Failure, note};
use crate::interrupt::terminated;
use crate::logging;
use crate::output;

pub(crate) fn run(arguments: &AgentArguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.generate_key {
        GroupKeys::generate(path).map_err(Failure::failed)?;
        note(format_args!("wrote a new group key to {}: copy it to every station", path.display()));
        return Ok(());
    }
    let path = arguments.config.display();
    let examined = Examined::load(&arguments.config);
    let mut problems = examined.error.as_ref().map(ConfigError::lines).unwrap_or_default();
    let filter = examined.config.as_ref().map(|config| filter(&arguments.config, config));
    let filter = filter.and_then(|filter| filter.map_err(|problem| problems.push(problem)).ok());
    problems
        .extend(wakeai_agent::check_config_file(&arguments.config).err().map(|it| it.to_string()));
    if arguments.check {
        return check(&arguments.config, &examined, problems);
    }
    let (Some(config), Some(filter), true) = (examined.config, filter, problems.is_empty()) else {
        return Err(all(&path, &problems));
    };
    GroupKeys::load(&config.key_file).map_err(Failure::usage)?;
    logging::for_agent(config.log.format, filter);
    wakeai_agent::run(config, arguments.user.as_deref(), terminated())
        .map_err(|error| Failure::missing_if(error.is_missing(), error))
}

/// Adds the host's problems that would prevent a start to the problems of the file.
fn check(path: &Path, examined: &Examined, mut problems: Vec<String>) -> Result<(), Failure> {
    let findings = wakeai_agent::check(examined);
    let only_missing = problems.is_empty() && findings.problems.iter().all(AgentError::is_missing);
    problems.extend(lines(&findings.problems));
    for words in findings.notes {
        note(words);
    }
    if problems.is_empty() {
        let text = format!("{}: configuration and key are good\n", path.display());
        return output::write(&text).map(|_| ());
    }
    let failure = all(&path.display(), &problems);
    Err(if only_missing { failure.missing() } else { failure })
}

fn lines(problems: &[impl Display]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn all(path: &impl Display, problems: &[String]) -> Failure {
    Failure::usage(match problems {
        [only] => anyhow!("{only}"),
        many => anyhow!("{path}: {} problems:\n  {}", many.len(), many.join("\n  ")),
    })
}

fn filter(path: &Path, config: &Config) -> Result<EnvFilter, String> {
    let level = &config.log.level;
    EnvFilter::try_new(level).map_err(|error| {
        format!(
            "{}: log.level: found {level:?}, expected error, warn, info, debug, trace or directives: \
             {error}",
            path.display()
        )
    })
}
