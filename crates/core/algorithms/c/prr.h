// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Proportional rate reduction (RFC 6937, with the slow-start bound of section 3.1), in segments.
// The kernel sets prior_cwnd and snd_ssthresh at the start of a reduction, and counts the segments
// that are sent during it (prr_out). With cong_control it leaves the rest to the algorithm.

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
		// Proportional: ssthresh / prior_cwnd segments leave for each delivered segment, rounded up.
		allowed = (u64)ca->prr_delivered * tp->snd_ssthresh + tp->prior_cwnd - 1;
		send = (s64)(allowed / tp->prior_cwnd) - tp->prr_out;
	} else {
		// Slow start up to ssthresh, with one more segment per ACK that shows no new loss.
		send = (s64)ca->prr_delivered - tp->prr_out;
		if (send < acked)
			send = acked;
		if (advanced && !lost)
			send++;
		if (send > (s64)(tp->snd_ssthresh - pipe))
			send = tp->snd_ssthresh - pipe;
	}
	// A Recovery begins with a retransmission, so at least one segment may be sent.
	if (send < !tp->prr_out)
		send = !tp->prr_out;
	tp->snd_cwnd = pipe + send;
}

// Called when a Recovery begins. Where RACK's timer found the losses (RFC 8985 section 6.3), no ACK
// sets the window before the first retransmissions. So the window is set here, as for an ACK of one
// segment.
static __always_inline void prr_on_entry(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_connection *ca = connection_of(sk);

	ca->recovery_us = tp->tcp_mstamp;
	ca->recovery_cwnd = tp->snd_cwnd;
	prr_on_ack(sk, 1, 1, 0);
}

// Undoes prr_on_entry() at an ACK with the time stamp of the entry. This ACK found the losses, so
// the segments that it delivered set the window.
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
