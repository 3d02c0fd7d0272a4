// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_bbr: BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), with what Linux has beyond the draft:
// compensation for aggregated ACKs (bbr_model.h) and detection of policers (bbr_policer.h). A ceiling limits its
// window, a floor raises it except in Loss (in PROBE_RTT to four segments), and a pacing bound limits its rate.
//
// wakeai_cubic.c lists what a shim defines. This source also needs
//   - struct rate_sample (draft-cheng-iccrg-delivery-rate-estimation) under the kernel's names;
//   - min_rtt_us(sk), the smallest RTT that TCP knows, ~0 where it knows none;
//   - us_to_departure(sk), the time until pacing lets the next segment depart;
//   - random_below(sk, limit).

#include "bounds.h"
#include "pacing.h"
#include "prr.h"
#include "bbr_state.h"
#include "bbr_model.h"
#include "bbr_policer.h"
#include "bbr_window.h"

static __always_inline void bbr_begin_phase(struct sock *sk, u32 phase)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	ca->phase = phase % BBR_CYCLE_PHASES;
	ca->phase_us = tcp_sk(sk)->delivered_mstamp;
}

// Enters PROBE_BW in a random phase other than that of 0.75, so that connections do not probe at the same time.
static __always_inline void bbr_enter_probe_bw(struct sock *sk)
{
	bbr_of(sk)->mode = BBR_PROBE_BW;
	bbr_begin_phase(sk, 2 + random_below(sk, BBR_CYCLE_PHASES - 1));
}

static __always_inline void bbr_leave_probe_rtt(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bbr *ca = bbr_of(sk);

	ca->min_rtt_ms = bbr_now_ms(sk); // the next PROBE_RTT comes 10 s from now
	if (tp->snd_cwnd < ca->prior_cwnd)
		tp->snd_cwnd = ca->prior_cwnd;
	if (ca->full_bw_reached)
		bbr_enter_probe_bw(sk);
	else
		ca->mode = BBR_STARTUP;
}

// Leaves PROBE_RTT once its time is over.
static __always_inline void bbr_check_probe_rtt(struct sock *sk)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	if (ca->probe_rtt_until_ms && comes_after(bbr_now_ms(sk), ca->probe_rtt_until_ms))
		bbr_leave_probe_rtt(sk);
}

// Whether the phase of PROBE_BW is over. A phase takes a smallest RTT. The probing takes longer, until it has put as
// much in flight as it aims at, or lost; at a ceiling it never gets further than the ceiling. The phase of 0.75 ends
// sooner, once the queue of the probing is gone.
static __always_inline u8 bbr_phase_is_over(struct sock *sk, const struct rate_sample *rs,
					    struct wakeai_bounds bounds)
{
	struct wakeai_bbr *ca = bbr_of(sk);
	u32 gain = bbr_pacing_gain(sk), bw = bbr_max_bw(sk);
	u32 lasted_us = (u32)tcp_sk(sk)->delivered_mstamp - ca->phase_us;
	u8 is_long = lasted_us > ca->min_rtt_us;
	u32 flying;

	if (gain == BBR_UNIT)
		return is_long;
	flying = bbr_in_network(sk, rs->prior_in_flight);
	if (gain < BBR_UNIT)
		return is_long || flying <= bbr_inflight(sk, bw, BBR_UNIT);
	return is_long &&
	       (rs->losses || flying >= under_ceiling(bounds, bbr_inflight(sk, bw, gain)));
}

// The bandwidth of the path is found once it has not grown by a quarter in three rounds.
static __always_inline void bbr_check_full_bw(struct sock *sk, u8 limited)
{
	struct wakeai_bbr *ca = bbr_of(sk);
	u32 bw = bbr_max_bw(sk);

	if (ca->full_bw_reached || !ca->round_start || limited)
		return;
	if ((u64)bw * BBR_UNIT >= (u64)ca->full_bw * BBR_FULL_BW_THRESHOLD) {
		ca->full_bw = bw;
		ca->full_bw_rounds = 0;
		return;
	}
	ca->full_bw_rounds++;
	ca->full_bw_reached = ca->full_bw_rounds >= BBR_FULL_BW_ROUNDS;
}

static __always_inline void bbr_check_drain(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bbr *ca = bbr_of(sk);
	u32 drained = bbr_inflight(sk, bbr_max_bw(sk), BBR_UNIT);

	if (ca->mode == BBR_STARTUP && ca->full_bw_reached) {
		ca->mode = BBR_DRAIN;
		tp->snd_ssthresh = drained; // BBR does not use it; it shows that slow start is over
	}
	if (ca->mode == BBR_DRAIN && bbr_in_network(sk, in_flight(tp)) <= drained)
		bbr_enter_probe_bw(sk);
}

// What PROBE_RTT does at an ACK. Once few segments are in flight, it lasts for BBR_PROBE_RTT_MS and a round.
static __always_inline void bbr_in_probe_rtt(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bbr *ca = bbr_of(sk);
	u32 flying = in_flight(tp), until = tp->delivered + flying;

	// The low rate of what is sent now says nothing about the path. Linux marks it in tp->app_limited, which programs
	// may not write before 6.10.
	if (!ca->limited_until)
		ca->limited_from = tp->delivered;
	ca->limited_until = until ? until : 1;
	if (!ca->probe_rtt_until_ms && flying <= BBR_LEAST_CWND) {
		until = bbr_now_ms(sk) + BBR_PROBE_RTT_MS;
		ca->probe_rtt_until_ms = until ? until : 1;
		ca->probe_rtt_round_done = 0;
		ca->round_until = tp->delivered;
	} else if (ca->probe_rtt_until_ms) {
		if (ca->round_start)
			ca->probe_rtt_round_done = 1;
		if (ca->probe_rtt_round_done)
			bbr_check_probe_rtt(sk);
	}
}

