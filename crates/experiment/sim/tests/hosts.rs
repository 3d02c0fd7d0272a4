//! The host's queue, and its effects on the sender.

mod common;

use std::collections::BTreeMap;

use common::{UP, scenario, simulate};
use wakeai_medium::{Destination, Node};
use wakeai_sim::{Observer, Seen, SimOutcome};
use wakeai_units::Duration;

fn run(keys: &str) -> SimOutcome {
    let more = format!("[[conditions]]\nname = \"one\"\nset = {{ {keys} }}");
    simulate(&scenario("802.11n", 2, UP, &more), 1, ()).0
}

#[test]
fn an_overflow_is_local_congestion_only_to_linux() {
    let queue = "\"stations.tablet.queue\" = 50";
    let linux = run(queue);
    assert!(linux.outcome.errors.unwrap().local_overflow > 0);
    assert!(linux.outcome.flows.iter().all(|flow| flow.retransmits == Some(0)), "nothing was lost");
    let classic = run(&format!("{queue}, \"stations.tablet.tcp\" = \"classic\""));
    assert_eq!(classic.outcome.errors.unwrap().local_overflow, 0);
    assert!(classic.outcome.flows.iter().all(|flow| flow.retransmits > Some(0)));
    assert!(classic.counters.stations.iter().all(|station| station.queue_drops > 0));
}

#[test]
fn what_the_wire_loses_is_among_the_drops_and_is_sent_again() {
    let lossless = run("").outcome.drops.unwrap();
    assert_eq!((lossless.wired_up, lossless.wired_down), (0, 0));
    let losing = run("\"wired.loss\" = 0.01");
    let drops = losing.outcome.drops.unwrap();
    assert_eq!(drops.wired_up, losing.counters.wired_up.losses);
    assert_eq!(drops.wired_down, losing.counters.wired_down.losses);
    assert!(drops.wired_up > 0 && drops.wired_down > 0, "{drops:?}");
    assert!(losing.outcome.flows.iter().all(|flow| flow.retransmits > Some(0)));
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

const MAC80211: &str = "\"stations.tablet.host_queue\" = \"mac80211\"";
const TSQ: &str = "\"stations.tablet.host_queue\" = \"tsq\"";

#[test]
fn codel_drops_old_packets_without_an_overflow() {
    let run = |keys: &str| {
        let more = format!("[[conditions]]\nname = \"one\"\nset = {{ {keys} }}");
        simulate(&scenario("802.11n", 4, UP, &more), 1, ()).0
    };
    let (small, codel) = (run(TSQ), run(MAC80211));
    let drops = |run: &SimOutcome| -> u64 {
        run.counters.stations.iter().map(|station| station.queue_drops).sum()
    };
    assert_eq!((drops(&small), codel.outcome.errors.unwrap().local_overflow), (0, 0));
    assert!(drops(&codel) > 0);
    let retransmits = codel.outcome.flows.iter().map(|flow| flow.retransmits.unwrap()).sum::<u64>();
    assert!(retransmits > 0, "a drop is a loss");
    let p95 = |run: &SimOutcome| run.outcome.rtt[0].percentile(95.0).unwrap();
    assert!(p95(&codel) < p95(&small), "{} {}", p95(&codel), p95(&small));
}

#[test]
fn where_codel_drops_nothing_a_flow_is_as_with_small_queues() {
    let run = |keys: &str| {
        let more = format!("[[conditions]]\nname = \"one\"\nset = {{ {keys} }}");
        simulate(&scenario("802.11n", 1, UP, &more), 1, ()).0
    };
    let (small, codel) = (run(TSQ), run(MAC80211));
    assert_eq!(small.counters, codel.counters);
    assert_eq!(small.outcome.flows, codel.outcome.flows);
}

#[test]
fn a_run_with_fq_codel_is_repeated_bit_for_bit() {
    let [one, other] = [(); 2].map(|()| run(MAC80211));
    assert_eq!(one.counters, other.counters);
    assert_eq!(one.outcome.flows, other.outcome.flows);
    assert_ne!(one.counters, run(TSQ).counters);
}

/// The one-way delays of data segments for each flow.
#[derive(Debug, Default)]
struct Delays {
    sent: BTreeMap<(u32, u64), Duration>,
    took: BTreeMap<u32, Vec<Duration>>,
}

impl Observer for Delays {
    fn on_sent(&mut self, at: Duration, _: Node, _: Destination, packet: Seen<'_>) {
        if let Seen::Segment { flow, to_sender: false, segment, .. } = packet {
            self.sent.insert((flow, segment.seq), at);
        }
    }

    fn on_received(&mut self, at: Duration, _: Node, _: Node, packet: Seen<'_>) {
        if let Seen::Segment { flow, to_sender: false, segment, .. } = packet
            && let Some(sent) = self.sent.remove(&(flow, segment.seq))
        {
            self.took.entry(flow).or_default().push(at - sent);
        }
    }
}

impl Delays {
    fn median(&self, flows: std::ops::Range<u32>) -> Duration {
        let mut all: Vec<Duration> =
            flows.filter_map(|flow| self.took.get(&flow)).flatten().copied().collect();
        all.sort_unstable();
        all[all.len() / 2]
    }
}

#[test]
fn with_fq_codel_a_camera_does_not_wait_behind_uploads() {
    // Flow 0 is the camera's. Twelve uploads fill the queue.
    let upload = format!("[[flows]]\n{UP}\n");
    let camera = format!("{UP}\nlimit = \"300kbit/s\"\n{}", upload.repeat(12));
    let run = |keys: &str| {
        let more = format!("[[conditions]]\nname = \"one\"\nset = {{ {keys} }}");
        simulate(&scenario("802.11g", 1, &camera, &more), 1, Delays::default()).1
    };
    let (small, fq) = (run(TSQ), run(MAC80211));
    let (before, after) = (small.median(0..1), fq.median(0..1));
    assert!(after < before / 5, "{before} and {after}");
    assert!(fq.median(1..13) > after * 5, "the uploads wait: {}", fq.median(1..13));
}
