//! QUIC flows: endless, with a size and with a limit, in both directions, beside TCP and under a law.

mod common;

use common::{DOWN, UP, goodput, report, scenario, simulate};
use wakeai_scenario::Scenario;
use wakeai_world::Options;

fn carried(flow: &str, more: &str) -> wakeai_sim::SimOutcome {
    let flow = format!("{flow}\nkind = \"quic\"\n{more}");
    simulate(&scenario("802.11n", 1, &flow, ""), 1, ()).0
}

#[test]
fn an_endless_flow_fills_the_air_in_both_directions() {
    for flow in [UP, DOWN] {
        let tcp = goodput(&simulate(&scenario("802.11n", 1, flow, ""), 1, ()).0);
        let quic = goodput(&carried(flow, ""));
        // The headers of QUIC take 4 % of a datagram, those of TCP 3 % of a packet.
        assert!((0.93..1.01).contains(&(quic / tcp)), "{quic} beside {tcp}");
    }
}

#[test]
fn a_size_arrives_whole_and_ends_the_run() {
    for bytes in [1, 1_419, 1_000_000] {
        let outcome = carried(UP, &format!("size = \"{bytes}B\"")).outcome;
        assert_eq!(outcome.flows[0].bytes.get(), bytes);
        assert_eq!(outcome.flows[0].completion, Some(outcome.end));
    }
}

#[test]
fn a_limit_is_kept_to() {
    let mbps = goodput(&carried(UP, "limit = \"3Mbit/s\""));
    assert!((2.98..=3.0).contains(&mbps), "{mbps}");
}

#[test]
fn losses_are_repaired_and_counted() {
    let text = "name = \"x\"\nduration = \"10s\"\naccess_point = { standard = \"802.11n\" }\n\
        stations = [{ name = \"tablet\", queue = 30 }]\n\
        flows = [{ from = \"tablet\", to = \"server\", kind = \"quic\", size = \"20MB\" }]\n";
    let (outcome, ()) = simulate(&Scenario::parse(text).unwrap(), 1, ());
    let flow = &outcome.outcome.flows[0];
    assert_eq!(flow.bytes.get(), 20_000_000);
    assert!(flow.retransmits > 0, "the queue of 30 packets overflows");
    assert_eq!(outcome.outcome.drops.unwrap().hosts, flow.retransmits);
}

#[test]
fn the_result_has_the_kind_the_algorithm_and_the_rtt() {
    let flow = format!("{UP}\nkind = \"quic\"\nalgorithm = \"reno\"");
    let report = report(&scenario("802.11n", 1, &flow, ""), &Options::default());
    let run = &report.runs[0];
    assert_eq!(run.flows[0].algorithm.as_deref(), Some("reno"));
    assert!(report.to_json().replace(' ', "").contains("\"kind\":\"quic\""));
    // A packet waits for the queue before it, which the flow fills to 1.25 MB of flow control.
    assert!(run.rtt_ms.p95.unwrap() > 100.0);
}

#[test]
fn agents_take_quic_as_they_take_other_datagrams() {
    let with_law = "[[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"";
    let flow = format!("{UP}\nkind = \"quic\"\nstart = \"1s\"");
    let (outcome, ()) = simulate(&scenario("802.11n", 4, &flow, with_law), 1, ());
    assert!(goodput(&outcome) > 30.0, "nothing bounds it");
    assert!(outcome.outcome.flows.iter().all(|flow| flow.algorithm.as_deref() == Some("cubic")));
}
