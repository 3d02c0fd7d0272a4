// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The pacing rate and its bounds, and the restart after an idle time. The kernel also derives the
// size of bursts and the limit of the host's queue from the pacing rate.

#ifndef WAKEAI_PACING_H
#define WAKEAI_PACING_H

// The factors of Linux. Early in slow start the rate is 2 cwnd per RTT, so that the window can
// double. Later it is 1.2 cwnd per RTT.
#define PACING_SLOW_START_PERCENT 200
#define PACING_PERCENT 120

static __always_inline u64 own_rate(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? PACING_SLOW_START_PERCENT : PACING_PERCENT;
	u32 window = tp->snd_cwnd > tp->packets_out ? tp->snd_cwnd : tp->packets_out;

	// srtt_us is kept times 8; 10^6 us / 100 percent = 10^4
	return (u64)tp->mss_cache * window * percent * 80000 / tp->srtt_us;
}

// The rate for the window, without bounds.
static __always_inline u64 ordinary_rate(struct sock *sk)
{
	u64 rate = tcp_sk(sk)->srtt_us ? own_rate(sk) : sk->sk_pacing_rate;

	return rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

// Whether the limit of the bytes in the host's queue may be raised. TCP small queues let a
// connection keep sk_pacing_rate >> sk_pacing_shift bytes there, and at least two packets. With a
// small window over a long RTT only these two packets are allowed. The station's next turn on the
// air then has no aggregate to send (docs/decisions/009-small-queue-budget.md). Only a higher rate
// raises the limit. While nothing paces, such a rate has one other effect: larger bursts.
static __always_inline u8 may_raise_small_queue(struct sock *sk, struct wakeai_bounds bounds)
{
	return bounds.small_queue && bounds.ceiling && !bounds.pacing && tcp_sk(sk)->srtt_us &&
	       sk->sk_pacing_status == SK_PACING_NONE;
}

// The largest supported value. With it the products below fit 64 bits.
#define LARGEST_SMALL_QUEUE (1u << 24)

// The pacing rate from which TCP small queues derive a limit of `bytes` bytes of full packets. The
// host counts the lengths of its buffers, which are longer than the packets in them. It accepts
// packets until their sum exceeds the limit. So the limit is the sum for `bytes` bytes of
// packets, less one byte.
static __always_inline u64 small_queue_rate(struct sock *sk, u64 bytes)
{
	u32 payload = tcp_sk(sk)->mss_cache;
	u64 packets = (bytes < LARGEST_SMALL_QUEUE ? bytes : LARGEST_SMALL_QUEUE) /
		      (payload + PACKET_HEADERS);

	if (!packets)
		return 0;
	return (packets * (payload + queued_beside_payload(sk)) - 1) << small_queue_shift(sk);
}

// Before the call the rate must be ordinary_rate().
static __always_inline void raise_small_queue(struct sock *sk, struct wakeai_bounds bounds)
{
	u64 rate;

	if (!may_raise_small_queue(sk, bounds))
		return;
	rate = small_queue_rate(sk, bounds.small_queue);
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	if (rate > sk->sk_pacing_rate) {
		sk->sk_pacing_rate = rate;
		connection_of(sk)->queue_raised = 1;
	}
}

static __always_inline void lower_small_queue(struct sock *sk)
{
	struct wakeai_connection *ca = connection_of(sk);

	if (ca->queue_raised)
		sk->sk_pacing_rate = ordinary_rate(sk);
	ca->queue_raised = 0;
}

static __always_inline void pace(struct sock *sk, struct wakeai_bounds bounds)
{
	struct wakeai_connection *ca = connection_of(sk);
	u64 rate = ordinary_rate(sk);

	if (bounds.pacing && rate > bounds.pacing)
		rate = bounds.pacing;
	sk->sk_pacing_rate = rate;
	ca->queue_raised = 0;
	// Without the qdisc fq, TCP paces only where SK_PACING_NEEDED is set. It is unset when the bound
	// ends, because plain CUBIC is not paced. But it stays set until the last scheduled departure. A
	// segment that is sent earlier would carry the time stamp of that departure, and its ACK would
	// give an RTT of 0.
	if (bounds.pacing && sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		ca->paced_by_us = 1;
	} else if (!bounds.pacing && ca->paced_by_us && !departure_ahead(sk)) {
		if (sk->sk_pacing_status == SK_PACING_NEEDED)
			sk->sk_pacing_status = SK_PACING_NONE;
		ca->paced_by_us = 0;
	}
	raise_small_queue(sk, bounds);
}

// The restart after an idle time (RFC 5681 section 4.1), as in Linux. The window is halved for each
// further retransmission timeout of idle time, but not below the restart window. ssthresh becomes
// at least three quarters of the previous window. With cong_control Linux leaves this to the
// algorithm.
static __always_inline void restart_after_idle(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_connection *ca = connection_of(sk);
	u32 restart = restart_window(sk); // 0: switched off by the administrator
	u32 cwnd = tp->snd_cwnd;
	u32 remembered = cwnd / 2 + cwnd / 4;
	u64 idle = idle_us(sk), rto = rto_us(sk), halvings;

	if (!restart || !rto || idle <= rto || ca->restarted_for == last_sent(sk))
		return;
	ca->restarted_for = last_sent(sk);
	if (!reducing(ca_state(sk)) && tp->snd_ssthresh < remembered)
		tp->snd_ssthresh = remembered;
	if (cwnd <= restart)
		return;
	halvings = (idle - 1) / rto;
	cwnd = halvings < 32 ? cwnd >> halvings : 0;
	tp->snd_cwnd = cwnd > restart ? cwnd : restart;
}

#endif
