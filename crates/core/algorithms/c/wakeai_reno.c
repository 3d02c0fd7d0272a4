// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_reno: slow start and congestion avoidance of RFC 5681, counted in segments, under bounds. wakeai_cubic.c
// lists what a shim defines.

#include "connection.h"

struct wakeai_reno {
	struct wakeai_connection connection;
	u32 credit; // segments acknowledged since the window last grew
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

// Congestion avoidance adds a segment for each acknowledged window (RFC 5681 section 3.1). It
// counts the segments that arrived instead of the ACKs (RFC 3465).
HOOK_BODY void reno_on_ack(struct sock *sk, u32 acked, u32 lost, s32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bounds bounds = bounds_of(sk);

	(void)rtt_us;
	acked = slow_start(sk, connection_acked(sk, acked, lost));
	if (acked && !at_ceiling(bounds, tp->snd_cwnd))
		tp->snd_cwnd += additive_increase(&reno_of(sk)->credit, tp->snd_cwnd, acked);
	if (connection_settle(sk, bounds))
		reno_of(sk)->credit = 0;
}

// Half of the window, and at least two segments (RFC 5681 equation 4). As in Linux, cwnd replaces
// FlightSize.
HOOK_BODY u32 reno_ssthresh(struct sock *sk)
{
	u32 half = tcp_sk(sk)->snd_cwnd / 2;

	return within(bounds_of(sk), half > 2 ? half : 2);
}

HOOK_BODY void reno_set_state(struct sock *sk, u8 next)
{
	if (next == TCP_CA_Loss || reducing(next))
		reno_of(sk)->credit = 0;
	connection_set_state(sk, next);
}

HOOK_BODY void reno_before_sending(struct sock *sk)
{
	if (connection_before_sending(sk))
		reno_of(sk)->credit = 0;
}

#define reno_undo_cwnd connection_undo_cwnd
#define reno_after_idle connection_after_idle
#define reno_release connection_release
