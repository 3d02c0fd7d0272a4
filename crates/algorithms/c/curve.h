// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The curve of RFC 9438: W_cubic(t) = C (t - K)^3 + W_max, beside Reno's line.
//
// Fixed point: times in 1/1024 s and windows in 1/1024 segments ("q10").

#ifndef WAKEAI_CURVE_H
#define WAKEAI_CURVE_H

// Beyond 256 s from the plateau the cube times C would leave 64 bits; the window is far beyond
// any that TCP can have by then.
#define CURVE_LIMIT_Q10 ((1u << 18) - 1)

// floor(cbrt(x)), at most 2^21 - 1 (a larger cube could leave 64 bits), bit by bit: once per
// epoch, so its 21 steps cost nothing.
static __always_inline u32 cube_root(u64 x)
{
	u64 root = 0;
	int bit;

	for (bit = 20; bit >= 0; bit--) {
		u64 tried = root | 1ull << bit;

		if (tried * tried * tried <= x)
			root = tried;
	}
	return root;
}

static __always_inline u64 microseconds_to_q10(u64 us)
{
	return us * 16 / 15625; // 1024 / 10^6
}

// C t^3 in 1/1024 segments, for t in 1/1024 s.
static __always_inline u64 cubed_q10(u64 t, u32 c_per_1024)
{
	if (t > CURVE_LIMIT_Q10)
		t = CURVE_LIMIT_Q10;
	return c_per_1024 * (t * t * t >> 10) >> 20;
}

static __always_inline void curve_begin(struct wakeai_cubic *ca, u32 cwnd, u64 now_us, u32 c)
{
	ca->c_per_1024 = c;
	ca->epoch_start_us = now_us;
	ca->credit = 0;
	ca->reno_window = cwnd;
	ca->reno_credit = 0;
	if (cwnd < ca->window_max) {
		// K = cbrt((W_max - cwnd) / C): RFC 9438 figure 2
		ca->k_q10 = cube_root(((u64)(ca->window_max - cwnd) << 40) / c);
		ca->origin = ca->window_max;
	} else {
		ca->k_q10 = 0;
		ca->origin = cwnd;
	}
}

// W_cubic(t) in 1/1024 segments.
static __always_inline u64 curve_at(const struct wakeai_cubic *ca, u64 t_q10)
{
	u32 c = ca->c_per_1024;
	u64 origin_q10 = (u64)ca->origin << 10;
	u64 below;

	if (t_q10 >= ca->k_q10)
		return origin_q10 + cubed_q10(t_q10 - ca->k_q10, c);
	below = cubed_q10(ca->k_q10 - t_q10, c);
	return below < origin_q10 ? origin_q10 - below : 0;
}

// How much credit is worth a segment. A window of 0 is nobody's, but must not divide by it.
static __always_inline u64 credit_step(u32 cwnd)
{
	return (u64)(cwnd ? cwnd : 1) << 10;
}

// Moves W_est on by what Reno would gain: RFC 9438 section 4.3.
static __always_inline void reno_advance(struct wakeai_cubic *ca, u32 cwnd, u32 acked, u32 beta)
{
	u64 step = credit_step(cwnd);
	// alpha_cubic makes an AIMD flow with this beta as fast as Reno on average; once it is back
	// where the reduction began, it is as fast as Reno itself.
	u32 alpha = ca->reno_window < ca->window_before ? 3072 * (1024 - beta) / (1024 + beta) : 1024;

	ca->reno_credit += (u64)acked * alpha;
	ca->reno_window += ca->reno_credit / step;
	ca->reno_credit %= step;
}

// What a window of `cwnd` should gain within an RTT, in 1/1024 segments.
static __always_inline u64 curve_gain(const struct wakeai_cubic *ca, u32 cwnd, u64 target_q10)
{
	u64 cwnd_q10 = (u64)cwnd << 10;
	// Never quite still on the plateau, as in Linux: a segment per 100 RTTs...
	u64 gain = 10;

	// ... and 5 % per RTT where no loss has shown yet how much the path holds.
	if (!ca->window_max && gain < cwnd_q10 / 20)
		gain = cwnd_q10 / 20;
	if (target_q10 > cwnd_q10 + gain)
		gain = target_q10 - cwnd_q10;
	// RFC 9438 section 4.2: the target is at most 1.5 cwnd.
	return gain < cwnd_q10 / 2 ? gain : cwnd_q10 / 2;
}

// The window after `acked` more segments, in congestion avoidance.
static __always_inline u32 curve_advance(struct sock *sk, u32 cwnd, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = cubic_of(sk);
	u64 now = tp->tcp_mstamp;
	u64 step = credit_step(cwnd);
	u64 age_us, target_q10;

	if (!ca->epoch_start_us)
		curve_begin(ca, cwnd, now, curve_c(sk));
	reno_advance(ca, cwnd, acked, knobs_of(sk)->beta_per_1024);
	age_us = now - ca->epoch_start_us;
	// One RTT ahead: where the window should be when what is sent now is acknowledged.
	target_q10 = curve_at(ca, microseconds_to_q10(age_us + ca->delay_min_us));
	ca->credit += acked * curve_gain(ca, cwnd, target_q10);
	cwnd += ca->credit / step;
	ca->credit %= step;
	// RFC 9438 section 4.3: where Reno would be faster, be Reno.
	if (knobs_of(sk)->tcp_friendliness && cwnd < ca->reno_window &&
	    curve_at(ca, microseconds_to_q10(age_us)) < (u64)ca->reno_window << 10)
		cwnd = ca->reno_window;
	return cwnd;
}

#endif
