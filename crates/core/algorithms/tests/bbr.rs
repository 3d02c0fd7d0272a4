// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! BBR version 1: its modes and gains, and the bounds of an agent.

use std::collections::VecDeque;

use wakeai_algorithms::{Algorithm, RateSample, TcpSock};
use wakeai_connection::CongestionState;

const MSS: u32 = 1448;
const RTT_US: u32 = 50_000;
/// The bandwidth of the path in most tests, in segments per second: 100 segments per RTT.
const BANDWIDTH: u64 = 2_000;
const BDP: u32 = 100;
/// The bursts of a pacing rate near [`BANDWIDTH`], three times in every target: 2 segments each.
const BURSTS: u32 = 6;

/// A sender that fills its window. Each segment is acknowledged by an ACK of its own.
struct Flow {
    tcp: Algorithm,
    /// The count of delivered segments when each segment in flight was sent.
    flight: VecDeque<u32>,
    /// Whether the application limits what is sent.
    limited: bool,
    /// Whether nothing is sent.
    silent: bool,
}

impl Flow {
    /// A connection that has just been established.
    fn new() -> Self {
        let mut sock = TcpSock::new(MSS, 10);
        (sock.srtt_us, sock.rtt_min_us) = (8 * RTT_US, RTT_US);
        let (tcp, flight) = (Algorithm::bbr(sock), VecDeque::new());
        let mut flow = Self { tcp, flight, limited: false, silent: false };
        flow.fill();
        flow
    }

    /// A connection that has just entered `DRAIN`, with a bandwidth of 1500 segments per second.
    fn draining() -> Self {
        let mut flow = Self::new();
        for bandwidth in [1_000, 1_251, 1_500, 1_500] {
            flow.round(RTT_US, bandwidth);
            assert!(flow.gain(bandwidth) > 2.8, "{}", flow.gain(bandwidth));
        }
        flow.ack(100, RTT_US, 1_500, 0);
        flow
    }

    /// A connection in `PROBE_BW`, at the end of the first phase with the gain 1.25 that comes.
    fn probing() -> Self {
        let mut flow = Self::new();
        let mut probes = false;
        for _ in 0..3_000 {
            flow.ack(1_000_000 / BANDWIDTH, RTT_US, BANDWIDTH, 0);
            let probed = probes;
            probes = flow.tcp.snd_cwnd > 2 * BDP && (1.2..1.3).contains(&flow.gain(BANDWIDTH));
            if probed && !probes {
                return flow;
            }
        }
        panic!("it never probes: {}", flow.gain(BANDWIDTH));
    }

    fn fill(&mut self) {
        while !self.silent && self.flight.len() < self.tcp.snd_cwnd as usize {
            self.flight.push_back(self.tcp.delivered);
            self.tcp.snd_nxt = self.tcp.snd_nxt.wrapping_add(MSS);
        }
        self.tcp.packets_out = self.flight.len() as u32;
        self.tcp.max_packets_out = self.tcp.packets_out;
    }

    /// Acknowledges a segment after `after_us`; the sample has a rate of `bandwidth` segments per second.
    fn ack(&mut self, after_us: u64, rtt_us: u32, bandwidth: u64, losses: u32) {
        let prior_in_flight = self.tcp.packets_out;
        let tcp = &mut self.tcp;
        tcp.tcp_mstamp += after_us;
        tcp.delivered_mstamp = tcp.tcp_mstamp;
        tcp.snd_una = tcp.snd_una.wrapping_add(MSS);
        tcp.delivered += 1;
        tcp.lost += losses;
        let mut sample = RateSample::without_rate(1, losses, Some(rtt_us));
        sample.prior_delivered = self.flight.pop_front().expect("something is in flight");
        // The rate over a second, because it is in whole segments.
        (sample.delivered, sample.interval_us) = (bandwidth as i32, 1_000_000);
        sample.prior_in_flight = prior_in_flight;
        sample.is_app_limited = u32::from(self.limited);
        tcp.packets_out = self.flight.len() as u32;
        tcp.on_rate_sample(&sample);
        self.fill();
    }

