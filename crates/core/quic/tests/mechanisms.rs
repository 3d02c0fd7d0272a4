//! Each mechanism of QUIC that the simulator claims to have, with a test that fails without it.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use proptest::prelude::*;
use wakeai_connection::{CongestionState, EventKind, INFINITE_SSTHRESH};
use wakeai_quic::{
    Ack, Control, Data, IDLE_TIMEOUT, PAYLOAD, Packet, Receiver, STREAM_WINDOW, Sender,
};
use wakeai_units::{Duration, Instant, Segments};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn data(number: u64, part: u64) -> Packet {
    Packet::Data(Data {
        number,
        offset: part * PAYLOAD.get(),
        len: PAYLOAD.get() as u16,
        is_marked: false,
    })
}

fn ack(ranges: &[(u64, u64)]) -> Packet {
    ack_of_marks(ranges, 0)
}

/// An acknowledgement that reports this many packets with CE so far.
fn ack_of_marks(ranges: &[(u64, u64)], marked: u64) -> Packet {
    let ranges = ranges.to_vec();
    Packet::Ack(Rc::new(Ack { ranges, delay: Duration::ZERO, marked, limit: u64::MAX }))
}

/// A sender without end whose handshake took 100 ms.
fn sender() -> Sender {
    let mut sender = Sender::new(Control::Cubic);
    sender.supply(None);
    sender.open(at(0));
    assert_eq!(sent(&mut sender, at(0)), [Packet::Hello]);
    sender.handle_packet(at(100), &Packet::Answer);
    sender
}

fn sent(sender: &mut Sender, now: Instant) -> Vec<Packet> {
    std::iter::from_fn(|| sender.poll_transmit(now)).collect()
}

/// The numbers and the parts of the packets that leave.
fn parts(sender: &mut Sender, now: Instant) -> Vec<(u64, u64)> {
    let parts = sent(sender, now).into_iter().map(|packet| match packet {
        Packet::Data(data) => (data.number, data.offset / PAYLOAD.get()),
        other => panic!("{other:?} is no data"),
    });
    parts.collect()
}

fn events(sender: &mut Sender) -> Vec<EventKind> {
    std::iter::from_fn(|| sender.poll_event()).collect()
}

/// The time of the sender's next timeout, which is handled.
fn expire(sender: &mut Sender) -> Instant {
    let due = sender.next_timeout().expect("the sender waits for something");
    sender.handle_timeout(due);
    due
}

#[test]
fn a_full_datagram_has_1452_bytes_and_an_acknowledgement_is_short() {
    assert_eq!((data(0, 0).datagram_len(), PAYLOAD.get()), (1_452, 1_419));
    assert_eq!(ack(&[(0, 9)]).datagram_len(), 44);
    assert_eq!(ack(&[(5, 9), (0, 3)]).datagram_len(), 47);
}

#[test]
fn ten_packets_leave_before_the_first_acknowledgement() {
    let mut sender = sender();
    let expected: Vec<(u64, u64)> = (0..10).map(|number| (number, number)).collect();
    assert_eq!(parts(&mut sender, at(100)), expected);
}

#[test]
fn the_window_doubles_in_slow_start() {
    let mut sender = sender();
    parts(&mut sender, at(100));
    sender.handle_packet(at(200), &ack(&[(0, 9)]));
    assert_eq!(sender.figures().cwnd, Segments::new(20));
}

#[test]
fn a_longer_rtt_does_not_end_slow_start() {
    let mut sender = sender();
    let (mut now, mut next) = (at(100), 0);
    for round in 1..6 {
        let mut last = next;
        while sender.figures().packets_out < sender.figures().cwnd {
            let left = parts(&mut sender, now);
            last = left.last().map_or(last, |(number, _)| number + 1);
            if sender.figures().packets_out < sender.figures().cwnd {
                now = expire(&mut sender);
            }
        }
        now += ms(100 + 40 * round);
        for number in next..last {
            sender.handle_packet(now, &ack(&[(number, number)]));
        }
        next = last;
    }
    assert_eq!(sender.figures().ssthresh.get(), INFINITE_SSTHRESH);
    assert_eq!(sender.figures().cwnd, Segments::new(10 << 5));
}

