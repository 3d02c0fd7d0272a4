// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// BBR's model of the path: the bottleneck's bandwidth, the rounds in which it is measured, and how much the path
// aggregates ACKs.

#ifndef WAKEAI_BBR_MODEL_H
#define WAKEAI_BBR_MODEL_H

static __always_inline u32 bbr_max_bw(struct sock *sk)
{
	return bbr_of(sk)->best[0].bw;
}

// The bandwidth from which rate and window follow.
static __always_inline u32 bbr_bw(struct sock *sk)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	return ca->uses_policed_bw ? ca->policed_bw : bbr_max_bw(sk);
}

static __always_inline void bbr_restart_filter(struct wakeai_bbr *ca, struct bbr_bandwidth sample)
{
	ca->best[0] = ca->best[1] = ca->best[2] = sample;
}

// Puts a sample into the filter: the largest bandwidth of the last BBR_BW_ROUNDS rounds. As in Linux, it holds three
// samples instead of ten: the largest, the largest after it, and the largest after that. When the first is too old,
// the others move up. While the second is the first, a sample of the second quarter of the time takes its place, and
// likewise the third's place in the second half, so that the successors are not as old as what they replace.
static __always_inline void bbr_filter(struct wakeai_bbr *ca, struct bbr_bandwidth sample)
{
	struct bbr_bandwidth *best = ca->best;
	u32 age;

	if (sample.bw >= best[0].bw || sample.round - best[2].round > BBR_BW_ROUNDS) {
		bbr_restart_filter(ca, sample);
		return;
	}
	if (sample.bw >= best[1].bw)
		best[1] = best[2] = sample;
	else if (sample.bw >= best[2].bw)
		best[2] = sample;
	age = sample.round - best[0].round;
	if (age > BBR_BW_ROUNDS) {
		best[0] = best[1];
		best[1] = best[2];
		best[2] = sample;
		if (sample.round - best[0].round > BBR_BW_ROUNDS) {
			best[0] = best[1];
			best[1] = best[2];
		}
	} else if (best[1].round == best[0].round && age > BBR_BW_ROUNDS / 4) {
		best[1] = best[2] = sample;
	} else if (best[2].round == best[1].round && age > BBR_BW_ROUNDS / 2) {
		best[2] = sample;
	}
}

// Whether an ACK has a bandwidth.
static __always_inline u8 bbr_has_rate(const struct rate_sample *rs)
{
	return rs->delivered >= 0 && rs->interval_us > 0;
}

// Whether the sample says less than what the path allows, because the application or PROBE_RTT limited the sender.
static __always_inline u8 bbr_is_limited(struct sock *sk, const struct rate_sample *rs)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	if (rs->is_app_limited)
		return 1;
	if (!ca->limited_until)
		return 0;
	if (comes_after(rs->prior_delivered, ca->limited_until)) {
		ca->limited_until = 0;
		return 0;
	}
	return !comes_after(ca->limited_from, rs->prior_delivered);
}

// Counts rounds: one ends when a segment is acknowledged that was sent after its start (section 4.1.1.3 of the draft).
static __always_inline void bbr_count_round(struct sock *sk, const struct rate_sample *rs)
{
	struct wakeai_bbr *ca = bbr_of(sk);

	ca->round_start = 0;
	if (!bbr_has_rate(rs) || comes_after(ca->round_until, rs->prior_delivered))
		return;
	ca->round_until = tcp_sk(sk)->delivered;
	ca->rounds++;
	ca->round_start = 1;
	ca->conserves = 0;
}

static __always_inline void bbr_update_bw(struct sock *sk, const struct rate_sample *rs, u8 limited)
{
	struct wakeai_bbr *ca = bbr_of(sk);
	u64 bw;

	if (!bbr_has_rate(rs))
		return;
	bw = (u64)(u32)rs->delivered * BBR_BW_UNIT / (u64)rs->interval_us;
	if (bw > ~0u)
		bw = ~0u;
	if (!limited || bw >= bbr_max_bw(sk))
		bbr_filter(ca, (struct bbr_bandwidth){ ca->rounds, bw });
}

// The segments that the bandwidth delivers in a time.
static __always_inline u64 bbr_segments_in(u32 bw, u32 us)
{
	return (u64)bw * us / BBR_BW_UNIT;
}

// Measures how many more segments are acknowledged than the bandwidth delivers, since the epoch began. An epoch ends
// when the ACKs have fallen below the bandwidth. The filter holds the most of the present and of the previous
// BBR_AGGREGATION_ROUNDS rounds.
static __always_inline void bbr_update_aggregation(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bbr *ca = bbr_of(sk);
	u64 expected;
	u32 extra;

	if (!rs->acked_sacked || !bbr_has_rate(rs))
		return;
	if (ca->round_start && ++ca->extra_rounds >= BBR_AGGREGATION_ROUNDS) {
		ca->extra_rounds = 0;
		ca->extra_before = ca->extra_acked;
		ca->extra_acked = 0;
	}
	expected = bbr_segments_in(bbr_bw(sk), (u32)tp->delivered_mstamp - ca->epoch_us);
	if (ca->epoch_acked <= expected || ca->epoch_acked + rs->acked_sacked >= BBR_EPOCH_LIMIT) {
		ca->epoch_acked = 0;
		ca->epoch_us = tp->delivered_mstamp;
		expected = 0;
	}
	ca->epoch_acked += rs->acked_sacked;
	if (ca->epoch_acked >= BBR_EPOCH_LIMIT)
		ca->epoch_acked = BBR_EPOCH_LIMIT - 1;
	extra = ca->epoch_acked > expected ? ca->epoch_acked - expected : 0;
	if (extra > tp->snd_cwnd)
		extra = tp->snd_cwnd;
	if (extra > 0xffff)
		extra = 0xffff;
	if (extra > ca->extra_acked)
		ca->extra_acked = extra;
}

// The window that compensates for aggregated ACKs, in segments.
static __always_inline u32 bbr_aggregation_cwnd(struct sock *sk)
{
	struct wakeai_bbr *ca = bbr_of(sk);
	u64 most = bbr_segments_in(bbr_bw(sk), BBR_AGGREGATION_US);
	u32 extra = ca->extra_acked > ca->extra_before ? ca->extra_acked : ca->extra_before;

	if (!ca->full_bw_reached)
		return 0;
	return extra < most ? extra : most;
}

#endif