    /// Acknowledges what is in flight, at the bandwidth.
    fn round(&mut self, rtt_us: u32, bandwidth: u64) {
        for _ in 0..self.flight.len() {
            self.ack(1_000_000 / bandwidth, rtt_us, bandwidth, 0);
        }
    }

    /// The pacing rate as a multiple of a bandwidth, without the margin of 1 %.
    fn gain(&self, bandwidth: u64) -> f64 {
        self.tcp.sk_pacing_rate as f64 / (bandwidth * u64::from(MSS)) as f64 / 0.99
    }

    /// The gains through which it goes in `acks` ACKs at the bandwidth, in 1/100, with the duration of each in ms.
    fn gains(&mut self, acks: u32, bandwidth: u64) -> Vec<(u32, u64)> {
        let mut gains = vec![(0, self.tcp.tcp_mstamp)];
        for _ in 0..acks {
            self.ack(1_000_000 / bandwidth, RTT_US, bandwidth, 0);
            let gain = (self.gain(bandwidth) * 100.0).round() as u32;
            if gains.last().is_some_and(|last| last.0 != gain) {
                gains.push((gain, self.tcp.tcp_mstamp));
            }
        }
        let of = |pair: &[(u32, u64)]| (pair[0].0, (pair[1].1 - pair[0].1) / 1_000);
        gains.windows(2).map(of).collect()
    }

    fn set_state(&mut self, next: CongestionState) {
        if next > CongestionState::Disorder {
            self.tcp.snd_ssthresh = self.tcp.ssthresh();
        }
        self.tcp.set_state(next);
    }

    /// Rounds until `PROBE_RTT` begins, whose window is 4.
    fn until_probe_rtt(&mut self) {
        let begin = self.tcp.tcp_mstamp;
        while self.tcp.snd_cwnd > 4 {
            // The queue is never empty, so no sample confirms the smallest RTT.
            self.ack(500, RTT_US + 1_000, BANDWIDTH, 0);
            assert!(self.tcp.tcp_mstamp < begin + 11_000_000, "no PROBE_RTT in 11 s");
        }
    }
}

#[test]
fn it_paces_by_itself_at_first_by_the_window_and_the_rtt() {
    let flow = Flow::new();
    assert_eq!(flow.tcp.sk_pacing_status, 1);
    assert!(flow.tcp.needs_rate());
    // 10 segments per 50 ms, times 2 / ln 2.
    assert!((flow.gain(200) - 2.0 / 2_f64.ln()).abs() < 0.01, "{}", flow.gain(200));
}

#[test]
fn startup_doubles_the_window_per_round_while_the_bandwidth_grows() {
    let mut flow = Flow::new();
    for bandwidth in [200, 400, 800, 1_600] {
        let before = flow.tcp.snd_cwnd;
        flow.round(RTT_US, bandwidth);
        assert_eq!(flow.tcp.snd_cwnd, 2 * before);
        assert!((flow.gain(bandwidth) - 2.885).abs() < 0.01, "{}", flow.gain(bandwidth));
    }
}

#[test]
fn startup_ends_after_three_rounds_in_which_the_bandwidth_has_not_grown_by_a_quarter() {
    // From 1251 on it does not grow by a quarter any more: in the rounds of 1500, and in one that has begun.
    let flow = Flow::draining();
    assert!((flow.gain(1_500) - 2_f64.ln() / 2.0).abs() < 0.01, "{}", flow.gain(1_500));
}

#[test]
fn samples_that_the_application_limits_end_no_startup_and_lower_no_bandwidth() {
    let mut flow = Flow::new();
    flow.limited = true;
    for _ in 0..8 {
        flow.round(RTT_US, 1_000);
    }
    assert!(flow.gain(1_000) > 2.8);
    let mut flow = Flow::probing();
    flow.limited = true;
    for _ in 0..30 {
        flow.round(RTT_US, BANDWIDTH / 10);
    }
    assert!(flow.gain(BANDWIDTH) > 0.7, "{}", flow.gain(BANDWIDTH));
    flow.round(RTT_US, 2 * BANDWIDTH); // a larger one counts
    assert!(flow.gain(BANDWIDTH) > 1.4);
}

