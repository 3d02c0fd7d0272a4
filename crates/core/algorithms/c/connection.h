// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The part that all algorithms share. They implement cong_control instead of cong_avoid, because
// the kernel does not call cong_avoid in Recovery and CWR, and bounds must hold there, too. With
// cong_control the algorithm also has to reduce the window (prr.h) and to set the pacing rate
// (pacing.h).

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
	// A connection may change to this algorithm during a reduction.
	ca->prr_delivered = tp->prr_delivered;
	// The ceiling applies to the first flight. The floor applies only from the first ACK on, so that
	// it does not flood a path that is not measured yet.
	tp->snd_cwnd = under_ceiling(bounds_of(sk), tp->snd_cwnd);
	pace(sk, bounds_of(sk));
}

// The first half of the handling of an ACK. It continues a reduction of the window. Returns the number
// of acknowledged segments for which the window may grow. The number is 0 in three cases:
//   - during a reduction;
//   - while the window does not limit the sender, because an unused window shows nothing about the path
//     (RFC 9438 section 5.8);
//   - for a duplicate ACK (RFC 5681). But where the path is known to reorder, all segments that arrived
//     count, as in Linux.
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

// Grows the window by a segment per acknowledged segment, up to `target`. Returns the number of
// acknowledged segments that are left.
static __always_inline u32 grow_to(struct sock *sk, u32 target, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 step;

	if (tp->snd_cwnd >= target)
		return acked;
	step = target - tp->snd_cwnd;
	if (step > acked)
		step = acked;
	tp->snd_cwnd += step;
	return acked - step;
}

// Slow start (RFC 5681 section 3.1). Returns the acknowledged segments that are left for congestion
// avoidance.
HOOK_BODY u32 slow_start(struct sock *sk, u32 acked)
{
	return grow_to(sk, tcp_sk(sk)->snd_ssthresh, acked);
}

// The growth in congestion avoidance, in segments: one for each `price` acknowledged segments.
// `credit` has the segments that were counted before. Counted at a higher price, they still give at
// most one segment of growth.
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

// The second half of the handling of an ACK: applies the bounds and sets the pacing rate. Returns the
// result of hold().
HOOK_BODY u8 connection_settle(struct sock *sk, struct wakeai_bounds bounds)
{
	u8 bound = hold(sk, bounds, ca_state(sk));

	pace(sk, bounds);
	return bound;
}

// The window after a reduction is undone.
HOOK_BODY u32 connection_undo_cwnd(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;

	return under_ceiling(bounds_of(sk), cwnd);
}

// Called before the state changes. ca_state() still gives the old state.
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
		// A Recovery without undo_marker was undone, so it keeps its window.
		if (state == TCP_CA_CWR || tp->undo_marker)
			prr_finish(sk);
		hold(sk, bounds_of(sk), next);
	}
}

// Called before segments are sent. The kernel derives the size of bursts from the pacing rate, and
// from that the limit of the host's queue. So a raised rate is lowered here in two cases. The first
// is that its bounds have expired and no ACK has come since. The second is that nothing is
// outstanding: the rate then stays low until the first burst is sent, because the largest bursts
// are sent at that time.
static __always_inline void reconsider_small_queue(struct sock *sk)
{
	if (!connection_of(sk)->queue_raised)
		return;
	if (!tcp_sk(sk)->packets_out || !may_raise_small_queue(sk, bounds_of(sk)))
		lower_small_queue(sk);
}

// Called when segments wait to be sent, before the kernel reads the window. While nothing is
// outstanding, it reduces the window for the idle time and applies the bounds. Returns the result
// of hold().
HOOK_BODY u8 connection_before_sending(struct sock *sk)
{
	reconsider_small_queue(sk);
	// The floor applies from the first ACK on (connection_init). Where segments were outstanding and
	// none are now, there has been an ACK.
	if (tcp_sk(sk)->packets_out || !tcp_sk(sk)->max_packets_out)
		return 0;
	restart_after_idle(sk);
	return hold(sk, bounds_of(sk), ca_state(sk));
}

// Called when the first segment after an idle time is sent. The kernel has fixed the size of its
// burst before.
HOOK_BODY void connection_after_idle(struct sock *sk)
{
	if (!connection_of(sk)->queue_raised)
		raise_small_queue(sk, bounds_of(sk));
}

// Called when the connection changes to another algorithm. Undoes the changes to its pacing.
HOOK_BODY void connection_release(struct sock *sk)
{
	struct wakeai_bounds none = {};

	pace(sk, none);
}

#endif
