// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_cubic: CUBIC (RFC 9438) with HyStart, under bounds.
//
// One source for two worlds. Whoever includes it has included a shim before, which gives
//   - the kernel's names: struct sock, struct tcp_sock, struct rate_sample and their fields;
//   - tcp_sk(sk), ca_of(sk), ca_state(sk), cwnd_limited(sk), restart_window(sk);
//   - bounds_of(sk), the bounds that bind this socket now, and knobs_of(sk).
//
// It takes cong_control, not cong_avoid: the kernel calls cong_avoid neither in Recovery nor in
// CWR, and bounds must hold there too. The price is that window reduction (prr.h) and pacing
// (pacing.h) are ours to do.

#include "state.h"
#include "bounds.h"
#include "curve.h"
#include "hystart.h"
#include "pacing.h"
#include "prr.h"

// Forgets the curve and the round: a new connection, or one that timed out (as Linux does it:
// after a timeout the path is taken for a new one).
HOOK_BODY void cubic_forget(struct sock *sk)
{
	struct wakeai_cubic *ca = ca_of(sk);

	ca->epoch_start_us = 0;
	ca->credit = 0;
	ca->window_max = 0;
	ca->delay_min_us = 0;
	ca->hystart_found = 0;
	hystart_new_round(sk);
}

HOOK_BODY void cubic_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = ca_of(sk);

	cubic_forget(sk);
	ca->last_una = tp->snd_una;
	ca->last_ack_us = tp->tcp_mstamp;
	// A connection may be moved here in the middle of a reduction.
	ca->prr_delivered = tp->prr_delivered;
	ca->window_before = tp->snd_cwnd;
	if (!in_slow_start(tp)) {
		// Moved here with a window that its losses have shaped: go on from there.
		ca->hystart_found = 1;
		ca->window_max = tp->snd_cwnd;
	}
	// The first flight obeys the ceiling; the floor waits for the first ACK, so that a path
	// nobody has measured yet is not flooded.
	tp->snd_cwnd = under_ceiling(bounds_of(sk), tp->snd_cwnd);
	pace(sk, bounds_of(sk));
}

// Something was acknowledged, and the window is not being reduced: slow start, then the curve.
HOOK_BODY void cubic_grow(struct sock *sk, struct wakeai_bounds bounds, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;

	if (!cwnd_limited(sk))
		return; // a window that is not used proves nothing (RFC 9438 section 5.8)
	if (in_slow_start(tp)) {
		u32 room = tp->snd_ssthresh - cwnd;
		u32 step = acked < room ? acked : room;

		cwnd += step;
		acked -= step;
	}
	if (acked && !at_ceiling(bounds, cwnd))
		cwnd = curve_advance(sk, cwnd, acked);
	tp->snd_cwnd = cwnd;
}

// One ACK. `acked` in segments, SACKed ones included; `lost` newly marked lost.
HOOK_BODY void cubic_on_ack(struct sock *sk, u32 acked, u32 lost, s32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = ca_of(sk);
	struct wakeai_bounds bounds = bounds_of(sk);
	u8 state = ca_state(sk);
	u8 advanced = tp->snd_una != ca->last_una;

	ca->last_una = tp->snd_una;
	ca->last_ack_us = tp->tcp_mstamp;
	if (rtt_us >= 0)
		hystart_on_rtt(sk, rtt_us ? rtt_us : 1);
	if (reducing(state))
		prr_on_ack(sk, acked, lost, advanced);
	else if (acked && advanced)
		cubic_grow(sk, bounds, acked);
	hold(sk, bounds, state);
	pace(sk, bounds);
}

// The kernel is about to reduce the window: what is the new slow-start threshold?
HOOK_BODY u32 cubic_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = ca_of(sk);
	u32 beta = knobs_of(sk)->beta_per_1024;
	u32 cwnd = tp->snd_cwnd;
	u32 reduced = (u64)cwnd * beta >> 10;

	ca->epoch_start_us = 0;
	ca->window_max_undo = ca->window_max;
	ca->window_before = cwnd;
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
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = ca_of(sk);
	u32 cwnd = tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;

	ca->epoch_start_us = 0;
	ca->window_max = ca->window_max_undo;
	return under_ceiling(bounds_of(sk), cwnd);
}

// Called before the state changes: ca_state() still gives the old one.
HOOK_BODY void cubic_set_state(struct sock *sk, u8 next)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = ca_of(sk);
	u8 state = ca_state(sk);

	if (next == TCP_CA_Loss) {
		cubic_forget(sk);
	} else if (reducing(next) && !reducing(state)) {
		ca->prr_delivered = 0;
	} else if (reducing(state) && !reducing(next)) {
		// A Recovery whose undo_marker is gone was taken back: its window stands.
		if (state == TCP_CA_CWR || tp->undo_marker)
			prr_finish(sk);
		hold(sk, bounds_of(sk), next);
	}
}

// The first segment after a time with nothing in flight.
HOOK_BODY void cubic_after_idle(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = ca_of(sk);
	u64 now = tp->tcp_mstamp;
	u64 idle_us;

	if (!ca->last_ack_us || now <= ca->last_ack_us)
		return;
	idle_us = now - ca->last_ack_us;
	ca->last_ack_us = now;
	// Idle time is no time of growth (RFC 9438 section 5.8).
	if (ca->epoch_start_us)
		ca->epoch_start_us += idle_us;
	restart_after_idle(sk, idle_us);
	hold(sk, bounds_of(sk), ca_state(sk));
}

// The connection leaves: what was done to its pacing is undone.
HOOK_BODY void cubic_release(struct sock *sk)
{
	struct wakeai_bounds none = {};

	pace(sk, none);
}
