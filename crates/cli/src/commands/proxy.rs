//! `wakeai proxy`.

use serde::Serialize;
use wakeai_proxy::{Config, Event, Intercepted, Report};

use crate::args::ProxyArguments;
use crate::failure::{Failure, note};
use crate::interrupt::terminated;
use crate::output;

/// The lines of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ProxyLine {
    Listening { addresses: Vec<String>, forwarded: bool, own: bool },
    Counters(Report),
}

pub(crate) fn run(arguments: &ProxyArguments) -> Result<(), Failure> {
    let ProxyArguments { config, json } = arguments;
    let tell = |event| {
        if let Err(failure) = tell(event, *json, config) {
            note(failure); // the proxy continues when its counters are not read
        }
    };
    wakeai_proxy::run(config.clone(), terminated(), tell).map_err(|error| match error {
        error if error.is_usage() => Failure::usage(error),
        error if error.is_lost() => Failure::lost(error),
        error => Failure::missing_if(error.is_missing(), error),
    })
}

fn tell(event: Event, json: bool, config: &Config) -> Result<(), Failure> {
    let [forwarded, own] =
        [Intercepted::Forwarded, Intercepted::Own].map(|whose| config.intercepts(whose));
    match event {
        Event::Listening(addresses) if json => {
            let addresses = addresses.iter().map(ToString::to_string).collect();
            output::json(&ProxyLine::Listening { addresses, forwarded, own }).map(|_| ())
        }
        Event::Listening(addresses) => {
            for address in addresses {
                note(format_args!("listening on {address} (SOCKS5, HTTP CONNECT)"));
            }
            if forwarded {
                note("intercepting the connections that this machine forwards");
            }
            if own {
                note("intercepting the connections that programs on this machine open");
            }
            Ok(())
        }
        Event::Report(report) if json => output::json(&ProxyLine::Counters(report)).map(|_| ()),
        Event::Report(report) => output::counters(&report.entries()),
    }
}
