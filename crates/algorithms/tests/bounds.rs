// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Bounds hold whatever happens to a connection.

use proptest::prelude::*;
use wakeai_algorithms::{Cubic, Knobs, State, TcpSock};

/// What may happen to a sender; the numbers are free, so most histories are ones that no real TCP
/// would have.
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

fn state(number: u8) -> State {
    [State::Open, State::Disorder, State::Cwr, State::Recovery, State::Loss][usize::from(number)]
}

proptest! {
    #[test]
    fn every_ack_leaves_the_window_within_its_bounds(
        initial in 1..2000_u32,
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let mut cubic = Cubic::new(TcpSock::new(1448, initial), Knobs::default());
        let mut current = State::Open;
        cubic.is_cwnd_limited = 1;
        for step in steps {
            match step {
                Step::Ack { acked, lost, rtt_us, after_us } => {
                    cubic.tcp_mstamp += after_us;
                    cubic.snd_una = cubic.snd_una.wrapping_add(acked * 1448);
                    cubic.srtt_us = rtt_us.saturating_mul(8);
                    cubic.on_ack(acked, lost, Some(rtt_us));
                    let (floor, ceiling) = (cubic.bound_floor, cubic.bound_ceiling);
                    prop_assert!(ceiling == 0 || cubic.snd_cwnd <= ceiling);
                    let floor = if ceiling == 0 { floor } else { floor.min(ceiling) };
                    prop_assert!(current == State::Loss || cubic.snd_cwnd >= floor);
                    prop_assert!(cubic.snd_cwnd >= 1);
                }
                Step::State(next) => {
                    let next = state(next);
                    if next > State::Disorder && current <= State::Disorder || next == State::Loss {
                        cubic.prior_cwnd = cubic.snd_cwnd;
                        cubic.prr_out = 0;
                        cubic.snd_ssthresh = cubic.ssthresh();
                    }
                    cubic.set_state(next);
                    current = next;
                }
                Step::Undo => cubic.snd_cwnd = cubic.undo_cwnd(),
                Step::Idle(us) => {
                    cubic.tcp_mstamp += us;
                    cubic.after_idle();
                }
                Step::Bound { floor, ceiling } => {
                    cubic.bound_floor = floor;
                    cubic.bound_ceiling = ceiling;
                }
                Step::Flight { out, sacked, lost, retransmitted } => {
                    cubic.packets_out = out.max(sacked + lost);
                    cubic.sacked_out = sacked;
                    cubic.lost_out = lost;
                    cubic.retrans_out = retransmitted.min(lost);
                }
            }
        }
    }
}
