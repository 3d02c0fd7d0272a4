// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The floor and the ceiling.

#ifndef WAKEAI_BOUNDS_H
#define WAKEAI_BOUNDS_H

static __always_inline u8 at_ceiling(struct wakeai_bounds bounds, u32 cwnd)
{
	return bounds.ceiling && cwnd >= bounds.ceiling;
}

static __always_inline u32 under_ceiling(struct wakeai_bounds bounds, u32 cwnd)
{
	return at_ceiling(bounds, cwnd) ? bounds.ceiling : cwnd;
}

static __always_inline u32 within(struct wakeai_bounds bounds, u32 cwnd)
{
	return under_ceiling(bounds, cwnd < bounds.floor ? bounds.floor : cwnd);
}

// Puts the window within its bounds. In Loss the floor does not hold: the path has just proved
// that it carries nothing, and RFC 5681's loss window is what probes it.
static __always_inline void hold(struct sock *sk, struct wakeai_bounds bounds, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = ca_of(sk);
	u32 cwnd = tp->snd_cwnd;
	u32 held = state == TCP_CA_Loss ? under_ceiling(bounds, cwnd) : within(bounds, cwnd);

	// The curve starts anew from where the bounds put the window. Otherwise it would run on
	// under the ceiling, and jump when the bounds are lifted.
	if (held != cwnd || at_ceiling(bounds, held))
		ca->epoch_start_us = 0;
	if (held > tp->snd_cwnd_clamp)
		held = tp->snd_cwnd_clamp;
	tp->snd_cwnd = held ? held : 1;
}

#endif
