// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// HyStart (Ha and Rhee, 2011) ends slow start before the window overshoots. It does so when a train
// of ACKs (ACKs in quick succession) has lasted for half an RTT, or when the RTT has grown by an
// eighth. The thresholds are those of Linux.

#ifndef WAKEAI_HYSTART_H
#define WAKEAI_HYSTART_H

#define HYSTART_LOW_WINDOW 16     // segments; a smaller window stays in slow start
#define HYSTART_TRAIN_GAP_US 2000 // a longer gap between two ACKs ends a train
#define HYSTART_SAMPLES 8         // RTT samples that a round needs
#define HYSTART_DELAY_MIN_US 4000

// A file that includes this file may define other thresholds.
#ifndef HYSTART_DELAY_MAX_US
#define HYSTART_DELAY_MAX_US 16000
#endif
#ifndef HYSTART_DELAY_PART // of the smallest RTT
#define HYSTART_DELAY_PART 8
#endif
#ifndef HYSTART_TRAIN_US
#define HYSTART_TRAIN_US hystart_train_us
#endif

static __always_inline void hystart_new_round(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = cubic_of(sk);

	ca->round_start_us = ca->round_last_us = tp->tcp_mstamp;
	ca->round_end_seq = tp->snd_nxt;
	ca->round_rtt_us = ~0u;
	ca->round_samples = 0;
}

// The longest train that does not end slow start, in us. Where the sender paces, it is the RTT plus
// the time for which the receiver's aggregation may hold segments back. Where bursts are sent at
// once, it is half of that sum.
static __always_inline u32 hystart_train_us(struct sock *sk)
{
	struct wakeai_cubic *ca = cubic_of(sk);
	u64 rate = connection_of(sk)->queue_raised ? ordinary_rate(sk) : sk->sk_pacing_rate;
	u64 held_us = rate ? 4ull * 65536 * 1000000 / rate : 0;
	u32 train_us = ca->delay_min_us + (u32)(held_us < 1000 ? held_us : 1000);

	return sk->sk_pacing_status ? train_us : train_us / 2;
}

static __always_inline u8 hystart_train_is_long(struct sock *sk)
{
	struct wakeai_cubic *ca = cubic_of(sk);
	u32 now = tcp_sk(sk)->tcp_mstamp;

	if (now - ca->round_last_us > HYSTART_TRAIN_GAP_US)
		return 0;
	ca->round_last_us = now;
	return now - ca->round_start_us > HYSTART_TRAIN_US(sk);
}

static __always_inline u8 hystart_delay_grew(struct sock *sk, u32 rtt_us)
{
	struct wakeai_cubic *ca = cubic_of(sk);
	u32 growth = ca->delay_min_us / HYSTART_DELAY_PART / knobs_of(sk)->hystart;

	if (ca->round_rtt_us > rtt_us)
		ca->round_rtt_us = rtt_us;
	if (ca->round_samples < HYSTART_SAMPLES) {
		ca->round_samples++;
		return 0;
	}
	if (growth < HYSTART_DELAY_MIN_US)
		growth = HYSTART_DELAY_MIN_US;
	if (growth > HYSTART_DELAY_MAX_US)
		growth = HYSTART_DELAY_MAX_US;
	return ca->round_rtt_us > ca->delay_min_us + growth;
}

// Updates the smallest RTT, which curve_target() uses, and ends slow start where one of the two
// conditions holds.
static __always_inline void hystart_on_rtt(struct sock *sk, u32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = cubic_of(sk);
	u8 train, delay;

	// In the first second after a reduction the RTT contains the queue that caused the reduction.
	if (ca->epoch_start_us && tp->tcp_mstamp - ca->epoch_start_us < 1000000)
		return;
	if (!ca->delay_min_us || rtt_us < ca->delay_min_us)
		ca->delay_min_us = rtt_us;
	if (!knobs_of(sk)->hystart || ca->hystart_found || !in_slow_start(tp))
		return;
	// Rounds are counted even while the window is small. A round that began in the middle of a flight
	// would measure the queue of the first half of that flight.
	if (comes_after(tp->snd_una, ca->round_end_seq))
		hystart_new_round(sk);
	if (tp->snd_cwnd < HYSTART_LOW_WINDOW)
		return;
	train = hystart_train_is_long(sk);
	delay = hystart_delay_grew(sk, rtt_us);
	if (train || delay) {
		ca->hystart_found = 1;
		tp->snd_ssthresh = tp->snd_cwnd;
	}
}

#endif
