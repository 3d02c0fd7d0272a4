// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// RTT fairness: the curve of a connection with a long RTT rises faster (Kozu et al., equation 3).
//
// K' = K cbrt(RTT_ref / RTT), where K is the time from the start of the curve to its plateau. The
// curve still starts at the window after the loss, so C K^3 is unchanged and C' = C RTT / RTT_ref.
// Where connections have their losses at the same times, their windows are in proportion to their
// RTTs, so their rates are equal.

#ifndef WAKEAI_RTT_FAIR_H
#define WAKEAI_RTT_FAIR_H

// The mean RTT moves by an eighth of the difference per RTT. C does not follow the latest RTT: an
// epoch (one run of the curve) begins when the queue has just been full, with the longest RTT.
#define RTT_FAIR_WEIGHT 8

static __always_inline void rtt_fair_sample(struct sock *sk, u32 rtt_us, u32 acked)
{
	struct wakeai_cubic *ca = cubic_of(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u64 rtt_q6 = (u64)rtt_us << 6;
	u64 weight = (u64)RTT_FAIR_WEIGHT * (cwnd ? cwnd : 1);

	if (!knobs_of(sk)->rtt_ref_ms)
		return;
	if (rtt_q6 > ~0u)
		rtt_q6 = ~0u;
	if (acked > cwnd)
		acked = cwnd;
	// The sample of an ACK has a weight: the part of the window that the ACK acknowledges.
	if (!ca->rtt_q6)
		ca->rtt_q6 = rtt_q6;
	else if (rtt_q6 > ca->rtt_q6)
		ca->rtt_q6 += (rtt_q6 - ca->rtt_q6) * acked / weight;
	else
		ca->rtt_q6 -= (ca->rtt_q6 - rtt_q6) * acked / weight;
}

// C for the epoch that begins.
static __always_inline u32 curve_c(struct sock *sk)
{
	u64 reference_q6 = (u64)knobs_of(sk)->rtt_ref_ms * 64000;
	u32 c = knobs_of(sk)->c_per_1024;
	u64 scaled;

	if (!reference_q6 || !cubic_of(sk)->rtt_q6)
		return c;
	scaled = ((u64)c * cubic_of(sk)->rtt_q6 + reference_q6 / 2) / reference_q6;
	if (scaled > 1u << 20) // cubed_q10() would leave 64 bits
		scaled = 1u << 20;
	return scaled ? scaled : 1;
}

#endif