// Updates the smallest RTT, and measures it in PROBE_RTT where no sample has confirmed it for 10 s.
static __always_inline void bbr_update_min_rtt(struct sock *sk, const struct rate_sample *rs)
{
	struct wakeai_bbr *ca = bbr_of(sk);
	u8 is_old = comes_after(bbr_now_ms(sk), ca->min_rtt_ms + BBR_MIN_RTT_MS);
	s64 rtt_us = rs->rtt_us;

	if (rtt_us >= 0 && ((u64)rtt_us < ca->min_rtt_us || (is_old && !rs->is_ack_delayed))) {
		ca->min_rtt_us = rtt_us;
		ca->min_rtt_ms = bbr_now_ms(sk);
	}
	if (is_old && !ca->idle_restart && ca->mode != BBR_PROBE_RTT) {
		bbr_save_cwnd(sk);
		ca->mode = BBR_PROBE_RTT;
		ca->probe_rtt_until_ms = 0;
		ca->limited_until = 0;
	}
	if (ca->mode == BBR_PROBE_RTT)
		bbr_in_probe_rtt(sk);
	if (rs->delivered > 0)
		ca->idle_restart = 0;
}

HOOK_BODY void bbr_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bbr *ca = bbr_of(sk);

	*ca = (struct wakeai_bbr){};
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	ca->min_rtt_us = min_rtt_us(sk);
	ca->min_rtt_ms = bbr_now_ms(sk);
	ca->round_until = tp->delivered;
	ca->epoch_us = tp->tcp_mstamp;
	bbr_forget_policer(sk);
	bbr_set_first_rate(sk);
	bbr_pace(sk, BBR_HIGH_GAIN, bounds_of(sk));
	// Without the qdisc fq, TCP paces only where this is set.
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	// As in connection.h, the ceiling applies to the first flight, and the floor does not.
	tp->snd_cwnd = under_ceiling(bounds_of(sk), tp->snd_cwnd);
}

HOOK_BODY void bbr_on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct wakeai_bbr *ca = bbr_of(sk);
	struct wakeai_bounds bounds = bounds_of(sk);
	u8 limited = bbr_is_limited(sk, rs);

	bbr_count_round(sk, rs);
	if (bbr_has_rate(rs) && bbr_watch_policer(sk, rs->losses, limited))
		bbr_enter_probe_bw(sk);
	bbr_update_bw(sk, rs, limited);
	bbr_update_aggregation(sk, rs);
	if (ca->mode == BBR_PROBE_BW && bbr_phase_is_over(sk, rs, bounds))
		bbr_begin_phase(sk, ca->phase + 1);
	bbr_check_full_bw(sk, limited);
	bbr_check_drain(sk);
	bbr_update_min_rtt(sk, rs);
	bbr_pace(sk, bbr_pacing_gain(sk), bounds);
	bbr_grow(sk, rs);
	bbr_hold(sk, bounds);
}

// A loss does not change the threshold, because BBR has none. The window is saved for the end of the recovery.
HOOK_BODY u32 bbr_ssthresh(struct sock *sk)
{
	bbr_save_cwnd(sk);
	return tcp_sk(sk)->snd_ssthresh;
}

// The losses were a mistake, so what was concluded from them is judged anew.
HOOK_BODY u32 bbr_undo_cwnd(struct sock *sk)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	ca->full_bw = 0;
	ca->full_bw_rounds = 0;
	bbr_forget_policer(sk);
	return tcp_sk(sk)->snd_cwnd;
}

// A timeout counts as the start of a round with a loss.
HOOK_BODY void bbr_set_state(struct sock *sk, u8 next)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	if (next != TCP_CA_Loss)
		return;
	ca->prev_state = TCP_CA_Loss;
	ca->full_bw = 0;
	ca->round_start = 1;
	if (bbr_watch_policer(sk, 1, 0))
		bbr_enter_probe_bw(sk);
}

// Called when segments wait to be sent. While nothing is outstanding, no ACK applies bounds that have changed. The
// floor applies from the first ACK on.
HOOK_BODY void bbr_before_sending(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (bbr_of(sk)->raised)
		bbr_pace(sk, bbr_pacing_gain(sk), bounds_of(sk));
	if (!tp->packets_out && tp->max_packets_out)
		bbr_hold(sk, bounds_of(sk));
}

// Called when the first segment after an idle time is sent. The queue is empty then, so the rate is the bandwidth: there
// is nothing to drain, and no need to fill the path faster (section 4.3.4.4 of the draft).
HOOK_BODY void bbr_after_idle(struct sock *sk)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	if (!tcp_sk(sk)->app_limited)
		return;
	ca->idle_restart = 1;
	ca->epoch_us = tcp_sk(sk)->tcp_mstamp;
	ca->epoch_acked = 0;
	if (ca->mode == BBR_PROBE_BW) {
		bbr_pace(sk, BBR_UNIT, bounds_of(sk));
	} else if (ca->mode == BBR_PROBE_RTT) {
		bbr_check_probe_rtt(sk);
		bbr_hold(sk, bounds_of(sk));
	}
}

// The connection changes to another algorithm. As after Linux's BBR, it goes on pacing, at the rate of that algorithm.
HOOK_BODY void bbr_release(struct sock *sk)
{
	(void)sk;
}
