//! The keys of a scenario that have no effect in the lab, or that it refuses.

use wakeai_scenario::{EventSpec, Experiment, FlowKnobs, FlowSpec, HostQueue, TcpProfile};
use wakeai_wifi::{Standard, Width};
use wakeai_world::RunError;

use crate::error::unsupported;
use crate::queues::fifo_packets;

/// One sentence for each key of `experiment` that has no effect in the lab, with the reason.
pub(crate) fn without_effect(experiment: &Experiment) -> Vec<String> {
    [hosts(experiment), knobs(experiment)].concat()
}

/// Refuses hosts of another time: the lab's hosts run this machine's kernel.
pub(crate) fn refuse_other_kernels(experiment: &Experiment) -> Result<(), RunError> {
    let Some(group) = experiment.stations.iter().find(|group| group.tcp == TcpProfile::Linux34)
    else {
        return Ok(());
    };
    Err(unsupported(
        format!("stations.{}.tcp = \"linux-3.4\"", group.name),
        "the lab runs this machine's kernel; the simulator has a TCP of that time",
    ))
}

/// Refuses a stack of which this machine may have no radios: those of a guest are its own.
pub(crate) fn refuse_stack(experiment: &Experiment) -> Result<(), RunError> {
    if !experiment.stack.is_linux() {
        return Ok(());
    }
    Err(unsupported(
        format!("access_point.stack = \"{}\"", experiment.stack),
        "its radios are made in a guest: give the command --kernel 6.12; the simulator models it, too",
    ))
}

/// Refuses what radios of the kernel cannot do.
pub(crate) fn refuse_beside_stack(experiment: &Experiment) -> Result<(), RunError> {
    if !experiment.stack.is_linux() {
        return Ok(());
    }
    let refused = |asked: String, why: &str| {
        Err(unsupported(asked, format!("beside access_point.stack {why}; the simulator models it")))
    };
    let Some(bss) = experiment.access_point.wifi() else { return Ok(()) };
    let standards = experiment.stations.iter().filter_map(|group| group.radio);
    let standards = standards.map(|radio| radio.standard).chain([bss.standard]);
    for standard in standards {
        if !matches!(standard, Standard::G | Standard::N) {
            let why = "the radios are of 802.11g or 802.11n, at 2.4 GHz";
            return refused(format!("standard = \"{standard}\""), why);
        }
    }
    if bss.width != Width::Mhz20 {
        return refused("access_point.width".to_owned(), "channels have 20 MHz");
    }
    if bss.amsdu.get() > 0 {
        return refused("access_point.amsdu".to_owned(), "Linux decides about A-MSDU");
    }
    for group in &experiment.stations {
        if !group.wired_delay.is_zero() {
            let asked = format!("stations.{}.wired_delay", group.name);
            return refused(asked, "all stations have the wire of [wired]");
        }
        if group.proxy {
            return refused(format!("stations.{}.proxy", group.name), "stations have no cable");
        }
        if group.tcp == TcpProfile::Classic {
            return refused(format!("stations.{}.tcp", group.name), "the TCP is the guest's");
        }
    }
    let changed =
        |event: &EventSpec| event.rate.map(|_| "rate").or(event.wired_delay.map(|_| "wired_delay"));
    match experiment.events.iter().find_map(changed) {
        Some(key) => refused(format!("events[].{key}"), "an event changes frame_error_rate alone"),
        None => Ok(()),
    }
}

/// Refuses an experiment with `announces`, which makes agents announce false values. The lab's
/// agents are the program that users run, and this program announces the truth.
pub(crate) fn refuse_false_announcements(experiment: &Experiment) -> Result<(), RunError> {
    let Some(group) = experiment.stations.iter().find(|group| !group.announces.is_truth()) else {
        return Ok(());
    };
    let keys = group.announces.keys().join(", ");
    Err(unsupported(
        format!("stations.{}.announces sets {keys}", group.name),
        "the lab's agents announce the truth; the simulator's can be told to lie",
    ))
}

/// The keys of hosts that only the simulator models.
fn hosts(experiment: &Experiment) -> Vec<String> {
    let mut texts = Vec::new();
    for group in &experiment.stations {
        let why = match group.host_queue {
            _ if experiment.stack.is_linux() => None,
            HostQueue::Fifo => None,
            HostQueue::Tsq => Some("TCP small queues do not reach past a TUN device"),
            HostQueue::Mac80211 => Some("mac80211 does not stand behind a TUN device"),
        };
        if let Some(why) = why {
            texts.push(format!(
                "stations.{}.host_queue = \"{}\": the lab's hosts have a plain FIFO of {} packets, \
                 because {why}",
                group.name,
                group.host_queue,
                fifo_packets(group)
            ));
        }
        if group.departure_times {
            texts.push(format!(
                "stations.{}.departure_times: the lab leaves the queueing disciplines of its hosts alone, so datagrams above a \
                 rate are dropped",
                group.name
            ));
        }
        if group.send_buffer.is_some() {
            texts.push(format!(
                "stations.{}.send_buffer: the lab's hosts have buffers of up to 64 MB",
                group.name
            ));
        }
        if group.tcp == TcpProfile::Classic {
            texts.push(format!(
                "stations.{}.tcp = \"classic\": the lab runs this kernel's TCP",
                group.name
            ));
        }
    }
    texts
}

