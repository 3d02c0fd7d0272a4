// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// CUBIC as in ns-3 3.37, only for user space, so that simulations can be compared with ns-3's. It differs from
// wakeai_cubic without the Reno-friendly region in four points. They were found by following connections
// through both simulators:
//   - HyStart ends slow start when the RTT has grown by the smallest RTT (at most a second); Linux ends it
//     after growth by an eighth (at most 16 ms). A train of ACKs may last for a whole RTT.
//   - Slow start also counts the segments of an ACK that are beyond the threshold.
//   - The window grows by at most one segment per ACK. The count of acknowledged segments, which pays for
//     growth, is never reset. So segments that were counted on a plateau enlarge the window after a timeout.
//   - In Loss all segments that a cumulative ACK covers are counted. Most of them were counted before, when
//     they were selectively acknowledged.

#define HYSTART_DELAY_PART 1
#define HYSTART_DELAY_MAX_US 1000000
#define HYSTART_TRAIN_US(sk) (cubic_of(sk)->delay_min_us)

#include "hooks.h"
#include "../wakeai_cubic.c"

static inline u32 ns3_cubic_covered(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 bytes = tp->snd_una - connection_of(sk)->last_una;

	return tp->mss_cache ? (bytes + tp->mss_cache - 1) / tp->mss_cache : 0;
}

// The number of segments to be acknowledged before the window grows by one.
static inline u64 ns3_cubic_price(struct wakeai_cubic *ca, u64 cwnd, u64 target)
{
	u32 price = curve_price(ca, cwnd, target);

	return price > 2 ? price : 2;
}

static inline u32 ns3_cubic_advance(struct sock *sk, u32 cwnd, u32 acked)
{
	struct wakeai_cubic *ca = cubic_of(sk);
	u64 now = tcp_sk(sk)->tcp_mstamp;
	u64 saved = ca->credit; // here in whole segments
	u64 target, price;

	if (!ca->epoch_start_us)
		curve_begin(ca, cwnd, now, curve_c(sk));
	target = curve_at(ca, microseconds_to_q10(now - ca->epoch_start_us + ca->delay_min_us)) >> 10;
	price = ns3_cubic_price(ca, cwnd, target);
	ca->credit = saved + acked;
	if (ca->credit < price)
		return cwnd;
	ca->credit -= price;
	return cwnd + 1;
}

static void ns3_cubic_on_ack(struct sock *sk, u32 acked, u32 lost, s32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bounds bounds = bounds_of(sk);
	u32 covered = ns3_cubic_covered(sk);

	if (rtt_us >= 0)
		hystart_on_rtt(sk, rtt_us ? rtt_us : 1);
	acked = connection_acked(sk, acked, lost);
	if (ca_state(sk) == TCP_CA_Loss)
		acked = covered;
	if (in_slow_start(tp))
		tp->snd_cwnd += acked;
	else if (acked)
		tp->snd_cwnd = ns3_cubic_advance(sk, tp->snd_cwnd, acked);
	connection_settle(sk, bounds);
}

// Neither a reduction nor a timeout resets the count of acknowledged segments.
static u32 ns3_cubic_ssthresh(struct sock *sk)
{
	u32 saved = cubic_of(sk)->credit;
	u32 ssthresh = cubic_ssthresh(sk);

	cubic_of(sk)->credit = saved;
	return ssthresh;
}

static void ns3_cubic_set_state(struct sock *sk, u8 next)
{
	u32 saved = cubic_of(sk)->credit;

	cubic_set_state(sk, next);
	cubic_of(sk)->credit = saved;
}

#define ns3_cubic_init cubic_init
#define ns3_cubic_release cubic_release
#define ns3_cubic_undo_cwnd cubic_undo_cwnd
#define ns3_cubic_before_sending cubic_before_sending
#define ns3_cubic_after_idle cubic_after_idle
EXPORT_HOOKS(ns3_cubic);
