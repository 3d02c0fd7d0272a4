//! A test: the lab honours every key of the reference page, or says that it cannot.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

#[path = "../../scenario/tests/every_key/mod.rs"]
mod every_key;

use std::collections::BTreeSet;

use wakeai_scenario::{FlowKind, ResolvedCondition, given_maxima};
use wakeai_units::Instant;
use wakeai_world::agent::{self, AgentLaw};
use wakeai_world::{StationQueue, changes, reservations};

use crate::host::station_address;
use crate::radio::fifo_packets;
use crate::traffic::{SenderFacts, plan};
use crate::unheard;
use every_key::cases;

/// All that a run of the lab is made of, in words; or why there is none.
fn run_of(condition: &ResolvedCondition) -> Result<String, String> {
    let experiment = &*condition.scenario;
    unheard::refuse_lies(experiment).map_err(|error| error.to_string())?;
    let expanded = experiment.expand(1);
    // Not divided between host and medium, so that what else divides it is not taken for the key.
    let medium =
        wakeai_world::wifi_config(experiment, |group| StationQueue::fifo(fifo_packets(group)));
    let medium = medium.map_err(|error| error.to_string())?;
    let bounded = agent::bounded(condition).into_iter().zip(&expanded.stations);
    let server = SenderFacts { cubic_by_default: true, bounded: false, behind: None };
    let stations = bounded.map(|(bounded, station)| SenderFacts {
        bounded,
        behind: experiment.stations[station.group]
            .proxy
            .then(|| station_address(wakeai_medium::StationId(0))),
        ..server
    });
    let senders: Vec<SenderFacts> = std::iter::once(server).chain(stations).collect();
    let plans = plan(experiment, &expanded, &senders).map_err(|error| error.to_string())?;
    let targets: Vec<_> = expanded
        .flows
        .iter()
        .map(|flow| flow.rate.filter(|_| flow.kind == FlowKind::Tcp))
        .collect();
    let names = (&experiment.name, condition.name(), &expanded.stations);
    let span = (experiment.duration, experiment.warmup);
    let agents = (AgentLaw::of_stations(condition), reservations::reserved(&expanded));
    let maxima = given_maxima(condition);
    let changes = changes(experiment, Instant::ZERO);
    Ok(format!(
        "{names:?} {span:?} {medium:?} {plans:?} {targets:?} {agents:?} {maxima:?} {changes:?}"
    ))
}

#[test]
fn every_key_is_honoured_or_named_as_one_that_is_not() {
    let (mut named, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for case in cases() {
        let [before, after] =
            [case.base(), case.changed()].map(|scenario| scenario.conditions().swap_remove(0));
        let key = case.key();
        let last = key.rsplit('.').next().unwrap();
        match run_of(&after) {
            Err(why) => {
                let says = why.contains(last) || why.contains("access_point.medium");
                assert!(says, "{:?} is refused without its name: {why}", case.set);
                refused.insert(key);
            }
            Ok(run) if run_of(&before).as_ref() != Ok(&run) => {}
            Ok(_) => {
                let told = unheard::keys(&[after]).join("\n");
                assert!(told.contains(last), "{:?} changes nothing: {told:?}", case.set);
                named.insert(key);
            }
        }
    }
    // As docs/reference/scenario.md says of each.
    let simulators = [
        "flows[].beta",
        "flows[].rtt_ref",
        "flows[].tcp_friendliness",
        "stations[].host_queue",
        "stations[].tcp",
    ];
    assert!(named.iter().eq(&simulators), "{named:?}");
    for key in ["medium", "uplink", "downlink", "scheduler"] {
        assert!(refused.contains(&format!("access_point.{key}")), "{key}: {refused:?}");
    }
}
