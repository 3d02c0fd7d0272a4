//! The keys of a scenario that real machines refuse, and those that have no effect because the air is what it is.

use wakeai_scenario::{Chunks, Experiment, FlowKind, FlowSpec};
use wakeai_world::RunError;

fn unsupported(asked: String, remedy: &str) -> RunError {
    RunError::Unsupported { world: "the field", asked, remedy: remedy.to_owned() }
}

/// Refuses an experiment that real machines cannot make.
pub(super) fn refuse(experiment: &Experiment) -> Result<(), RunError> {
    for group in &experiment.stations {
        if !group.announces.is_truth() {
            let keys = group.announces.keys().join(", ");
            return Err(unsupported(
                format!("stations.{}.announces sets {keys}", group.name),
                "agents announce the truth; the simulator's can be told to lie",
            ));
        }
        if group.proxy {
            let asked = format!("stations.{}.proxy", group.name);
            return Err(unsupported(asked, "run `wakeai proxy` on the machine, or use the lab"));
        }
    }
    if !experiment.events.is_empty() {
        return Err(unsupported(
            "[[events]]".to_owned(),
            "the air of real machines changes by itself; simulator and lab can be told to",
        ));
    }
    for (index, flow) in experiment.flows.iter().enumerate() {
        if let Some((what, remedy)) = refused(flow) {
            return Err(unsupported(format!("flows.{}.{what}", index + 1), remedy));
        }
    }
    Ok(())
}

/// What a flow has that real machines cannot do, and what to do.
fn refused(flow: &FlowSpec) -> Option<(&'static str, &'static str)> {
    let target = flow.kind == FlowKind::Tcp && flow.rate.is_some();
    match flow {
        _ if flow.kind == FlowKind::Quic => Some(("kind = \"quic\"", "use tcp, or the lab")),
        _ if flow.kind == FlowKind::Udp && flow.size.is_some() => {
            Some(("size with udp", "give it a rate and no size: lost datagrams are not sent again"))
        }
        _ if flow.turns => Some(("turns", "use the lab, whose flows take part in turns")),
        _ if flow.chunks == Chunks::Auto => {
            Some(("chunks = \"auto\"", "name a number of connections"))
        }
        _ if flow.reserve => Some(("reserve", "use the lab")),
        _ if target => {
            Some(("rate of a TCP flow", "use `limit`, or the lab for wakeai_av's target"))
        }
        _ => None,
    }
}

/// One sentence for what has no effect, because real machines have it as they have it.
pub(super) fn without_effect(experiment: &Experiment) -> Vec<String> {
    vec![format!(
        "access_point, wired, and of stations all keys but name, count and max: {} is run on real air, which is what it is",
        experiment.name
    )]
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;

    fn said(flow: &str, station: &str, more: &str) -> Result<(), String> {
        let text = format!(
            "name = \"x\"\nduration = \"9s\"\n{more}\naccess_point = {{ standard = \"802.11g\" }}\n\
             stations = [{{ name = \"a\"{station} }}]\nflows = [{{ from = \"a\", to = \"server\"{flow} }}]\n"
        );
        let scenario = Scenario::parse(&text).unwrap();
        refuse(&scenario).map_err(|error| error.to_string())
    }

    #[test]
    fn what_real_machines_cannot_do_is_refused_by_its_name() {
        for flow in [
            "",
            ", size = \"1MB\", chunks = 3",
            ", limit = \"1Mbit/s\"",
            ", kind = \"udp\", rate = \"1Mbit/s\"",
        ] {
            assert_eq!(said(flow, "", ""), Ok(()), "{flow}");
        }
        for (flow, name) in [
            (", kind = \"quic\"", "flows.1.kind = \"quic\""),
            (", size = \"1MB\", chunks = \"auto\"", "flows.1.chunks = \"auto\""),
            (", algorithm = \"wakeai_av\", rate = \"1Mbit/s\"", "flows.1.rate of a TCP flow"),
        ] {
            let error = said(flow, "", "").unwrap_err();
            assert!(
                error.starts_with(&format!("the field cannot run this scenario: {name}")),
                "{error}"
            );
        }
        let error = said("", ", announces = { sending = true }", "").unwrap_err();
        assert!(error.contains("stations.a.announces sets sending"), "{error}");
        assert!(said("", ", proxy = true", "").unwrap_err().contains("stations.a.proxy"));
        let event = "events = [{ at = \"1s\", station = \"a\", rate = \"6Mbit/s\" }]";
        assert!(said("", "", event).unwrap_err().contains("[[events]]"));
    }
}
