// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The curve of RFC 9438, W_cubic(t) = C (t - K)^3 + W_max, and its Reno-friendly region (section 4.3).
// t is the time since the curve began, W_max the window before the last reduction, and K the time at which
// the curve reaches W_max (its plateau).
//
// Fixed point: times are in 1/1024 s and windows in 1/1024 segments ("q10").

#ifndef WAKEAI_CURVE_H
#define WAKEAI_CURVE_H

// More than 256 s from the plateau, the cube times C would not fit 64 bits. By then the window is
// far larger than any window of TCP.
#define CURVE_LIMIT_Q10 ((1u << 18) - 1)

// floor(cbrt(x)), at most 2^21 - 1, because a larger cube could exceed 64 bits. It is computed bit
// by bit, in 21 steps once per epoch (one run of the curve). The steps have no branch, because the
// kernel's verifier would follow both sides of each branch.
static __always_inline u32 cube_root(u64 x)
{
	u64 root = 0;
	int bit;

	if (x >> 63)
		x = ~0ull >> 1;
	for (bit = 20; bit >= 0; bit--) {
		u64 tried = root | 1ull << bit;
		u64 is_too_large = (x - tried * tried * tried) >> 63;

		root += (is_too_large ^ 1) << bit;
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
	ca->reno_window = cwnd;
	if (cwnd < ca->window_max) {
		// K = cbrt((W_max - cwnd) / C): RFC 9438 figure 2
		ca->k_q10 = cube_root(((u64)(ca->window_max - cwnd) << 40) / c);
		ca->origin = ca->window_max;
	} else {
		ca->k_q10 = 0;
		ca->origin = cwnd;
	}
}

// W_cubic(t), in 1/1024 segments.
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

// The value of the curve one RTT from now, when the segments that are sent now are acknowledged. It
// is in whole segments, rounded up below the plateau and rounded down above it.
static __always_inline u64 curve_target(const struct wakeai_cubic *ca, u64 now_us)
{
	u64 t_q10 = microseconds_to_q10(now_us - ca->epoch_start_us + ca->delay_min_us);
	u64 target_q10 = curve_at(ca, t_q10);

	return (t_q10 < ca->k_q10 ? target_q10 + 1023 : target_q10) >> 10;
}

// The price: the number of segments to be acknowledged before the window grows by one, so that it
// reaches the target one RTT from now.
static __always_inline u32 curve_price(const struct wakeai_cubic *ca, u32 cwnd, u64 target)
{
	// On the plateau the window grows by a segment per 100 RTTs.
	u64 price = target > cwnd ? cwnd / (target - cwnd) : 100ull * cwnd;

	// Before the first loss it is unknown how much the path holds. The window then grows by at least 5
	// % per RTT.
	if (!ca->window_max && price > 20)
		price = 20;
	return price < ~0u ? price : ~0u;
}

// Advances W_est, the window that Reno would have with this beta (RFC 9438 section 4.3), by the
// acknowledged segments. Returns the price at which the window follows W_est, where that is lower
// than `price`, and otherwise `price`.
static __always_inline u32 reno_price(struct wakeai_cubic *ca, u32 cwnd, u32 price, u32 beta)
{
	// alpha_cubic is 3 (1 - beta) / (1 + beta). This is its inverse in eighths, rounded down twice as
	// in Linux.
	u32 segment = (u64)cwnd * (8 * (1024 + beta) / 3 / (1024 - beta)) >> 3;
	u32 steps, follow;

	if (!segment)
		segment = 1;
	if (ca->reno_acked > segment) {
		steps = (ca->reno_acked - 1) / segment;
		ca->reno_acked -= steps * segment;
		ca->reno_window += steps;
	}
	if (ca->reno_window <= cwnd)
		return price;
	follow = cwnd / (ca->reno_window - cwnd);
	return follow < price ? follow : price;
}

// The time for which a price is kept while the window does not change.
#define PRICE_HOLDS_US 31250

// The price now. It is computed anew when the window has changed or PRICE_HOLDS_US have passed. As
// in Linux, the curve is evaluated at most once per tick of the kernel's clock. This decides at
// which ACK a small window grows.
static __always_inline u32 curve_price_now(struct sock *sk, u32 cwnd, u32 acked)
{
	struct wakeai_cubic *ca = cubic_of(sk);
	u64 now = tcp_sk(sk)->tcp_mstamp;
	u32 age_us = (u32)now - ca->priced_us;

	ca->reno_acked += acked;
	if (ca->price && ca->priced_cwnd == cwnd && age_us <= PRICE_HOLDS_US)
		return ca->price;
	if (!ca->epoch_start_us || age_us >= knobs_of(sk)->tick_us) {
		ca->priced_cwnd = cwnd;
		ca->priced_us = now;
		if (!ca->epoch_start_us) {
			curve_begin(ca, cwnd, now, curve_c(sk));
			ca->reno_acked = acked;
		}
		ca->price = curve_price(ca, cwnd, curve_target(ca, now));
	}
	if (knobs_of(sk)->tcp_friendliness)
		ca->price = reno_price(ca, cwnd, ca->price, knobs_of(sk)->beta_per_1024);
	// RFC 9438 section 4.2: the target is at most 1.5 cwnd.
	if (ca->price < 2)
		ca->price = 2;
	return ca->price;
}

// The window after `acked` more segments in congestion avoidance.
static __always_inline u32 curve_advance(struct sock *sk, u32 cwnd, u32 acked)
{
	u32 price = curve_price_now(sk, cwnd, acked);

	return cwnd + additive_increase(&cubic_of(sk)->credit, price, acked);
}

#endif