#[test]
fn what_is_lost_leaves_again_with_a_new_number() {
    let mut sender = sender();
    parts(&mut sender, at(100));
    sender.handle_packet(at(200), &ack(&[(1, 3)]));
    // Packet 0 was sent three packets before packet 3. Its part is the first that leaves again.
    assert_eq!(parts(&mut sender, at(200))[0], (10, 0));
    let retransmits =
        events(&mut sender).iter().filter(|event| **event == EventKind::Retransmit).count();
    assert_eq!(retransmits, 1);
}

#[test]
fn two_packets_that_overtake_another_do_not_make_it_lost() {
    let mut sender = sender();
    parts(&mut sender, at(100));
    sender.handle_packet(at(200), &ack(&[(1, 2)]));
    assert!(parts(&mut sender, at(200)).iter().all(|(_, part)| *part >= 10));
}

#[test]
fn a_packet_is_lost_by_time_after_nine_eighths_of_an_rtt() {
    let mut sender = sender();
    parts(&mut sender, at(100));
    sender.handle_packet(at(200), &ack(&[(1, 2)]));
    parts(&mut sender, at(200));
    while sender.figures().congestion_state == CongestionState::Open {
        let due = expire(&mut sender);
        if sender.figures().congestion_state == CongestionState::Open {
            assert!(due < Instant::from_nanos(212_500_000), "{due}");
            parts(&mut sender, due);
        } else {
            assert_eq!(due, Instant::from_nanos(212_500_000), "sent at 100 ms, RTT 100 ms");
        }
    }
}

#[test]
fn losses_of_one_window_reduce_it_once() {
    let mut sender = sender();
    parts(&mut sender, at(100));
    sender.handle_packet(at(200), &ack(&[(1, 3)]));
    let once = sender.figures().ssthresh;
    assert_eq!(once, Segments::new(7), "0.7 of 10 packets");
    sender.handle_packet(at(201), &ack(&[(5, 9), (1, 3)]));
    assert_eq!(sender.figures().ssthresh, once);
    assert_eq!(sender.figures().congestion_state, CongestionState::Recovery);
}

#[test]
fn marks_of_one_window_reduce_it_once_and_nothing_leaves_again() {
    let mut sender = sender();
    parts(&mut sender, at(100));
    sender.handle_packet(at(200), &ack_of_marks(&[(0, 1)], 1));
    assert_eq!(sender.figures().congestion_state, CongestionState::Recovery);
    // 0.7 of 10 packets, though the first acknowledgement also ended the slow start.
    assert_eq!(sender.figures().ssthresh, Segments::new(7));
    let left = parts(&mut sender, at(200));
    sender.handle_packet(at(201), &ack_of_marks(&[(0, 9)], 5));
    assert_eq!(sender.figures().ssthresh, Segments::new(7), "they left before the reduction");
    let last = 9 + left.len() as u64 + parts(&mut sender, at(201)).len() as u64;
    sender.handle_packet(at(301), &ack_of_marks(&[(0, last)], 5));
    assert_eq!(sender.figures().congestion_state, CongestionState::Open, "no new mark");
    let next = parts(&mut sender, at(301)).last().expect("the window is open").0;
    sender.handle_packet(at(401), &ack_of_marks(&[(0, next)], 6));
    assert!(sender.figures().ssthresh < Segments::new(7));
    assert!(!events(&mut sender).contains(&EventKind::Retransmit));
}

