//! `wakeai serve`.

use serde::Serialize;
use wakeai_serve::{Report, ServeEvent};

use crate::args::ServeArguments;
use crate::failure::{Failure, note};
use crate::interrupt::terminated;
use crate::output;

/// The lines of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ServeLine {
    Listening { address: String, url: String },
    Counters(Report),
}

pub(crate) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    let config = arguments.config.clone();
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let json = arguments.json;
    let tell = |event| {
        if let Err(failure) = tell(event, json, scheme) {
            note(failure); // the server continues when its counters are not read
        }
    };
    wakeai_serve::run(config, terminated(), tell).map_err(|error| {
        if error.is_usage() { Failure::usage(error) } else { Failure::failed(error) }
    })
}

fn tell(event: ServeEvent, json: bool, scheme: &str) -> Result<(), Failure> {
    match event {
        ServeEvent::Listening(address) => {
            let url = format!("{scheme}://{address}/files");
            if json {
                return output::json(&ServeLine::Listening { address: address.to_string(), url })
                    .map(|_| ());
            }
            note(format_args!("listening on {url}"));
            Ok(())
        }
        ServeEvent::Report(report) if json => {
            output::json(&ServeLine::Counters(report)).map(|_| ())
        }
        ServeEvent::Report(report) => output::counters(&report.entries()),
    }
}
