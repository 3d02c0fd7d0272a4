// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The pacing rate, which also sizes bursts, its bound, and the restart after an idle time.

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

static __always_inline void pace(struct sock *sk, struct wakeai_bounds bounds)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_connection *ca = connection_of(sk);
	u64 rate = tp->srtt_us ? own_rate(sk) : sk->sk_pacing_rate;

	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	if (bounds.pacing && rate > bounds.pacing)
		rate = bounds.pacing;
	sk->sk_pacing_rate = rate;
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