#[test]
fn drain_ends_once_no_more_is_in_flight_than_the_path_holds() {
    let mut flow = Flow::draining();
    flow.silent = true;
    // 75 segments and three bursts, as an even number.
    let drained = 75 + BURSTS + 1;
    while flow.tcp.packets_out > drained {
        assert!((flow.gain(1_500) - 0.344).abs() < 0.01, "{}", flow.gain(1_500));
        flow.ack(100, RTT_US, 1_500, 0);
    }
    assert!(flow.gain(1_500) > 0.7, "{}", flow.gain(1_500));
}

#[test]
fn probe_bw_cycles_through_eight_phases() {
    let mut flow = Flow::probing();
    let gains = flow.gains(3_000, BANDWIDTH);
    let at = gains.iter().position(|(gain, _)| *gain == 125).expect("it probes");
    let cycle = &gains[at..at + 6];
    assert_eq!(cycle.iter().map(|of| of.0).collect::<Vec<_>>(), [125, 75, 100, 125, 75, 100]);
    // Each phase takes an RTT of 50 ms, up to the next ACK.
    for (gain, lasted_ms) in cycle {
        let phases = if *gain == 100 { 6 } else { 1 };
        assert!((50 * phases..=51 * phases).contains(lasted_ms), "{gains:?}");
    }
}

#[test]
fn connections_enter_probe_bw_in_seven_of_the_eight_phases() {
    let mut first = [0; 126];
    for seed in 0..200 {
        let mut flow = Flow::new();
        flow.tcp.tcp_mstamp += 1_000 * seed;
        while flow.tcp.delivered < 200 || flow.gain(BANDWIDTH) > 2.0 || flow.gain(BANDWIDTH) < 0.5 {
            flow.round(RTT_US, BANDWIDTH);
        }
        first[(flow.gain(BANDWIDTH) * 100.0).round() as usize] += 1;
    }
    // A phase may be over by the end of the round in which it begins.
    assert!(first[100] > 100 && first[125] > 10, "{} and {}", first[100], first[125]);
}

#[test]
fn the_window_is_twice_what_the_path_holds() {
    let mut flow = Flow::probing();
    for _ in 0..20 {
        flow.round(RTT_US, BANDWIDTH);
        let extra = if flow.gain(BANDWIDTH) > 1.2 { 2 } else { 0 };
        // One or two segments arrive ahead of the bandwidth, which counts as aggregation.
        let least = 2 * BDP + BURSTS;
        assert!((least..=least + extra + 2).contains(&flow.tcp.snd_cwnd), "{}", flow.tcp.snd_cwnd);
    }
}

#[test]
fn aggregated_acks_enlarge_the_window_by_what_they_bring_beyond_the_bandwidth() {
    let settle = |burst: u64| {
        let mut flow = Flow::probing();
        for _ in 0..60 * u64::from(BDP) / burst {
            for nth in 0..burst {
                // A burst of ACKs in the time that the bandwidth takes for as many segments.
                let after_us = if nth == 0 { burst * 1_000_000 / BANDWIDTH } else { 0 };
                flow.ack(after_us, RTT_US, BANDWIDTH, 0);
            }
        }
        flow.tcp.snd_cwnd
    };
    let (single, aggregated) = (settle(1), settle(40));
    assert!((30..=44).contains(&(aggregated - single)), "{single} and {aggregated}");
}

