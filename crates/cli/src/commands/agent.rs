//! `wakeai agent`.

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;
use wakeai_agent::config::Config;
use wakeai_agent::key::GroupKey;

use crate::args::AgentArguments;
use crate::failure::{Failure, note};
use crate::logging;
use crate::output;

pub(crate) fn run(arguments: &AgentArguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.generate_key {
        GroupKey::generate(path).map_err(Failure::failed)?;
        note(format_args!("wrote a new group key to {}: copy it to every station", path.display()));
        return Ok(());
    }
    let config = Config::load(&arguments.config).map_err(Failure::usage)?;
    config.load_key().map_err(Failure::usage)?;
    let filter = EnvFilter::try_new(&config.log_level)
        .with_context(|| {
            format!(
                "{}: log.level: found {:?}, expected error, warn, info, debug, trace or directives",
                arguments.config.display(),
                config.log_level
            )
        })
        .map_err(Failure::usage)?;
    if arguments.check {
        wakeai_agent::check_socket(&config)
            .with_context(|| format!("{}: api.socket", arguments.config.display()))
            .map_err(Failure::usage)?;
        let text = format!("{}: configuration and key are good\n", arguments.config.display());
        return output::write(&text).map(|_| ());
    }
    logging::for_agent(config.log_format, filter);
    let shutdown = async {
        if let Err(error) = wakeai_agent::terminated().await {
            tracing::error!(%error, "no signal can be waited for: stopping");
        }
    };
    wakeai_agent::run(config, shutdown)
        .map_err(|error| Failure::missing_if(error.is_missing(), error))
}
