// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_reno: RFC 5681's slow start and congestion avoidance, counted in segments, under bounds.
// What it expects of a shim is in wakeai_cubic.c.

#include "connection.h"

struct wakeai_reno {
	struct wakeai_connection connection;
	u32 credit; // segments acknowledged towards the next one of growth
};

FITS_THE_PRIVATE_AREA(struct wakeai_reno);

static __always_inline struct wakeai_reno *reno_of(struct sock *sk)
{
	return private_of(sk);
}

HOOK_BODY void reno_init(struct sock *sk)
{
	reno_of(sk)->credit = 0;
	connection_init(sk);
}

// Congestion avoidance: a segment per window that was acknowledged (RFC 5681 section 3.1; it
// counts what arrived, not the ACKs that said so: RFC 3465).
HOOK_BODY void reno_advance_window(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_cwnd += additive_increase(&reno_of(sk)->credit, tp->snd_cwnd, acked);
}

HOOK_BODY void reno_on_ack(struct sock *sk, u32 acked, u32 lost, s32 rtt_us)
{
	struct wakeai_bounds bounds = bounds_of(sk);

	(void)rtt_us;
	acked = slow_start(sk, connection_acked(sk, acked, lost));
	if (acked && !at_ceiling(bounds, tcp_sk(sk)->snd_cwnd))
		reno_advance_window(sk, acked);
	if (connection_settle(sk, bounds))
		reno_of(sk)->credit = 0;
}

// Half, and never below two segments (RFC 5681 equation 4, of cwnd instead of FlightSize as in
// Linux).
HOOK_BODY u32 reno_ssthresh(struct sock *sk)
{
	u32 half = tcp_sk(sk)->snd_cwnd / 2;

	return within(bounds_of(sk), half > 2 ? half : 2);
}

HOOK_BODY u32 reno_undo_cwnd(struct sock *sk)
{
	return connection_undo_cwnd(sk);
}

HOOK_BODY void reno_set_state(struct sock *sk, u8 next)
{
	// A reduction begins a new count.
	if (next == TCP_CA_Loss || reducing(next))
		reno_of(sk)->credit = 0;
	connection_set_state(sk, next);
}

HOOK_BODY void reno_before_sending(struct sock *sk)
{
	if (connection_before_sending(sk))
		reno_of(sk)->credit = 0;
}

HOOK_BODY void reno_after_idle(struct sock *sk)
{
	connection_after_idle(sk);
}

HOOK_BODY void reno_release(struct sock *sk)
{
	connection_release(sk);
}
