//! The keys that the lab cannot honour.

use wakeai_scenario::{Experiment, FlowKnobs, FlowSpec, HostQueue, ResolvedCondition, TcpProfile};

use crate::error::LabError;
use crate::radio::fifo_packets;

/// The keys of `conditions`, set in the file or by one of them, that change nothing here, and why, in
/// words: each once.
pub(crate) fn keys(conditions: &[ResolvedCondition]) -> Vec<String> {
    let mut all = Vec::new();
    for condition in conditions {
        let of_condition = [hosts(&condition.scenario), knobs(&condition.scenario)].concat();
        all.extend(of_condition);
    }
    all.extend(wakeai_world::unheard(conditions));
    let mut told = Vec::new();
    all.retain(|text| {
        let is_new = !told.contains(text);
        told.push(text.clone());
        is_new
    });
    all
}

/// Refuses what would make another experiment of `experiment` if it were left out: agents here are those that a
/// user would start, and tell the truth.
pub(crate) fn refuse_lies(experiment: &Experiment) -> Result<(), LabError> {
    match experiment.stations.iter().find(|group| !group.announces.is_truth()) {
        Some(group) => Err(LabError::Unsupported {
            asked: format!(
                "stations.{}.announces says something of {}",
                group.name,
                group.announces.keys().join(", ")
            ),
            remedy: "the lab's agents announce the truth; the simulator's can be told to lie"
                .to_owned(),
        }),
        None => Ok(()),
    }
}

/// What is the simulator's of a host.
fn hosts(experiment: &Experiment) -> Vec<String> {
    let mut texts = Vec::new();
    for group in &experiment.stations {
        let why = match group.host_queue {
            HostQueue::Fifo => None,
            HostQueue::Tsq => Some("TCP small queues do not reach past a TUN device"),
            HostQueue::Mac80211 => Some("mac80211 does not stand behind a TUN device"),
        };
        if let Some(why) = why {
            texts.push(format!(
                "stations.{}.host_queue = \"{}\": the lab's hosts have a plain FIFO of {} packets, \
                 because {why}",
                group.name,
                group.host_queue.name(),
                fifo_packets(group)
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

/// What is turned on an algorithm.
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
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;

    #[test]
    fn a_host_queue_that_is_not_there_is_a_fifo_of_no_more_than_1000_packets() {
        let told = |set: &str| {
            let text = format!(
                "name = \"x\"\nduration = \"1s\"\naccess_point = {{ standard = \"802.11n\" }}\n\
                 stations = [{{ name = \"a\", {set} }}]\n\
                 flows = [{{ from = \"a\", to = \"server\", limit = \"1Mbit/s\" }}]\n"
            );
            keys(&Scenario::parse(&text).unwrap().conditions()).join("\n")
        };
        assert_eq!(told("queue = 300"), "");
        assert!(told("host_queue = \"mac80211\"").contains("a plain FIFO of 1000 packets"));
        assert!(told("host_queue = \"mac80211\", queue = 300").contains("FIFO of 300 packets"));
        assert!(told("host_queue = \"tsq\", queue = 3000").contains("FIFO of 3000 packets"));
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
        assert_eq!(keys(&conditions[..1]), Vec::<String>::new());
        let told = keys(&conditions);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("stations.a.host_queue"), "{told:?}");
        assert!(told[1].starts_with("flows.1: beta"), "{told:?}");
    }
}
