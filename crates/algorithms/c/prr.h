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

// A Recovery begins. Where a timer found the losses (RACK's, RFC 8985 section 6.3) no ACK follows that
// could set the window before the first retransmissions leave: it is set here, as for an ACK of one
// segment.
static __always_inline void prr_on_entry(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_connection *ca = connection_of(sk);

	ca->recovery_us = tp->tcp_mstamp;
	ca->recovery_cwnd = tp->snd_cwnd;
	prr_on_ack(sk, 1, 1, 0);
}

// Where an ACK found the losses, which has the time at which the Recovery began, what it delivered is
// what counts.
static __always_inline void prr_take_back_entry(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_connection *ca = connection_of(sk);

	if (!ca->recovery_cwnd || ca->recovery_us != (u32)tp->tcp_mstamp)
		return;
	tp->snd_cwnd = ca->recovery_cwnd;
	ca->recovery_cwnd = 0;
	if (ca->prr_delivered)
		ca->prr_delivered--;
}

static __always_inline void prr_finish(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
		tp->snd_cwnd = tp->snd_ssthresh;
}

#endif
