//! TCP flows: sized and endless, one after another, with starts and events.

mod common;

use common::{DOWN, UP, goodput, scenario, simulate};

#[test]
fn sized_flows_complete_and_the_run_ends_with_the_last() {
    for flow in [UP, DOWN] {
        let flow = format!("{flow}\nsize = \"1MB\"\nstart = \"1s\"");
        let (outcome, ()) = simulate(&scenario("802.11g", 3, &flow, ""), 1, ());
        let flows = &outcome.outcome.flows;
        assert!(flows.iter().all(|flow| flow.bytes.get() == 1_000_000));
        let last = flows.iter().map(|flow| flow.start + flow.completion.unwrap()).max();
        assert_eq!(last, Some(outcome.outcome.end));
        // 3 MB at some 24 Mbit/s take 1 s.
        assert!((1.8..4.0).contains(&outcome.outcome.end.as_secs_f64()), "{}", outcome.outcome.end);
    }
}

#[test]
fn one_endless_flow_reaches_the_goodput_of_ns_3_and_the_papers() {
    // The references are 24.4 Mbit/s down and 24.2 up. Here there are no beacons.
    for (flow, expected) in [(UP, 24.2), (DOWN, 24.4)] {
        let (outcome, ()) = simulate(&scenario("802.11g", 1, flow, ""), 1, ());
        let mbps = goodput(&outcome);
        assert!((mbps / expected - 1.0).abs() < 0.05, "{mbps} against {expected}");
    }
}

#[test]
fn chunks_are_connections_one_after_another() {
    let run = |chunks: u32| {
        let flow = format!("{UP}\nsize = \"100kB\"\nchunks = {chunks}");
        let far = "[[conditions]]\nname = \"far\"\n\
                   set = { \"stations.tablet.wired_delay\" = \"50ms\" }";
        let (outcome, ()) = simulate(&scenario("802.11g", 1, &flow, far), 1, ());
        let flow = &outcome.outcome.flows[0];
        assert_eq!(flow.bytes.get(), 100_000);
        flow.completion.unwrap().as_secs_f64()
    };
    // A handshake, a window and a close take two round trips of 102 ms, and somewhat more.
    let (one, ten) = (run(1), run(10));
    assert!(ten > one + 1.5, "{one} s with one connection, {ten} s with ten");
}

#[test]
fn an_event_changes_the_path_in_mid_run() {
    let run = |event: &str| {
        let more = format!("[[events]]\nat = \"1s\"\nstation = \"tablet\"\n{event}\n{SHORT}");
        let (outcome, ()) = simulate(&scenario("802.11g", 1, UP, &more), 1, ());
        (goodput(&outcome), outcome.outcome.rtt[0].percentile(95.0).unwrap().as_millis_f64())
    };
    let (fast, short) = run("wired_delay = \"0s\"");
    assert!(run("wired_delay = \"200ms\"").1 > short + 300.0);
    assert!(run("rate = \"6Mbit/s\"").0 < fast / 3.0);
    assert!(run("frame_error_rate = 0.5").0 < fast * 0.8);
}

/// A host queue of 50 packets.
const SHORT: &str = "[[conditions]]\nname = \"short\"\nset = { \"stations.tablet.queue\" = 50 }";

#[test]
fn a_warmup_is_left_out() {
    let more = "[[conditions]]\nname = \"warm\"\nset = { warmup = \"5s\" }";
    let (outcome, ()) = simulate(&scenario("802.11g", 1, UP, more), 1, ());
    let flow = &outcome.outcome.flows[0];
    let share = flow.bytes_after_warmup.get() as f64 / flow.bytes.get() as f64;
    assert!((0.49..0.56).contains(&share), "{share}");
}

#[test]
fn an_unknown_algorithm_is_refused_by_name() {
    let flow = format!("{UP}\nalgorithm = \"vegas\"");
    let scenario = scenario("802.11g", 1, &flow, "");
    let options = wakeai_world::Options::default();
    let error = wakeai_sim::run(&options, 1, &scenario, &wakeai_world::Silent);
    let error = error.unwrap_err();
    assert!(error.to_string().contains("vegas"), "{error}");
    assert_eq!(error.exit_status(), 2);
}

/// The bytes that a flow with a limit of 2 Mbit/s has written after `millis` ms, in segments.
fn written(millis: u64) -> u64 {
    millis * 250 / 1_448 * 1_448
}

#[test]
fn a_limited_flow_carries_what_its_application_writes() {
    for flow in [UP, DOWN] {
        let (outcome, ()) =
            simulate(&scenario("802.11n", 2, &format!("{flow}\nlimit = \"2Mbit/s\""), ""), 1, ());
        for flow in &outcome.outcome.flows {
            // Bytes written in the last few milliseconds may still be on their way.
            assert!((written(9_950)..=written(10_000)).contains(&flow.bytes.get()), "{flow:?}");
            assert_eq!((flow.retransmits, flow.timeouts), (Some(0), Some(0)));
        }
        let p99 = outcome.outcome.rtt[0].percentile(99.0).unwrap();
        assert!(p99.as_millis() < 10, "nothing queues: {p99}");
    }
}

#[test]
fn what_could_not_be_sent_is_caught_up() {
    // For a second no frame arrives undamaged.
    let event = |at: &str, rate: &str| {
        format!("[[events]]\nat = \"{at}\"\nstation = \"tablet\"\nframe_error_rate = {rate}\n")
    };
    let stall = format!("{}{}", event("3s", "1.0"), event("4s", "0.0"));
    let flow = format!("{UP}\nlimit = \"2Mbit/s\"");
    let (outcome, ()) = simulate(&scenario("802.11n", 1, &flow, &stall), 1, ());
    let flow = &outcome.outcome.flows[0];
    assert!(outcome.outcome.flows[0].simulated.unwrap().longest_stall_s >= 1.0);
    assert!((written(9_950)..=written(10_000)).contains(&flow.bytes.get()), "{flow:?}");
}

#[test]
fn a_limit_holds_over_all_chunks_and_tells_when_a_size_is_done() {
    // 1 MB at 2 Mbit/s takes 4 s, whatever the number of connections.
    for chunks in [1, 3, 8] {
        let flow = format!("{UP}\nlimit = \"2Mbit/s\"\nsize = \"1MB\"\nchunks = {chunks}");
        let (outcome, ()) = simulate(&scenario("802.11g", 2, &flow, ""), 1, ());
        for flow in &outcome.outcome.flows {
            assert_eq!(flow.bytes.get(), 1_000_000);
            let millis = flow.completion.unwrap().as_millis();
            assert!((4_000..4_020).contains(&millis), "{chunks} chunks: {millis} ms");
        }
    }
}

#[test]
fn a_limit_above_what_the_air_carries_changes_little() {
    let (free, ()) = simulate(&scenario("802.11g", 1, UP, ""), 1, ());
    let flow = format!("{UP}\nlimit = \"1Gbit/s\"");
    let (limited, ()) = simulate(&scenario("802.11g", 1, &flow, ""), 1, ());
    let (free, limited) = (goodput(&free), goodput(&limited));
    assert!((limited / free - 1.0).abs() < 0.01, "{limited} against {free}");
}
