// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Proportional rate reduction (RFC 6937, with the slow-start bound of section 3.1), in segments.
// The kernel counts what is sent meanwhile (prr_out) and set prior_cwnd and snd_ssthresh when the
// reduction began; with cong_control the rest is left to the algorithm.

#ifndef WAKEAI_PRR_H
#define WAKEAI_PRR_H

static __always_inline u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

static __always_inline void prr_on_ack(struct sock *sk, u32 acked, u32 lost, u8 advanced)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_connection *ca = connection_of(sk);
	u32 pipe = in_flight(tp);
	u64 allowed;
	s64 send;

	if (!acked || !tp->prior_cwnd)
		return;
	ca->prr_delivered += acked;
	if (pipe > tp->snd_ssthresh) {
		// Proportional: as much of what arrived as ssthresh is of the old window, rounded up.
		allowed = (u64)ca->prr_delivered * tp->snd_ssthresh + tp->prior_cwnd - 1;
		send = (s64)(allowed / tp->prior_cwnd) - tp->prr_out;
	} else {
		// Slow start up to ssthresh, one segment faster while the ACKs show no new loss.
		send = (s64)ca->prr_delivered - tp->prr_out;
		if (send < acked)
			send = acked;
		if (advanced && !lost)
			send++;
		if (send > (s64)(tp->snd_ssthresh - pipe))
			send = tp->snd_ssthresh - pipe;
	}
	// The first thing that recovery does is to retransmit, whatever the arithmetic says.
	if (send < !tp->prr_out)
		send = !tp->prr_out;
	tp->snd_cwnd = pipe + send;
}

static __always_inline void prr_finish(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
		tp->snd_cwnd = tp->snd_ssthresh;
}

#endif