/// A sentence for each flow whose algorithm has parameters other than the default.
fn knobs(experiment: &Experiment) -> Vec<String> {
    let turned = |flow: &FlowSpec| flow.knobs != FlowKnobs::default();
    let flows = experiment.flows.iter().enumerate().filter(|(_, flow)| turned(flow));
    let words = |(index, _)| {
        format!(
            "flows.{}: beta, rtt_ref and tcp_friendliness are the simulator's; the lab runs the \
             algorithms as the kernel has them",
            index + 1
        )
    };
    flows.map(words).collect()
}

#[cfg(test)]
#[path = "../../scenario/tests/every_key/mod.rs"]
mod every_key;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use std::collections::BTreeSet;

    use super::every_key::cases;
    use super::*;
    use wakeai_results::result::given_maxima;
    use wakeai_scenario::Scenario;
    use wakeai_scenario::{FlowKind, ResolvedCondition};
    use wakeai_units::Instant;
    use wakeai_world::agent;
    use wakeai_world::{Changes, StationQueue, keys_without_effect, medium_config, reservations};

    use crate::traffic::{SenderFacts, plan};
    use wakeai_world::station_address;

    /// All settings of a run of the lab as text, or the reason why it is refused.
    fn run_of(condition: &ResolvedCondition) -> Result<String, String> {
        let experiment = &*condition.experiment;
        refuse_false_announcements(experiment).map_err(|error| error.to_string())?;
        refuse_other_kernels(experiment).map_err(|error| error.to_string())?;
        refuse_beside_stack(experiment).map_err(|error| error.to_string())?;
        let expanded = experiment.expand(1);
        // The medium gets the whole queue here. Its real division depends on other keys, which
        // would hide that a key of the queue has no effect.
        let network = medium_config(experiment, |group| StationQueue::fifo(fifo_packets(group)));
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
        let plans =
            plan(experiment, &expanded, &senders, true).map_err(|error| error.to_string())?;
        let targets: Vec<_> = expanded
            .flows
            .iter()
            .map(|flow| flow.rate.filter(|_| flow.kind == FlowKind::Tcp))
            .collect();
        let bsss: Vec<_> = experiment.bsss.iter().map(|bss| &bss.name).collect();
        let names = (&experiment.name, condition.name(), &expanded.stations, bsss);
        let span = (experiment.duration, experiment.warmup, experiment.stack);
        let agents = (condition.agents(), condition.laws(), reservations::reserved(&expanded));
        let maxima = given_maxima(condition);
        let changes = Changes::new(experiment, Instant::ZERO);
        Ok(format!(
            "{names:?} {span:?} {network:?} {plans:?} {targets:?} {agents:?} {maxima:?} {changes:?}"
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
                    assert!(
                        why.contains(last),
                        "{:?} is refused without its name: {why}",
                        case.set
                    );
                    refused.insert(key);
                }
                Ok(run) if run_of(&before).as_ref() != Ok(&run) => {}
                Ok(_) => {
                    let told = told(&[after]).join("\n");
                    assert!(told.contains(last), "{:?} changes nothing: {told:?}", case.set);
                    named.insert(key);
                }
            }
        }
        // docs/reference/scenario.md says of the same keys that only the simulator honours them.
        let simulators = [
            "flows[].beta",
            "flows[].rtt_ref",
            "flows[].tcp_friendliness",
            "stations[].departure_times",
            "stations[].host_queue",
            "stations[].send_buffer",
            "stations[].tcp",
        ];
        assert!(named.iter().eq(&simulators), "{named:?}");
        refused.retain(|key| !key.starts_with("stations[].announces"));
        assert_eq!(refused, BTreeSet::from(["flows[].size", "stations[].tcp"].map(str::to_owned)));
    }

    fn told(conditions: &[ResolvedCondition]) -> Vec<String> {
        keys_without_effect(conditions, without_effect)
    }

    #[test]
    fn other_host_queues_become_a_fifo_of_at_most_1000_packets() {
        let of = |set: &str| {
            let text = format!(
                "name = \"x\"\nduration = \"1s\"\naccess_point = {{ standard = \"802.11n\" }}\n\
                 stations = [{{ name = \"a\", {set} }}]\n\
                 flows = [{{ from = \"a\", to = \"server\", limit = \"1Mbit/s\" }}]\n"
            );
            told(&Scenario::parse(&text).unwrap().conditions()).join("\n")
        };
        assert_eq!(of("queue = 300"), "");
        assert!(of("host_queue = \"mac80211\"").contains("a plain FIFO of 1000 packets"));
        assert!(of("host_queue = \"mac80211\", queue = 300").contains("FIFO of 300 packets"));
        assert!(of("host_queue = \"tsq\", queue = 3000").contains("FIFO of 3000 packets"));
    }

    #[test]
    fn what_a_condition_alone_sets_is_named_once() {
        let text = r#"
            name = "x"
            duration = "1s"
            access_point = { standard = "802.11n" }
            stations = [{ name = "a" }]
            flows = [{ from = "a", to = "server" }]
            conditions = [
                { name = "plain" },
                { name = "small", set = { "stations.a.host_queue" = "tsq" } },
                { name = "long", set = { "stations.a.host_queue" = "tsq", "flows.1.beta" = 0.5 } },
            ]
        "#;
        let conditions = Scenario::parse(text).unwrap().conditions();
        assert_eq!(told(&conditions[..1]), Vec::<String>::new());
        let told = told(&conditions);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("stations.a.host_queue"), "{told:?}");
        assert!(told[1].starts_with("flows.1: beta"), "{told:?}");
    }
}
