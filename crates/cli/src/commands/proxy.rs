//! `wakeai proxy`.

use serde::Serialize;
use wakeai_proxy::{Access, Config, Event, Report, Transparent, as_source};

use crate::args::{ProxyArguments, TakenConnections};
use crate::failure::{Failure, note};
use crate::interrupt::terminated;
use crate::output;

/// The address on which a proxy listens by default.
const DEFAULT_LISTEN: &str = "127.0.0.1:1080";

/// The lines of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ProxyLine {
    Listening { addresses: Vec<String>, forwarded: bool, own: bool },
    Counters(Report),
}

pub(crate) fn run(arguments: &ProxyArguments) -> Result<(), Failure> {
    let config = config(arguments)?;
    let (json, transparent) = (arguments.json, config.transparent);
    let tell = |event| {
        if let Err(failure) = tell(event, json, transparent) {
            failure.say(); // the proxy continues when its counters are not read
        }
    };
    wakeai_proxy::run(config, terminated(), tell).map_err(|error| match error {
        error if error.is_usage() => Failure::usage(error),
        error if error.is_lost() => Failure::lost(error),
        error => Failure::missing_if(error.is_missing(), error),
    })
}

fn config(arguments: &ProxyArguments) -> Result<Config, Failure> {
    let sources = arguments.allow_from.iter().copied().map(as_source);
    let taken = |kind| arguments.transparent.contains(&kind);
    let transparent = Transparent {
        forwarded: taken(TakenConnections::Forwarded),
        own: taken(TakenConnections::Own),
    };
    let mut listen = arguments.listen.clone();
    if listen.is_empty() && !transparent.is_any() {
        listen.push(DEFAULT_LISTEN.parse().expect("an address and a port"));
    }
    Ok(Config {
        listen,
        transparent,
        in_interfaces: arguments.in_interface.clone(),
        algorithm: arguments.algorithm.clone(),
        rates: arguments.rate.clone(),
        leg: arguments.leg,
        access: Access {
            from: sources.collect::<Result<_, _>>().map_err(Failure::usage)?,
            to: arguments.allow_to.clone(),
        },
        connections: arguments.max_connections as usize,
        memory: arguments.memory,
        connect_timeout: arguments.connect_timeout,
        idle_timeout: arguments.idle_timeout,
        metrics: arguments.metrics,
        confined: true,
        user: arguments.user.clone(),
    })
}

fn tell(event: Event, json: bool, transparent: Transparent) -> Result<(), Failure> {
    match event {
        Event::Listening(addresses) if json => {
            let addresses = addresses.iter().map(ToString::to_string).collect();
            let Transparent { forwarded, own } = transparent;
            output::json(&ProxyLine::Listening { addresses, forwarded, own }).map(|_| ())
        }
        Event::Listening(addresses) => {
            for address in addresses {
                note(format_args!("listening on {address} (SOCKS5, HTTP CONNECT)"));
            }
            if transparent.forwarded {
                note("intercepting the connections that this machine forwards");
            }
            if transparent.own {
                note("intercepting the connections that programs on this machine open");
            }
            Ok(())
        }
        Event::Report(report) if json => output::json(&ProxyLine::Counters(report)).map(|_| ()),
        Event::Report(report) => output::counters(&report.entries()),
    }
}
