//! Log lines, which go to standard error.

use std::io::{IsTerminal as _, Stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::SubscriberBuilder;
use tracing_subscriber::fmt::format::{DefaultFields, Format};
use wakeai_api::config::LogFormat;

/// The log of every command except the agent: warnings, or the levels that `WAKEAI_LOG` names.
pub(crate) fn for_commands() {
    let filter = EnvFilter::builder().with_env_var("WAKEAI_LOG").try_from_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("warn"));
    let builder = builder(filter);
    builder.with_ansi(std::io::stderr().is_terminal()).init();
}

/// A log on standard error. A line that cannot be written is lost: by default the library would report the error
/// on standard error, too, and panic.
fn builder(
    filter: EnvFilter,
) -> SubscriberBuilder<DefaultFields, Format, EnvFilter, fn() -> Stderr> {
    let writer: fn() -> Stderr = std::io::stderr;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    builder.log_internal_errors(false)
}

/// The log of the agent, as its configuration sets it.
pub(crate) fn for_agent(format: LogFormat, filter: EnvFilter) {
    let builder = builder(filter);
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
