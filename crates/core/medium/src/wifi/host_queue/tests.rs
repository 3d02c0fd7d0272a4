//! Tests of the host's queue: FIFO, FQ-CoDel and small queues.

use proptest::prelude::*;
use wakeai_units::Duration;

use super::*;

const ROOM: Room = Room { packets: 8_192, memory: 4 << 20 };

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Packets are numbered by flow and place.
type Numbered = (u64, u64);

fn push(queue: &mut HostQueue<Numbered>, now: Instant, packet: Numbered) -> Vec<Numbered> {
    let mut dropped = Vec::new();
    queue.push(now, packet.0, 1_500, packet, |packet| dropped.push(packet));
    dropped
}

fn pop(queue: &mut HostQueue<Numbered>, now: Instant) -> Option<Numbered> {
    queue.pop(now, |packet| panic!("{packet:?} was dropped"))
}

#[test]
fn a_sparse_flow_goes_ahead_of_a_bulk_flow() {
    let mut queue = HostQueue::new(ROOM);
    for number in 0..100 {
        push(&mut queue, ms(0), (1, number));
    }
    for _ in 0..10 {
        pop(&mut queue, ms(1));
    }
    for number in 0..10 {
        push(&mut queue, ms(1), (2, number));
        assert_eq!(pop(&mut queue, ms(1)), Some((2, number)), "though 90 are ahead of it");
        // Flow 2 is now empty and joins the list of old flows. In that list flow 1 has its turn.
        assert_eq!(pop(&mut queue, ms(1)), Some((1, 10 + number)));
    }
}

#[test]
fn busy_flows_take_turns_by_bytes() {
    let mut queue = HostQueue::new(ROOM);
    for number in 0..600 {
        queue.push(ms(0), 1, 1_500, (1, number), |_| panic!("dropped"));
        queue.push(ms(0), 2, 150, (2, number), |_| panic!("dropped"));
    }
    let served: Vec<u64> = (0..440).map(|_| pop(&mut queue, ms(1)).unwrap().0).collect();
    let long = served.iter().filter(|flow| **flow == 1).count();
    assert!((39..=41).contains(&long), "{long} of 1500 bytes and {} of 150", 440 - long);
}

#[test]
fn each_flow_keeps_its_order() {
    let mut queue = HostQueue::new(ROOM);
    for number in 0..50 {
        for flow in 0..5 {
            push(&mut queue, ms(0), (flow, number));
        }
    }
    let mut next = [0; 5];
    while let Some((flow, number)) = pop(&mut queue, ms(1)) {
        assert_eq!(std::mem::replace(&mut next[flow as usize], number + 1), number);
    }
    assert_eq!(next, [50; 5]);
}

#[test]
fn too_many_packets_cost_the_flow_with_the_most_bytes_its_head() {
    let mut queue = HostQueue::new(Room { packets: 100, ..ROOM });
    for number in 0..90 {
        push(&mut queue, ms(0), (1, number));
    }
    for number in 0..10 {
        assert_eq!(push(&mut queue, ms(0), (2, number)), []);
    }
    assert_eq!((queue.packets, queue.room()), (100, 0));
    let lost: Vec<Numbered> = (0..32).map(|number| (1, number)).collect();
    assert_eq!(push(&mut queue, ms(0), (2, 10)), lost, "32, which is less than half of 90");
    assert_eq!((queue.packets, queue.room()), (69, 31));
}

#[test]
fn memory_is_a_limit_too() {
    // A full packet takes 2304 bytes.
    let mut queue = HostQueue::new(Room { memory: 23_040, ..ROOM });
    assert_eq!(queue.room(), 10);
    for number in 0..10 {
        assert_eq!(push(&mut queue, ms(0), (1, number)), []);
    }
    assert_eq!(queue.room(), 0);
    assert_eq!(push(&mut queue, ms(0), (1, 10)).len(), 6, "half of eleven");
    assert_eq!(queue.packets, 5);
}

#[test]
fn stations_of_802_11ac_may_keep_more() {
    let of = |standard| Room::of(standard, 8_192).memory >> 20;
    assert_eq!([Standard::G, Standard::N, Standard::Ac, Standard::Ax].map(of), [4, 4, 16, 16]);
}