#[test]
fn the_bandwidth_is_the_largest_of_the_last_ten_rounds() {
    let mut flow = Flow::probing();
    for _ in 0..9 {
        flow.round(RTT_US, BANDWIDTH / 2);
    }
    assert!(flow.gain(BANDWIDTH) > 0.7, "after nine rounds: {}", flow.gain(BANDWIDTH));
    for _ in 0..4 {
        flow.round(RTT_US, BANDWIDTH / 2);
    }
    assert!(flow.gain(BANDWIDTH / 2) < 1.3, "after thirteen: {}", flow.gain(BANDWIDTH / 2));
}

#[test]
fn probe_rtt_holds_four_segments_for_200_ms_and_a_round_and_restores_the_window() {
    let mut flow = Flow::probing();
    let before = flow.tcp.snd_cwnd;
    flow.until_probe_rtt();
    while flow.tcp.packets_out > 4 {
        flow.ack(500, RTT_US, BANDWIDTH, 0);
    }
    let begin = flow.tcp.tcp_mstamp;
    while flow.tcp.snd_cwnd == 4 {
        flow.ack(12_500, RTT_US, BANDWIDTH / 10, 0);
    }
    let lasted_ms = (flow.tcp.tcp_mstamp - begin) / 1_000;
    assert!((200..=226).contains(&lasted_ms), "{lasted_ms} ms");
    assert!(flow.tcp.snd_cwnd + 8 >= before, "{before} and {}", flow.tcp.snd_cwnd);
    // Another ten seconds begin.
    flow.until_probe_rtt();
    assert!(flow.tcp.tcp_mstamp > begin + 10_000_000);
}

#[test]
fn probe_rtt_forgets_no_bandwidth_however_many_rounds_it_takes() {
    let mut flow = Flow::probing();
    flow.until_probe_rtt();
    while flow.tcp.packets_out > 4 {
        flow.ack(500, RTT_US, BANDWIDTH, 0);
    }
    // 100 rounds of 2 ms, with a tenth of the bandwidth.
    while flow.tcp.snd_cwnd == 4 {
        flow.ack(500, 2_000, BANDWIDTH / 10, 0);
    }
    assert!(flow.gain(BANDWIDTH) > 0.7, "{}", flow.gain(BANDWIDTH));
    // Samples of what is sent afterwards count.
    for _ in 0..14 {
        flow.round(2_000, BANDWIDTH / 10);
    }
    assert!(flow.gain(BANDWIDTH) < 0.2, "{}", flow.gain(BANDWIDTH));
}

#[test]
fn a_smaller_rtt_puts_probe_rtt_off_and_an_equal_one_does_not() {
    for (shrinks, probes) in [(1, false), (0, true)] {
        let mut flow = Flow::probing();
        let mut found = false;
        for second in 0..15 {
            let rtt_us = RTT_US - 1 - shrinks * second;
            for _ in 0..20 {
                flow.round(rtt_us, BANDWIDTH);
                found |= flow.tcp.snd_cwnd == 4;
            }
        }
        assert_eq!(found, probes);
    }
}

#[test]
fn a_recovery_conserves_packets_for_a_round_and_restores_the_window() {
    let mut flow = Flow::probing();
    let (before, out) = (flow.tcp.snd_cwnd, flow.tcp.packets_out);
    flow.set_state(CongestionState::Recovery);
    (flow.tcp.sacked_out, flow.tcp.lost_out) = (20, 20);
    let sent_before = flow.tcp.delivered;
    flow.ack(500, RTT_US, BANDWIDTH, 20);
    // One ACK, one segment.
    assert_eq!(flow.tcp.snd_cwnd, out - 40);
    while flow.flight[0] <= sent_before {
        let conserved = flow.tcp.snd_cwnd;
        flow.ack(500, RTT_US, BANDWIDTH, 0);
        assert!(flow.tcp.snd_cwnd <= conserved + 1, "{conserved} and {}", flow.tcp.snd_cwnd);
    }
    (flow.tcp.sacked_out, flow.tcp.lost_out) = (0, 0);
    flow.set_state(CongestionState::Open);
    flow.ack(500, RTT_US, BANDWIDTH, 0);
    assert!(flow.tcp.snd_cwnd + 8 >= before, "{before} and {}", flow.tcp.snd_cwnd);
}

