// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The window stays within its bounds in every state of a connection, except that no floor applies
//! in Loss, and none above four segments in `PROBE_RTT` of BBR.

use proptest::prelude::*;
use wakeai_algorithms::{Algorithm, Knobs, TcpSock};
use wakeai_connection::CongestionState;

/// The window of BBR in `PROBE_RTT`.
const PROBE_RTT_WINDOW: u32 = 4;

/// An event of a sender. Its numbers are random, so most sequences of events cannot occur in a real TCP.
#[derive(Clone, Copy, Debug)]
enum Step {
    Ack { acked: u32, lost: u32, rtt_us: u32, after_us: u64 },
    State(u8),
    Undo,
    Idle(u64),
    Bound { floor: u32, ceiling: u32 },
    Flight { out: u32, sacked: u32, lost: u32, retransmitted: u32 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..100_u32, 0..3_u32, 0..3_000_000_u32, 0..2_000_000_u64).prop_map(
            |(acked, lost, rtt_us, after_us)| Step::Ack { acked, lost, rtt_us, after_us }
        ),
        2 => (0..5_u8).prop_map(Step::State),
        1 => Just(Step::Undo),
        1 => (0..100_000_000_u64).prop_map(Step::Idle),
        1 => (0..500_u32, 0..500_u32).prop_map(|(floor, ceiling)| Step::Bound { floor, ceiling }),
        1 => (0..2000_u32, 0..100_u32, 0..100_u32, 0..100_u32).prop_map(
            |(out, sacked, lost, retransmitted)| Step::Flight { out, sacked, lost, retransmitted }
        ),
    ]
}

proptest! {
    #[test]
    fn every_ack_leaves_the_window_within_its_bounds(
        which in 0..6_u8,
        target_rate in prop_oneof![Just(0), 1..1_000_000_000_u64, Just(u64::MAX)],
        initial in 1..2000_u32,
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let sock = TcpSock::new(1448, initial);
        let mut tcp = match which {
            0 => Algorithm::cubic(sock, Knobs::default()),
            1 => Algorithm::cubic(sock, Knobs::rtt_fair()),
            2 => Algorithm::reno(sock),
            3 => Algorithm::av(sock),
            4 => Algorithm::bbr(sock),
            _ => Algorithm::compound(sock),
        };
        tcp.target_rate = target_rate;
        let mut current = CongestionState::Open;
        tcp.is_cwnd_limited = 1;
        for step in steps {
            match step {
                Step::Ack { acked, lost, rtt_us, after_us } => {
                    tcp.tcp_mstamp += after_us;
                    tcp.snd_una = tcp.snd_una.wrapping_add(acked * 1448);
                    tcp.srtt_us = rtt_us.saturating_mul(8);
                    tcp.on_ack(acked, lost, Some(rtt_us));
                    let (floor, ceiling) = (tcp.bound_floor, tcp.bound_ceiling);
                    prop_assert!(ceiling == 0 || tcp.snd_cwnd <= ceiling);
                    let floor = if ceiling == 0 { floor } else { floor.min(ceiling) };
                    let probes_rtt = which == 4 && tcp.snd_cwnd == PROBE_RTT_WINDOW;
                    let is_free = current == CongestionState::Loss || probes_rtt;
                    prop_assert!(is_free || tcp.snd_cwnd >= floor);
                    prop_assert!(tcp.snd_cwnd >= 1);
                }
                Step::State(next) => {
                    let next = CongestionState::from_number(next);
                    if next > CongestionState::Disorder && current <= CongestionState::Disorder || next == CongestionState::Loss {
                        tcp.prior_cwnd = tcp.snd_cwnd;
                        tcp.prr_out = 0;
                        tcp.snd_ssthresh = tcp.ssthresh();
                    }
                    tcp.set_state(next);
                    current = next;
                }
                Step::Undo => tcp.snd_cwnd = tcp.undo_cwnd(),
                Step::Idle(us) => {
                    tcp.tcp_mstamp += us;
                    tcp.before_sending();
                    if tcp.packets_out == 0 && tcp.max_packets_out > 0 && current != CongestionState::Loss {
                        let ceiling = if tcp.bound_ceiling == 0 { u32::MAX } else { tcp.bound_ceiling };
                        let floor = tcp.bound_floor.min(ceiling);
                        let probes_rtt = which == 4 && tcp.snd_cwnd == PROBE_RTT_WINDOW;
                        prop_assert!(probes_rtt || (floor..=ceiling).contains(&tcp.snd_cwnd));
                    }
                    tcp.after_idle();
                    tcp.last_sent_us = tcp.tcp_mstamp;
                }
                Step::Bound { floor, ceiling } => {
                    tcp.bound_floor = floor;
                    tcp.bound_ceiling = ceiling;
                }
                Step::Flight { out, sacked, lost, retransmitted } => {
                    tcp.packets_out = out.max(sacked + lost);
                    tcp.max_packets_out = tcp.max_packets_out.max(tcp.packets_out);
                    tcp.sacked_out = sacked;
                    tcp.lost_out = lost;
                    tcp.retrans_out = retransmitted.min(lost);
                }
            }
        }
    }
}
