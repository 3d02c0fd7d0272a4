//! QUIC flows: endless, with a size and with a limit, in both directions, beside TCP and under a law.

mod common;

use std::collections::VecDeque;

use common::{DOWN, UP, goodput, report, scenario, simulate};
use wakeai_medium::{Destination, Node};
use wakeai_scenario::Scenario;
use wakeai_sim::{Observer, Seen};
use wakeai_units::Duration;
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
    assert!(flow.retransmits > Some(0), "the queue of 30 packets overflows");
    assert_eq!(Some(outcome.outcome.drops.unwrap().hosts), flow.retransmits);
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

/// The one-way delays of the first flow's datagrams, from the host's queue to the receiver. Those of the first five
/// seconds are left out, in which the other flow begins before its station has a share.
#[derive(Default)]
struct Delays {
    under_way: VecDeque<Duration>,
    found: Vec<Duration>,
}

impl Delays {
    fn p99_ms(mut self) -> f64 {
        self.found.sort_unstable();
        self.found[self.found.len() * 99 / 100].as_millis_f64()
    }
}

impl Observer for Delays {
    fn on_sent(&mut self, at: Duration, _: Node, _: Destination, packet: Seen<'_>) {
        if matches!(packet, Seen::Datagram { flow: 0, .. }) {
            self.under_way.push_back(at);
        }
    }

    fn on_received(&mut self, at: Duration, _: Node, _: Node, packet: Seen<'_>) {
        if matches!(packet, Seen::Datagram { flow: 0, .. }) {
            let sent = self.under_way.pop_front().expect("it was sent before it arrived");
            if sent > Duration::from_secs(5) {
                self.found.push(at - sent);
            }
        }
    }
}

/// A flow of 50 datagrams per second beside a bulk transfer of the same station, while three other stations send. The
/// 99th percentiles are means of twelve seeds, because those of two seeds may differ by half.
#[test]
fn beside_a_bound_quic_flow_a_sparse_flow_waits_at_most_a_round_of_turns_longer() {
    let delay = |standard: &str, law: &str, bulk: &str| {
        let text = format!(
            "name = \"x\"\nduration = \"30s\"\naccess_point = {{ standard = {standard:?} }}\n\
             wired = {{ delay = \"15ms\" }}\n\
             stations = [{{ name = \"call\" }}, {{ name = \"other\", count = 3 }}]\n\
             [[flows]]\nfrom = \"call\"\nto = \"server\"\nkind = \"udp\"\nrate = \"589kbit/s\"\n\
             [[flows]]\nfrom = \"other\"\nto = \"server\"\n{bulk}\n\
             [[conditions]]\nname = \"only\"\n{law}\n"
        );
        let of_seed = |seed| {
            let scenario = Scenario::parse(&text).unwrap();
            let (_, delays) = simulate(&scenario, seed, Delays::default());
            // None was lost: what is under way at the end was sent in the last 2 s.
            assert!(delays.under_way.len() <= 100, "{} are under way", delays.under_way.len());
            delays.p99_ms()
        };
        (1..=12).map(of_seed).sum::<f64>() / 12.0
    };
    let bulk = "[[flows]]\nfrom = \"call\"\nto = \"server\"\nkind = \"quic\"";
    // A turn of 802.11n is at most 5.484 ms and 0.28 ms of overhead, one of 802.11ac at 390 Mbit/s 1.6 ms.
    for (standard, turn_ms) in [("802.11n", 5.8), ("802.11ac", 1.6)] {
        let delay = |law, bulk| delay(standard, law, bulk);
        let law = "law = \"airtime\"";
        let (alone, bound, free) = (delay(law, ""), delay(law, bulk), delay("", bulk));
        println!(
            "{standard}: {alone:.1} ms alone, {bound:.1} beside a bound flow, {free:.1} beside a free one"
        );
        assert!(bound <= alone + 5.0 + 4.0 * turn_ms, "{standard}: {bound} ms, {alone} alone");
        assert!(
            free > 5.0 * bound,
            "{standard}: {free} ms beside a free flow, {bound} beside a bound one"
        );
    }
}