#[test]
fn a_loss_leaves_rate_and_threshold() {
    let mut flow = Flow::probing();
    let (rate, threshold) = (flow.tcp.sk_pacing_rate, flow.tcp.snd_ssthresh);
    flow.set_state(CongestionState::Recovery);
    assert_eq!(flow.tcp.snd_ssthresh, threshold);
    flow.ack(0, RTT_US, BANDWIDTH, 1);
    assert_eq!(flow.tcp.sk_pacing_rate, rate);
}

#[test]
fn an_undone_reduction_looks_for_the_full_bandwidth_again() {
    let mut flow = Flow::new();
    for _ in 0..3 {
        flow.round(RTT_US, BANDWIDTH);
    }
    flow.tcp.snd_cwnd = flow.tcp.undo_cwnd();
    for _ in 0..3 {
        flow.round(RTT_US, BANDWIDTH);
        assert!(flow.gain(BANDWIDTH) > 2.8);
    }
    flow.ack(100, RTT_US, BANDWIDTH, 0);
    assert!(flow.gain(BANDWIDTH) < 0.4);
}

#[test]
fn a_policer_is_paced_at_its_rate_for_48_rounds() {
    let mut flow = Flow::probing();
    let policed = 400;
    let mut seen = 0;
    for nth in 0..200_u32 {
        // A fifth is lost, while single samples still show the bandwidth of the tokens.
        for ack in 0..20 {
            flow.ack(50_000 / 20, RTT_US, BANDWIDTH, u32::from(ack % 4 == 0));
            let out = flow.flight.len().min(20);
            flow.flight.truncate(out);
        }
        let gain = flow.gain(policed);
        if (0.98..1.02).contains(&gain) {
            seen += 1;
        } else if seen > 0 {
            break;
        }
        assert!(nth < 199, "never found or never forgotten: {seen}");
    }
    assert!((40..=60).contains(&seen), "{seen} rounds");
}

#[test]
fn after_an_idle_time_the_rate_is_the_bandwidth() {
    let mut flow = Flow::probing();
    assert!(flow.gain(BANDWIDTH) < 0.8);
    flow.tcp.tcp_mstamp += 1_000_000;
    flow.tcp.app_limited = 1;
    flow.tcp.after_idle();
    assert!((flow.gain(BANDWIDTH) - 1.0).abs() < 0.01, "{}", flow.gain(BANDWIDTH));
}

#[test]
fn a_ceiling_limits_the_window_and_probing_at_it_comes_to_an_end() {
    let mut flow = Flow::probing();
    flow.tcp.bound_ceiling = 20;
    for _ in 0..600 {
        flow.ack(2_500, RTT_US, 400, 0);
        assert!(flow.tcp.snd_cwnd <= 20);
    }
    let gains = flow.gains(1_000, 400);
    assert!(
        gains.iter().filter(|(gain, lasted_ms)| *gain == 125 && *lasted_ms < 60).count() > 3,
        "{gains:?}"
    );
}

#[test]
fn a_floor_raises_the_window_but_not_in_probe_rtt_and_not_in_loss() {
    let mut flow = Flow::probing();
    flow.tcp.bound_floor = 500;
    flow.ack(500, RTT_US, BANDWIDTH, 0);
    assert_eq!(flow.tcp.snd_cwnd, 500);
    flow.set_state(CongestionState::Loss);
    flow.tcp.snd_cwnd = 1;
    flow.tcp.lost_out = flow.tcp.packets_out - 1;
    flow.ack(500, RTT_US, BANDWIDTH, 0);
    assert!(flow.tcp.snd_cwnd < 500, "{}", flow.tcp.snd_cwnd);
    flow.tcp.lost_out = 0;
    flow.set_state(CongestionState::Open);
    flow.ack(500, RTT_US, BANDWIDTH, 0);
    assert_eq!(flow.tcp.snd_cwnd, 500);
    flow.until_probe_rtt();
    assert_eq!(flow.tcp.snd_cwnd, 4);
}

