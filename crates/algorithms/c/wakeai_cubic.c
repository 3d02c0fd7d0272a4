// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_cubic: CUBIC (RFC 9438) with HyStart, under bounds.
//
// One source for two worlds. Whoever includes it has included a shim before, which gives
//   - the kernel's names: struct sock, struct tcp_sock, struct rate_sample and their fields;
//   - tcp_sk(sk), private_of(sk), ca_state(sk), cwnd_limited(sk), path_reorders(sk);
//   - last_sent(sk), idle_us(sk), rto_us(sk), restart_window(sk);
//   - small_queue_shift(sk) and queued_beside_payload(sk), for the host's queue;
//   - bounds_of(sk), the bounds that bind this socket now, and knobs_of(sk).

#include "connection.h"
#include "cubic_state.h"

static __always_inline struct wakeai_cubic *cubic_of(struct sock *sk)
{
	return private_of(sk);
}

#include "rtt_fair.h"
#include "curve.h"
#include "hystart.h"

// Forgets the curve and the round: a new connection, or one that timed out (as Linux does it:
// after a timeout the path is taken for a new one).
HOOK_BODY void cubic_forget(struct sock *sk)
{
	struct wakeai_cubic *ca = cubic_of(sk);

	ca->epoch_start_us = 0;
	ca->price = 0;
	ca->credit = 0;
	ca->window_max = 0;
	ca->delay_min_us = 0;
	ca->rtt_q6 = 0;
	ca->hystart_found = 0;
	hystart_new_round(sk);
}

HOOK_BODY void cubic_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = cubic_of(sk);

	cubic_forget(sk);
	if (!in_slow_start(tp)) {
		// Moved here with a window that its losses have shaped: go on from there.
		ca->hystart_found = 1;
		ca->window_max = tp->snd_cwnd;
	}
	connection_init(sk);
}

// One ACK. `acked` in segments, SACKed ones included; `lost` newly marked lost.
HOOK_BODY void cubic_on_ack(struct sock *sk, u32 acked, u32 lost, s32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bounds bounds = bounds_of(sk);

	if (rtt_us >= 0)
		hystart_on_rtt(sk, rtt_us ? rtt_us : 1);
	if (rtt_us > 0)
		rtt_fair_sample(sk, rtt_us, acked);
	acked = slow_start(sk, connection_acked(sk, acked, lost));
	if (acked && !at_ceiling(bounds, tp->snd_cwnd))
		tp->snd_cwnd = curve_advance(sk, tp->snd_cwnd, acked);
	// The curve starts anew from where the bounds put the window.
	if (connection_settle(sk, bounds))
		cubic_of(sk)->epoch_start_us = 0;
}

// The kernel is about to reduce the window: what is the new slow-start threshold?
HOOK_BODY u32 cubic_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = cubic_of(sk);
	u32 beta = knobs_of(sk)->beta_per_1024;
	u32 cwnd = tp->snd_cwnd;
	u32 reduced = (u64)cwnd * beta >> 10;

	ca->epoch_start_us = 0;
	ca->credit = 0;
	ca->window_max_undo = ca->window_max;
	// Fast convergence (RFC 9438 section 4.7): a flow that is losing ground gives up more.
	if (cwnd < ca->window_max && knobs_of(sk)->fast_convergence)
		ca->window_max = (u64)cwnd * (1024 + beta) >> 11;
	else
		ca->window_max = cwnd;
	return within(bounds_of(sk), reduced > 2 ? reduced : 2);
}

// The kernel takes a reduction back, because the loss was none (RFC 9438 section 4.9).
HOOK_BODY u32 cubic_undo_cwnd(struct sock *sk)
{
	struct wakeai_cubic *ca = cubic_of(sk);

	ca->epoch_start_us = 0;
	ca->window_max = ca->window_max_undo;
	return connection_undo_cwnd(sk);
}

HOOK_BODY void cubic_set_state(struct sock *sk, u8 next)
{
	if (next == TCP_CA_Loss)
		cubic_forget(sk);
	connection_set_state(sk, next);
}

HOOK_BODY void cubic_before_sending(struct sock *sk)
{
	if (connection_before_sending(sk))
		cubic_of(sk)->epoch_start_us = 0;
}

// The first segment after a time with nothing in flight leaves. That was no time of growth (RFC 9438
// section 5.8).
HOOK_BODY void cubic_after_idle(struct sock *sk)
{
	struct wakeai_cubic *ca = cubic_of(sk);

	if (ca->epoch_start_us)
		ca->epoch_start_us += idle_us(sk);
	connection_after_idle(sk);
}

HOOK_BODY void cubic_release(struct sock *sk)
{
	connection_release(sk);
}
