// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What every algorithm does alike: it takes cong_control, not cong_avoid. The kernel calls
// cong_avoid neither in Recovery nor in CWR, and bounds must hold there too. The price is that
// window reduction (prr.h) and pacing (pacing.h) are ours to do.

#ifndef WAKEAI_CONNECTION_H
#define WAKEAI_CONNECTION_H

#include "state.h"
#include "bounds.h"
#include "pacing.h"
#include "prr.h"

HOOK_BODY void connection_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_connection *ca = connection_of(sk);

	ca->last_una = tp->snd_una;
	// A connection may be moved here in the middle of a reduction.
	ca->prr_delivered = tp->prr_delivered;
	// The first flight obeys the ceiling; the floor waits for the first ACK, so that a path
	// nobody has measured yet is not flooded.
	tp->snd_cwnd = under_ceiling(bounds_of(sk), tp->snd_cwnd);
	pace(sk, bounds_of(sk));
}

// The first half of an ACK: goes on with a reduction. Returns for how many segments the window is
// to grow: none in a reduction, none while it is not used, for then it proves nothing (RFC 9438
// section 5.8), and none for a duplicate ACK (RFC 5681), unless the path is known to reorder: there,
// as in Linux, what arrived counts whatever its order.
HOOK_BODY u32 connection_acked(struct sock *sk, u32 acked, u32 lost)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_connection *ca = connection_of(sk);
	u8 advanced = tp->snd_una != ca->last_una;

	ca->last_una = tp->snd_una;
	if (reducing(ca_state(sk))) {
		prr_take_back_entry(sk);
		prr_on_ack(sk, acked, lost, advanced);
		return 0;
	}
	return (advanced || path_reorders(sk)) && cwnd_limited(sk) ? acked : 0;
}

// Slow start (RFC 5681 section 3.1): a segment per segment, up to ssthresh. Returns what is left
// of `acked` for congestion avoidance.
HOOK_BODY u32 slow_start(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 step;

	if (!in_slow_start(tp))
		return acked;
	step = tp->snd_ssthresh - tp->snd_cwnd;
	if (step > acked)
		step = acked;
	tp->snd_cwnd += step;
	return acked - step;
}

// Congestion avoidance: a segment for each `price` acknowledged ones. What was saved up at a higher
// price is worth one segment at most.
static __always_inline u32 additive_increase(u32 *credit, u32 price, u32 acked)
{
	u32 growth;

	if (!price)
		price = 1;
	if (*credit > price)
		*credit = price;
	*credit += acked;
	growth = *credit / price;
	*credit %= price;
	return growth;
}

// The second half of an ACK, or of another change of the window: bounds and pacing. Returns what
// hold() says.
HOOK_BODY u8 connection_settle(struct sock *sk, struct wakeai_bounds bounds)
{
	u8 bound = hold(sk, bounds, ca_state(sk));

	pace(sk, bounds);
	return bound;
}

// The window after a reduction that was none is taken back.
HOOK_BODY u32 connection_undo_cwnd(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;

	return under_ceiling(bounds_of(sk), cwnd);
}

// Called before the state changes: ca_state() still gives the old one.
HOOK_BODY void connection_set_state(struct sock *sk, u8 next)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u8 state = ca_state(sk);

	if (next == TCP_CA_Loss)
		return;
	if (reducing(next)) {
		if (!reducing(state))
			connection_of(sk)->prr_delivered = 0;
		if (next == TCP_CA_Recovery && state != TCP_CA_Recovery) {
			prr_on_entry(sk);
			hold(sk, bounds_of(sk), next);
		}
	} else if (reducing(state)) {
		// A Recovery whose undo_marker is gone was taken back: its window stands.
		if (state == TCP_CA_CWR || tp->undo_marker)
			prr_finish(sk);
		hold(sk, bounds_of(sk), next);
	}
}

// The kernel sizes the bursts that leave now by the pacing rate as this leaves it, and looks at the rate
// again for the host's queue. What is raised for that ends with its bounds, also where no ACK comes. With
// nothing out, when the largest bursts leave, it is lowered until the first of them is on its way.
static __always_inline void reconsider_small_queue(struct sock *sk)
{
	if (!connection_of(sk)->queue_raised)
		return;
	if (!tcp_sk(sk)->packets_out || !may_raise_small_queue(sk, bounds_of(sk)))
		lower_small_queue(sk);
}

// Something waits to leave, and the window has not been looked at. What leaves first after a time with
// nothing out finds the window reduced, and within its bounds. Returns what hold() says.
HOOK_BODY u8 connection_before_sending(struct sock *sk)
{
	reconsider_small_queue(sk);
	// The floor waits for the first ACK (connection_init), which there was where something has been
	// out and nothing is.
	if (tcp_sk(sk)->packets_out || !tcp_sk(sk)->max_packets_out)
		return 0;
	restart_after_idle(sk);
	return hold(sk, bounds_of(sk), ca_state(sk));
}

// The first segment after a time with nothing in flight leaves. How large its burst may be is decided.
HOOK_BODY void connection_after_idle(struct sock *sk)
{
	if (!connection_of(sk)->queue_raised)
		raise_small_queue(sk, bounds_of(sk));
}

// The connection leaves: what was done to its pacing is undone.
HOOK_BODY void connection_release(struct sock *sk)
{
	struct wakeai_bounds none = {};

	pace(sk, none);
}

#endif