#[test]
fn a_recovery_ends_with_a_packet_that_was_sent_in_it() {
    let mut sender = sender();
    parts(&mut sender, at(100));
    sender.handle_packet(at(200), &ack(&[(1, 9)]));
    let (first, _) = parts(&mut sender, at(200))[0];
    assert_eq!((first, sender.figures().congestion_state), (10, CongestionState::Recovery));
    sender.handle_packet(at(300), &ack(&[(1, 10)]));
    assert_eq!(sender.figures().congestion_state, CongestionState::Open);
    assert_eq!(sender.figures().cwnd, Segments::new(7));
}

#[test]
fn a_probe_timeout_sends_two_packets_beyond_the_window_and_backs_off() {
    let mut sender = sender();
    sender.handle_packet(at(100), &Packet::Answer);
    parts(&mut sender, at(100));
    // RTT 100 ms, variation 50 ms, max_ack_delay 25 ms (RFC 9002 section 6.2.1).
    let due = expire(&mut sender);
    assert_eq!(due, at(100 + 100 + 4 * 50 + 25));
    assert_eq!(parts(&mut sender, due), [(10, 10), (11, 11)]);
    assert_eq!(
        sender.figures().cwnd,
        Segments::new(10),
        "a timeout alone is no sign of congestion"
    );
    assert_eq!(expire(&mut sender), due + Duration::from_millis(2 * 325));
}

#[test]
fn a_probe_repeats_the_oldest_part_where_nothing_waits() {
    let mut sender = Sender::new(Control::Reno);
    sender.supply(Some(2 * PAYLOAD.get()));
    sender.close();
    sender.open(at(0));
    sent(&mut sender, at(0));
    sender.handle_packet(at(100), &Packet::Answer);
    assert_eq!(parts(&mut sender, at(100)), [(0, 0), (1, 1)]);
    let due = expire(&mut sender);
    assert_eq!(parts(&mut sender, due), [(2, 0), (3, 0)]);
    sender.handle_packet(at(500), &ack(&[(1, 2)]));
    assert!(sender.is_closed(), "both parts have arrived");
}

#[test]
fn losses_over_three_probe_timeouts_are_persistent_congestion() {
    let mut sender = sender();
    parts(&mut sender, at(100));
    sender.handle_packet(at(200), &ack(&[(0, 9)]));
    let mut last = parts(&mut sender, at(200)).len() as u64 + 9;
    let begun = at(200);
    // Nothing more arrives until the probes of several timeouts have been sent.
    let mut now = begun;
    while now < begun + Duration::from_millis(2_500) {
        now = expire(&mut sender);
        last += parts(&mut sender, now).len() as u64;
    }
    assert_eq!(sender.figures().congestion_state, CongestionState::Open);
    sender.handle_packet(now + ms(100), &ack(&[(last, last)]));
    assert_eq!(
        sender.figures().cwnd.get(),
        2 + 1,
        "the smallest window, and one acknowledged packet"
    );
    assert!(events(&mut sender).contains(&EventKind::Timeout));
}

#[test]
fn losses_in_a_short_time_are_no_persistent_congestion() {
    let mut sender = sender();
    parts(&mut sender, at(100));
    sender.handle_packet(at(200), &ack(&[(0, 9)]));
    let mut last = parts(&mut sender, at(200)).len() as u64 + 9;
    let now = expire(&mut sender);
    last += parts(&mut sender, now).len() as u64;
    sender.handle_packet(at(400), &ack(&[(last, last)]));
    assert!(!events(&mut sender).contains(&EventKind::Timeout));
    assert_eq!(sender.figures().congestion_state, CongestionState::Recovery);
}

#[test]
fn packets_beyond_a_burst_are_paced() {
    let mut sender = sender();
    assert_eq!(parts(&mut sender, at(100)).len(), 10);
    sender.handle_packet(at(200), &ack(&[(0, 9)]));
    // The bucket has filled again: ten of the window's 20 packets.
    assert_eq!(parts(&mut sender, at(200)).len(), 10);
    let due = expire(&mut sender);
    // Ten packets at 1.25 windows of 20 packets per 100 ms.
    assert_eq!(due, at(200 + 40));
    assert_eq!(parts(&mut sender, due).len(), 10);
}