#[test]
fn codel_is_of_one_flow_alone() {
    // The packets of flow 1 wait for longer than CoDel's target, and those of flow 2 do not wait.
    let mut queue = HostQueue::new(ROOM);
    let mut dropped = Vec::new();
    for number in 0..1_000 {
        push(&mut queue, ms(0), (1, number));
    }
    for tick in 0..400 {
        push(&mut queue, ms(tick), (2, tick));
        for _ in 0..2 {
            queue.pop(ms(tick), |packet| dropped.push(packet));
        }
    }
    assert!(dropped.len() > 3 && dropped.iter().all(|(flow, _)| *flow == 1), "{dropped:?}");
}

/// An operation on the queue.
#[derive(Clone, Debug)]
enum Operation {
    Push { flow: u64, bytes: u32, count: u8 },
    Pop { count: u8 },
    Wait { ms: u64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        (0_u64..6, 0_u32..2_297, 1_u8..40).prop_map(|(flow, bytes, count)| Operation::Push {
            flow,
            bytes,
            count
        }),
        (1_u8..60).prop_map(|count| Operation::Pop { count }),
        (0_u64..60).prop_map(|ms| Operation::Wait { ms }),
    ]
}

/// A simple model of the queue: for each flow, the packets in order with their arrival times.
#[derive(Default)]
struct Model {
    flows: BTreeMap<u64, VecDeque<(u64, u32, Instant)>>,
    dropped: u64,
}

impl Model {
    fn len(&self) -> usize {
        self.flows.values().map(VecDeque::len).sum()
    }

    /// Records that a packet leaves, and checks that it was the head of its flow.
    fn leave(&mut self, (flow, number): Numbered) -> Instant {
        let (head, _, since) = self.flows.get_mut(&flow).unwrap().pop_front().unwrap();
        assert_eq!(head, number, "flow {flow} is out of order");
        since
    }
}

/// Applies `operations`, and returns the packets that left, in order.
fn play(operations: &[Operation], room: Room) -> Vec<Numbered> {
    let mut queue = HostQueue::new(room);
    let (mut model, mut went) = (Model::default(), Vec::new());
    let (mut now, mut number) = (ms(0), 0);
    for operation in operations {
        match *operation {
            Operation::Wait { ms } => now += Duration::from_millis(ms),
            Operation::Push { flow, bytes, count } => {
                for _ in 0..count {
                    number += 1;
                    model.flows.entry(flow).or_default().push_back((number, bytes, now));
                    let fits = queue.room() > 0;
                    let mut lost = Vec::new();
                    queue.push(now, flow, bytes, (flow, number), |packet| lost.push(packet));
                    assert!(!fits || bytes > 1_500 || lost.is_empty(), "there was room");
                    model.dropped += lost.len() as u64;
                    for packet in lost {
                        model.leave(packet);
                    }
                    assert!(queue.packets <= room.packets && queue.packets >= 1);
                }
            }
            Operation::Pop { count } => {
                for _ in 0..count {
                    let mut lost = Vec::new();
                    let next = queue.pop(now, |packet| lost.push(packet));
                    for packet in lost {
                        let wait = now - model.leave(packet);
                        assert!(wait >= codel::TARGET, "dropped after {wait}");
                        let flow = &model.flows[&packet.0];
                        assert!(!flow.is_empty(), "the last packet of a flow was dropped");
                        model.dropped += 1;
                    }
                    assert_eq!(next.is_none(), model.len() == 0, "a packet leaves while any waits");
                    let Some(packet) = next else { break };
                    model.leave(packet);
                    went.push(packet);
                }
            }
        }
        assert_eq!(queue.packets, model.len());
        let bytes = model.flows.values().flatten().map(|(_, bytes, _)| memory_of(*bytes));
        assert_eq!(queue.memory, bytes.sum::<u64>());
    }
    assert_eq!(number, went.len() as u64 + model.dropped + model.len() as u64);
    went
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn packets_go_in_order_or_are_dropped(
        operations in prop::collection::vec(operation(), 1..60),
        packets in 1_usize..300,
        memory in prop::sample::select(vec![1_u64 << 16, 1 << 18, 4 << 20]),
    ) {
        let room = Room { packets, memory };
        let once = play(&operations, room);
        prop_assert_eq!(once, play(&operations, room));
    }
}
