//! The host's queue, and what its sender hears of it.

mod common;

use common::{UP, scenario, simulate};
use wakeai_sim::SimOutcome;

fn run(keys: &str) -> SimOutcome {
    let more = format!("[[conditions]]\nname = \"one\"\nset = {{ {keys} }}");
    simulate(&scenario("802.11n", 2, UP, &more), 1, ()).0
}

#[test]
fn an_overflow_is_local_congestion_to_linux_and_a_loss_to_a_classic_sender() {
    let queue = "\"stations.tablet.queue\" = 50";
    let linux = run(queue);
    assert!(linux.outcome.errors.local_overflow > 0);
    assert!(linux.outcome.flows.iter().all(|flow| flow.retransmits == 0), "nothing was lost");
    let classic = run(&format!("{queue}, \"stations.tablet.tcp\" = \"classic\""));
    assert_eq!(classic.outcome.errors.local_overflow, 0);
    assert!(classic.outcome.flows.iter().all(|flow| flow.retransmits > 0));
    assert!(classic.counters.stations.iter().all(|station| station.queue_drops > 0));
}

#[test]
fn small_queues_keep_the_wait_in_the_host_short() {
    let median = |outcome: &SimOutcome| outcome.outcome.rtt[0].percentile(50.0).unwrap();
    let (fifo, small) = (run(""), run("\"stations.tablet.host_queue\" = \"tsq\""));
    assert!(median(&small) < median(&fifo) / 3, "{} {}", median(&small), median(&fifo));
    let bytes = |run: &SimOutcome| run.outcome.flows.iter().map(|flow| flow.bytes.get()).sum();
    let (fifo, small): (u64, u64) = (bytes(&fifo), bytes(&small));
    assert!(small > fifo / 10 * 9, "and the air full: {small} and {fifo} bytes");
}