#[test]
fn flow_control_holds_the_sender_until_the_receiver_has_read() {
    let mut sender = sender();
    let mut now = at(100);
    let (mut next, mut parts_sent) = (0, 0);
    for _ in 0..400 {
        let left = parts(&mut sender, now);
        parts_sent += left.len() as u64;
        next = left.last().map_or(next, |(number, _)| number + 1);
        now += ms(10);
        let ranges = vec![(0, next - 1)];
        let held = Ack { ranges, delay: Duration::ZERO, marked: 0, limit: STREAM_WINDOW };
        sender.handle_packet(now, &Packet::Ack(Rc::new(held)));
    }
    assert_eq!(parts_sent, STREAM_WINDOW / PAYLOAD.get());
    sender.handle_packet(now, &ack(&[(0, next - 1)]));
    assert!(!parts(&mut sender, now).is_empty());
}

#[test]
fn every_second_packet_is_acknowledged_at_once() {
    let mut receiver = Receiver::default();
    receiver.handle_packet(at(0), &data(0, 0));
    assert_eq!(receiver.poll_transmit(at(0)), None);
    receiver.handle_packet(at(1), &data(1, 1));
    let Some(Packet::Ack(ack)) = receiver.poll_transmit(at(1)) else {
        panic!("no acknowledgement")
    };
    assert_eq!(ack.ranges, [(0, 1)]);
    assert_eq!(ack.limit, STREAM_WINDOW, "less than an eighth of the window has been read");
}

#[test]
fn a_receiver_raises_the_limit_by_eighths_of_the_window() {
    let mut receiver = Receiver::default();
    let mut limits = BTreeSet::new();
    for number in 0..400 {
        receiver.handle_packet(at(number), &data(number, number));
        if let Some(Packet::Ack(ack)) = receiver.poll_transmit(at(number)) {
            limits.insert(ack.limit);
        }
    }
    // An eighth is 156,250 bytes, which are 110.1 packets; every second packet is acknowledged.
    let step = 112 * PAYLOAD.get();
    let expected: Vec<u64> = (0..4).map(|raised| STREAM_WINDOW + raised * step).collect();
    assert!(limits.into_iter().eq(expected));
}

#[test]
fn one_packet_is_acknowledged_after_25_ms_which_the_acknowledgement_says() {
    let mut receiver = Receiver::default();
    receiver.handle_packet(at(0), &data(0, 0));
    assert_eq!(receiver.next_timeout(), Some(at(25)));
    let Some(Packet::Ack(ack)) = receiver.poll_transmit(at(25)) else {
        panic!("no acknowledgement")
    };
    assert_eq!(ack.delay, ms(25));
}

#[test]
fn a_marked_packet_is_acknowledged_at_once_and_counted_once() {
    let marked = |number| match data(number, number) {
        Packet::Data(data) => Packet::Data(Data { is_marked: true, ..data }),
        other => other,
    };
    let mut receiver = Receiver::default();
    receiver.handle_packet(at(0), &marked(0));
    receiver.handle_packet(at(0), &marked(0));
    let Some(Packet::Ack(ack)) = receiver.poll_transmit(at(0)) else {
        panic!("no acknowledgement")
    };
    assert_eq!((ack.marked, ack.ranges.as_slice()), (1, &[(0, 0)][..]));
    receiver.handle_packet(at(1), &data(1, 1));
    assert_eq!(receiver.poll_transmit(at(1)), None, "it has no mark");
}

