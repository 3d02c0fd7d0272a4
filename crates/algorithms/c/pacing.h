// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The pacing rate, which also sizes bursts and the share of the host's queue, its bounds, and the restart
// after an idle time.

#ifndef WAKEAI_PACING_H
#define WAKEAI_PACING_H

// As Linux has it: cwnd per RTT, twice that early in slow start so that the window can double,
// and 1.2 times after.
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

// The rate that goes with the window.
static __always_inline u64 ordinary_rate(struct sock *sk)
{
	u64 rate = tcp_sk(sk)->srtt_us ? own_rate(sk) : sk->sk_pacing_rate;

	return rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

// TCP small queues let a connection keep sk_pacing_rate >> sk_pacing_shift bytes in the host's queue, and
// two packets at least. A small window over a long RTT is left with these two, and where stations take
// turns the next turn finds no aggregate to send (docs/decisions/009-small-queue-budget.md). Nothing
// but the rate says how much may wait; where nothing paces, it says little else.
static __always_inline u8 may_raise_small_queue(struct sock *sk, struct wakeai_bounds bounds)
{
	return bounds.small_queue && bounds.ceiling && !bounds.pacing && tcp_sk(sk)->srtt_us &&
	       sk->sk_pacing_status == SK_PACING_NONE;
}

// The most that is asked for, and that the sums below have room for.
#define LARGEST_SMALL_QUEUE (1u << 24)

// The rate that lets so many bytes of full packets wait. The host counts what it keeps them in, which is
// more than they are long. One byte less: it takes another packet as long as there is no more than this.
static __always_inline u64 small_queue_rate(struct sock *sk, u64 bytes)
{
	u32 payload = tcp_sk(sk)->mss_cache;
	u64 packets = (bytes < LARGEST_SMALL_QUEUE ? bytes : LARGEST_SMALL_QUEUE) /
		      (payload + PACKET_HEADERS);

	if (!packets)
		return 0;
	return (packets * (payload + queued_beside_payload(sk)) - 1) << small_queue_shift(sk);
}

// The rate must be the ordinary one before.
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
	// Without fq nobody paces unless the stack is told to do it itself; and it must stop with
	// the bound, because plain CUBIC is not paced. But not before the last departure that was
	// scheduled: what is sent ahead of it bears its time, and its ACK would tell an RTT of 0.
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

// RFC 5681 section 4.1, as Linux has it: half the window for each further RTO of idleness, down to the
// restart window; ssthresh remembers where it was. Linux skips it for algorithms that have
// cong_control, so it is done here.
static __always_inline void restart_after_idle(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_connection *ca = connection_of(sk);
	u32 restart = restart_window(sk); // 0: the administrator does not want it
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
