//! Log lines, which go to standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use wakeai_api::config::LogFormat;

/// The log of every command except the agent: warnings, or the levels that `WAKEAI_LOG` names.
pub(crate) fn for_commands() {
    let filter = EnvFilter::builder().with_env_var("WAKEAI_LOG").try_from_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    builder.with_ansi(std::io::stderr().is_terminal()).init();
}

/// The log of the agent, as its configuration sets it.
pub(crate) fn for_agent(format: LogFormat, filter: EnvFilter) {
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Json => builder.json().flatten_event(true).init(),
        // systemd's journal has its own time stamps and wants no colours.
        LogFormat::Text if std::env::var_os("JOURNAL_STREAM").is_some() => {
            builder.without_time().with_ansi(false).init();
        }
        LogFormat::Text => {
            builder.with_ansi(std::io::stderr().is_terminal()).init();
        }
    }
}