#[test]
fn a_packet_out_of_order_is_acknowledged_at_once_with_its_gap() {
    let mut receiver = Receiver::default();
    receiver.handle_packet(at(0), &data(0, 0));
    receiver.poll_transmit(at(25));
    receiver.handle_packet(at(30), &data(2, 2));
    let Some(Packet::Ack(ack)) = receiver.poll_transmit(at(30)) else {
        panic!("no acknowledgement")
    };
    assert_eq!(ack.ranges, [(2, 2), (0, 0)]);
    assert_eq!(receiver.bytes_read(), PAYLOAD.get(), "what is behind a gap is not read");
    receiver.handle_packet(at(31), &data(3, 1));
    assert_eq!(receiver.bytes_read(), 3 * PAYLOAD.get());
}

#[test]
fn a_handshake_without_an_answer_is_repeated_and_given_up_after_30_s() {
    let mut sender = Sender::new(Control::Cubic);
    sender.open(at(0));
    assert_eq!(sent(&mut sender, at(0)), [Packet::Hello]);
    assert_eq!(expire(&mut sender), at(333 + 2 * 333 + 25));
    assert_eq!(sent(&mut sender, at(1_024)), [Packet::Hello]);
    for _ in 0..20 {
        if sender.has_failed() {
            break;
        }
        let now = expire(&mut sender);
        sent(&mut sender, now);
    }
    assert!(sender.has_failed());
    assert_eq!(sender.next_timeout(), None);
}

/// What a path does with a packet.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Lost,
    /// Arrives after this time.
    Arrives(Duration),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        1 => Just(Fate::Lost),
        9 => (5_u64..40).prop_map(|millis| Fate::Arrives(Duration::from_millis(millis))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the path does, all data arrives unless nothing arrives for 30 s, no number is used twice, and the window is kept to.
    #[test]
    fn all_data_arrives_over_a_path_that_loses_and_reorders(
        fates in prop::collection::vec(fate(), 100),
        bytes in 1_u64..400_000,
        reno: bool,
    ) {
        let control = if reno { Control::Reno } else { Control::Cubic };
        let (mut sender, mut receiver) = (Sender::new(control), Receiver::default());
        let mut under_way: VecDeque<(Instant, bool, Packet)> = VecDeque::new();
        let mut numbers = BTreeSet::new();
        let mut fates = fates.into_iter().cycle();
        sender.supply(Some(bytes));
        sender.close();
        sender.open(at(0));
        let (mut now, mut heard) = (at(0), at(0));
        while !sender.is_closed() {
            if sender.has_failed() {
                // A path may lose each of the few packets of a handshake that is tried ever more seldom.
                prop_assert!(now.saturating_since(heard) >= IDLE_TIMEOUT, "given up at {now}");
                return Ok(());
            }
            let mut put = |to_sender: bool, packet: Packet| {
                if let Some(Fate::Arrives(after)) = fates.next() {
                    under_way.push_back((now + after, to_sender, packet));
                }
            };
            while let Some(packet) = sender.poll_transmit(now) {
                if let Packet::Data(data) = &packet {
                    prop_assert!(numbers.insert(data.number), "{} is used twice", data.number);
                }
                put(false, packet);
            }
            while let Some(packet) = receiver.poll_transmit(now) {
                put(true, packet);
            }
            let arrival = under_way.iter().map(|(at, ..)| *at).min();
            let next = [arrival, sender.next_timeout(), receiver.next_timeout()];
            now = next.into_iter().flatten().min().unwrap().max(now);
            if sender.next_timeout().is_some_and(|due| due <= now) {
                sender.handle_timeout(now);
            }
            while let Some(place) = under_way.iter().position(|(at, ..)| *at <= now) {
                let (_, to_sender, packet) = under_way.remove(place).unwrap();
                if to_sender {
                    heard = now;
                    sender.handle_packet(now, &packet);
                } else {
                    receiver.handle_packet(now, &packet);
                }
            }
        }
        prop_assert_eq!(receiver.bytes_read(), bytes);
        prop_assert_eq!(sender.figures().packets_out.get(), sender.figures().in_flight().get());
    }
}
