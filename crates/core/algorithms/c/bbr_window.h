// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// BBR's outputs: the pacing rate, the window, and the amounts in flight by which the modes change. Bounds limit both.

#ifndef WAKEAI_BBR_WINDOW_H
#define WAKEAI_BBR_WINDOW_H

static __always_inline u32 bbr_pacing_gain(struct sock *sk)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	if (ca->mode == BBR_STARTUP)
		return BBR_HIGH_GAIN;
	if (ca->mode == BBR_DRAIN)
		return BBR_DRAIN_GAIN;
	if (ca->mode == BBR_PROBE_RTT || ca->uses_policed_bw || ca->phase > 1)
		return BBR_UNIT;
	return ca->phase == BBR_PROBING ? BBR_UNIT * 5 / 4 : BBR_UNIT * 3 / 4;
}

static __always_inline u32 bbr_cwnd_gain(struct sock *sk)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	if (ca->mode == BBR_STARTUP || ca->mode == BBR_DRAIN)
		return BBR_HIGH_GAIN;
	return ca->mode == BBR_PROBE_BW ? BBR_CWND_GAIN : BBR_UNIT;
}

// A bandwidth times a gain, less the margin, in bytes per second; at most the application's limit.
static __always_inline u64 bbr_rate(struct sock *sk, u32 bw, u32 gain)
{
	u64 rate = ((u64)bw * tcp_sk(sk)->mss_cache) * gain / BBR_UNIT;

	rate = (rate * (1000000 / 100 * (100 - BBR_PACING_MARGIN_PERCENT))) / BBR_BW_UNIT;
	return rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

// The rate before the first bandwidth: that of the window per RTT.
static __always_inline void bbr_set_first_rate(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt_us = tp->srtt_us >> 3;
	u64 bw;

	if (tp->srtt_us)
		bbr_of(sk)->has_seen_rtt = 1;
	else
		rtt_us = BBR_UNKNOWN_RTT_US;
	bw = (u64)tp->snd_cwnd * BBR_BW_UNIT / (rtt_us ? rtt_us : 1);
	sk->sk_pacing_rate = bbr_rate(sk, bw < ~0u ? bw : ~0u, BBR_HIGH_GAIN);
}

// The rate that a held window asks for. A window is held where it is at its ceiling, or at a floor. It is sent at 1.2
// windows per RTT, as Linux paces CUBIC. At a lower rate the window would not be in flight, and BBR would go on measuring
// its own rate instead of the path's. Where the agent sets a share of the host's queue, the window is sent in bursts of
// that size, as those of the other algorithms are: paced segments never fill an aggregate.
static __always_inline u64 bbr_held_rate(struct sock *sk, struct wakeai_bounds bounds)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u8 is_full = at_ceiling(bounds, tp->snd_cwnd);
	u32 held = is_full ? bounds.ceiling : under_ceiling(bounds, bounds.floor);
	u64 rate, burst;

	if (!held || !tp->srtt_us || bbr_of(sk)->mode == BBR_PROBE_RTT || ca_state(sk) == TCP_CA_Loss)
		return 0;
	rate = (u64)tp->mss_cache * held * PACING_PERCENT * 80000 / tp->srtt_us;
	burst = is_full ? small_queue_rate(sk, bounds.small_queue) : 0;
	if (rate < burst)
		rate = burst;
	return rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

// Sets the pacing rate. Until the bandwidth of the path is found, BBR's own rate only rises. A held window raises what is
// set, and a pacing bound limits it.
static __always_inline void bbr_pace(struct sock *sk, u32 gain, struct wakeai_bounds bounds)
{
	struct wakeai_bbr *ca = bbr_of(sk);
	u64 held = bbr_held_rate(sk, bounds);
	u64 rate = bbr_rate(sk, bbr_bw(sk), gain);

	if ((!ca->has_seen_rtt && tcp_sk(sk)->srtt_us) || (ca->raised && !rate))
		bbr_set_first_rate(sk);
	if (ca->full_bw_reached || ca->raised || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = rate ? rate : sk->sk_pacing_rate;
	ca->raised = sk->sk_pacing_rate < held;
	if (ca->raised)
		sk->sk_pacing_rate = held;
	if (bounds.pacing && sk->sk_pacing_rate > bounds.pacing)
		sk->sk_pacing_rate = bounds.pacing;
}

// The largest burst that the kernel may make, and the bytes of its headers.
#define BBR_LARGEST_BURST (65536 - 1 - 320)

// The smallest burst that Linux makes of the segments that wait, in segments.
static __always_inline u32 bbr_least_burst(struct sock *sk)
{
	return sk->sk_pacing_rate < BBR_LEAST_BURST_RATE ? 1 : 2;
}

// The burst that the kernel makes at this pacing rate, in segments.
static __always_inline u32 bbr_burst(struct sock *sk)
{
	u32 mss = tcp_sk(sk)->mss_cache;
	u64 bytes = sk->sk_pacing_rate >> small_queue_shift(sk);
	u32 least = bbr_least_burst(sk);
	u32 burst;

	if (bytes > BBR_LARGEST_BURST)
		bytes = BBR_LARGEST_BURST;
	burst = (u32)bytes / (mss ? mss : 1);
	if (burst < least)
		burst = least;
	return burst < 127 ? burst : 127;
}

// The bandwidth-delay product times a gain, in segments, rounded up.
static __always_inline u32 bbr_bdp(struct sock *sk, u32 bw, u32 gain)
{
	struct wakeai_bbr *ca = bbr_of(sk);
	u64 bdp;

	if (ca->min_rtt_us == ~0u)
		return 10; // the initial window of RFC 6928
	bdp = (u64)bw * ca->min_rtt_us * gain / BBR_UNIT;
	bdp = (bdp + BBR_BW_UNIT - 1) / BBR_BW_UNIT;
	return bdp < 0x7fffffff ? bdp : 0x7fffffff;
}

// Adds what is in bursts on its way in the two hosts, and makes the window even, so that delayed ACKs do not wait.
static __always_inline u32 bbr_with_bursts(struct sock *sk, u32 cwnd)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	cwnd = (cwnd + 3 * bbr_burst(sk) + 1) & ~1u;
	// The probing of a small window needs more than its quarter.
	if (ca->mode == BBR_PROBE_BW && ca->phase == BBR_PROBING)
		cwnd += 2;
	return cwnd;
}

// The amount in flight that a gain aims at.
static __always_inline u32 bbr_inflight(struct sock *sk, u32 bw, u32 gain)
{
	return bbr_with_bursts(sk, bbr_bdp(sk, bw, gain));
}

// The segments that will be in the network when the next segment departs by its pacing.
static __always_inline u32 bbr_in_network(struct sock *sk, u32 flying)
{
	u64 delivered = bbr_segments_in(bbr_max_bw(sk), us_to_departure(sk));

	if (bbr_pacing_gain(sk) > BBR_UNIT)
		flying += bbr_burst(sk);
	return delivered < flying ? flying - delivered : 0;
}

static __always_inline void bbr_save_cwnd(struct sock *sk)
{
	struct wakeai_bbr *ca = bbr_of(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if ((ca->prev_state < TCP_CA_Recovery && ca->mode != BBR_PROBE_RTT) || cwnd > ca->prior_cwnd)
		ca->prior_cwnd = cwnd;
}

// The first round of a recovery conserves packets: each that is delivered lets one leave (section 4.2.3.4 of the draft). The
// window from before is restored at the end. Returns whether packets are conserved now.
static __always_inline u8 bbr_recover(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bbr *ca = bbr_of(sk);
	u8 state = ca_state(sk), before = ca->prev_state;
	u32 cwnd = tp->snd_cwnd, delivered = in_flight(tp) + rs->acked_sacked;

	if (rs->losses > 0)
		cwnd = cwnd > (u32)rs->losses ? cwnd - rs->losses : 1;
	if (state == TCP_CA_Recovery && before != TCP_CA_Recovery) {
		ca->conserves = 1;
		ca->round_until = tp->delivered; // the round begins now
		cwnd = delivered;
	} else if (before >= TCP_CA_Recovery && state < TCP_CA_Recovery) {
		if (cwnd < ca->prior_cwnd)
			cwnd = ca->prior_cwnd;
		ca->conserves = 0;
	}
	ca->prev_state = state;
	if (ca->conserves && cwnd < delivered)
		cwnd = delivered;
	tp->snd_cwnd = cwnd;
	return ca->conserves;
}

// The window after an ACK, without bounds: towards the gain times the bandwidth-delay product.
static __always_inline void bbr_grow(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bbr *ca = bbr_of(sk);
	u32 acked = rs->acked_sacked, cwnd, target;

	if (!acked || bbr_recover(sk, rs))
		return;
	cwnd = tp->snd_cwnd;
	target = bbr_bdp(sk, bbr_bw(sk), bbr_cwnd_gain(sk)) + bbr_aggregation_cwnd(sk);
	target = bbr_with_bursts(sk, target);
	if (ca->full_bw_reached)
		cwnd = cwnd + acked < target ? cwnd + acked : target;
	else if (cwnd < target || tp->delivered < 10)
		cwnd += acked;
	tp->snd_cwnd = cwnd > BBR_LEAST_CWND ? cwnd : BBR_LEAST_CWND;
}

// Applies the bounds to the window. In PROBE_RTT the floor is that state's own window at most: PROBE_RTT ends only after few
// segments were in flight, and without it the smallest RTT would contain the queue.
static __always_inline void bbr_hold(struct sock *sk, struct wakeai_bounds bounds)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (bbr_of(sk)->mode == BBR_PROBE_RTT) {
		if (tp->snd_cwnd > BBR_LEAST_CWND)
			tp->snd_cwnd = BBR_LEAST_CWND;
		if (bounds.floor > BBR_LEAST_CWND)
			bounds.floor = BBR_LEAST_CWND;
	}
	hold(sk, bounds, ca_state(sk));
}

#endif
