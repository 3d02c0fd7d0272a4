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

/// Four QUIC uploads beside four of TCP. Without a law the access point's queue of acknowledgements makes RTTs of seconds.
#[test]
fn under_a_law_quic_has_the_share_of_tcp_and_leaves_its_queue_short() {
    let text = include_str!("../../../../validation/scenarios/quic.toml");
    let scenario = Scenario::parse(text).unwrap();
    let report = report(&scenario, &Options::default());
    let of = |name: &str| report.runs.iter().find(|run| run.condition == name).unwrap();
    let (default, airtime) = (of("beside"), of("beside-airtime"));
    assert!(airtime.jain.unwrap() > 0.99, "{:?}", airtime.jain);
    assert!(airtime.total_goodput_mbps > 0.97 * default.total_goodput_mbps);
    let tcp = |run: &wakeai_results::result::Run| run.groups[1].rtt_ms.p95.unwrap();
    assert!(tcp(airtime) < 0.1 * tcp(default), "{} beside {}", tcp(airtime), tcp(default));
}
