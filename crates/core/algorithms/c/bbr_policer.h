// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The long-term bandwidth of BBR in Linux. A policer drops what exceeds its rate, so bandwidths that are measured while
// its bucket has tokens are too high. Where two intervals of at least four rounds each lost a fifth of their segments,
// and delivered at the same rate, this rate is used for 48 rounds.

#ifndef WAKEAI_BBR_POLICER_H
#define WAKEAI_BBR_POLICER_H

static __always_inline void bbr_begin_interval(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bbr *ca = bbr_of(sk);

	ca->interval_ms = tp->delivered_mstamp / 1000;
	ca->interval_delivered = tp->delivered;
	ca->interval_lost = tp->lost;
	ca->interval_rounds = 0;
}

static __always_inline void bbr_forget_policer(struct sock *sk)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	ca->policed_bw = 0;
	ca->uses_policed_bw = 0;
	ca->samples_interval = 0;
	bbr_begin_interval(sk);
}

// Ends an interval whose bandwidth was `bw`.
static __always_inline void bbr_end_interval(struct sock *sk, u32 bw)
{
	struct wakeai_bbr *ca = bbr_of(sk);
	u32 known = ca->policed_bw;
	u32 apart = bw > known ? bw - known : known - bw;
	u64 apart_bytes = ((u64)apart * tcp_sk(sk)->mss_cache >> 12) * 1000000 >> 12;

	if (known && (apart <= known / BBR_POLICER_RATIO || apart_bytes <= BBR_POLICER_DIFFERENCE)) {
		ca->policed_bw = ((u64)bw + known) / 2;
		ca->uses_policed_bw = 1;
		ca->interval_rounds = 0;
		return;
	}
	ca->policed_bw = bw;
	bbr_begin_interval(sk);
}

// Ends the interval where its losses are those of a policer.
static __always_inline void bbr_judge_interval(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bbr *ca = bbr_of(sk);
	u32 delivered = tp->delivered - ca->interval_delivered;
	u32 lost = tp->lost - ca->interval_lost;
	u32 ms = (u32)(tp->delivered_mstamp / 1000) - ca->interval_ms;
	u64 bw;

	if (!delivered || (u64)lost * BBR_UNIT < (u64)BBR_POLICER_LOSS * delivered || (s32)ms < 1)
		return;
	bw = (u64)delivered * BBR_BW_UNIT / ((u64)ms * 1000);
	bbr_end_interval(sk, bw < ~0u ? bw : ~0u);
}

// Handles an ACK, or a timeout, with `losses` new losses. Returns whether a known policer is now forgotten, because its
// time is over.
static __always_inline u8 bbr_watch_policer(struct sock *sk, u32 losses, u8 limited)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	if (ca->uses_policed_bw) {
		if (ca->mode != BBR_PROBE_BW || !ca->round_start)
			return 0;
		if (++ca->interval_rounds < BBR_POLICER_FOR_ROUNDS)
			return 0;
		bbr_forget_policer(sk);
		return 1;
	}
	// An interval begins and ends with a loss, where the policer's bucket is empty.
	if (!ca->samples_interval) {
		if (!losses)
			return 0;
		bbr_begin_interval(sk);
		ca->samples_interval = 1;
	}
	if (limited) {
		bbr_forget_policer(sk);
		return 0;
	}
	ca->interval_rounds += ca->round_start;
	if (ca->interval_rounds < BBR_POLICER_ROUNDS)
		return 0;
	if (ca->interval_rounds > 4 * BBR_POLICER_ROUNDS) {
		bbr_forget_policer(sk);
		return 0;
	}
	if (losses)
		bbr_judge_interval(sk);
	return 0;
}

#endif