#[test]
fn a_pacing_bound_limits_the_rate_in_every_mode() {
    let bound = 100_000;
    let mut flow = Flow::new();
    flow.tcp.bound_pacing = bound;
    for _ in 0..30 {
        flow.round(RTT_US, BANDWIDTH);
        assert!(flow.tcp.sk_pacing_rate <= bound);
    }
    flow.tcp.bound_pacing = 0;
    flow.round(RTT_US, BANDWIDTH);
    assert!(flow.gain(BANDWIDTH) > 0.7);
    // That of the application, too.
    flow.tcp.sk_max_pacing_rate = bound;
    flow.round(RTT_US, BANDWIDTH);
    assert_eq!(flow.tcp.sk_pacing_rate, bound);
}

#[test]
fn a_connection_that_starts_under_bounds_starts_within_them() {
    let mut sock = TcpSock::new(MSS, 40);
    sock.srtt_us = 8 * RTT_US;
    (sock.bound_ceiling, sock.bound_floor, sock.bound_pacing) = (20, 15, 50_000);
    let tcp = Algorithm::bbr(sock);
    assert_eq!((tcp.snd_cwnd, tcp.sk_pacing_rate), (20, 50_000));
}

#[test]
fn a_held_window_is_sent_faster_than_bbr_would_and_in_the_bursts_that_the_agent_sets() {
    let mut flow = Flow::probing();
    flow.tcp.srtt_us = 8 * RTT_US;
    let own = |flow: &mut Flow| {
        flow.ack(500, RTT_US, BANDWIDTH, 0);
        flow.tcp.sk_pacing_rate
    };
    let before = own(&mut flow);
    assert!(before < BANDWIDTH * u64::from(MSS));
    // 1.2 windows of 150 segments per 50 ms, at a ceiling and at a floor.
    let held = 150 * u64::from(MSS) * 20 * 12 / 10;
    (flow.tcp.bound_floor, flow.tcp.bound_ceiling) = (150, 150);
    own(&mut flow);
    assert_eq!(own(&mut flow), held);
    flow.tcp.bound_ceiling = 0;
    assert_eq!(own(&mut flow), held);
    flow.tcp.bound_floor = 0;
    assert!(own(&mut flow) < BANDWIDTH * u64::from(MSS) * 13 / 10);
    // 43 packets of 1500 bytes wait in the host's queue of 1/1024 s.
    (flow.tcp.bound_ceiling, flow.tcp.bound_small_queue) = (150, 65_535);
    own(&mut flow);
    assert_eq!(own(&mut flow), (43 * 1500 - 1) << 10);
    // It ends with its bounds even without an ACK, and never passes the bounds of rates.
    (flow.tcp.bound_ceiling, flow.tcp.bound_small_queue) = (0, 0);
    flow.tcp.before_sending();
    assert!(flow.tcp.sk_pacing_rate < BANDWIDTH * u64::from(MSS) * 13 / 10);
    (flow.tcp.bound_ceiling, flow.tcp.bound_small_queue) = (150, 65_535);
    flow.tcp.bound_pacing = 70_000;
    assert_eq!(own(&mut flow), 70_000);
}

#[test]
fn the_rate_of_a_held_window_ends_with_its_bounds_in_startup_too() {
    let mut flow = Flow::new();
    flow.round(RTT_US, 200);
    (flow.tcp.bound_ceiling, flow.tcp.bound_small_queue) = (10, 65_535);
    for _ in 0..2 {
        flow.ack(5_000, RTT_US, 200, 0);
    }
    assert!(flow.gain(200) > 100.0);
    (flow.tcp.bound_ceiling, flow.tcp.bound_small_queue) = (0, 0);
    flow.ack(5_000, RTT_US, 200, 0);
    assert!((flow.gain(200) - 2.885).abs() < 0.01, "{}", flow.gain(200));
}
