// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Applies the bounds of a connection, a floor and a ceiling, to its congestion window.

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

// Puts the window within its bounds. In Loss (the state after a timeout) the floor does not apply,
// because there the loss window of RFC 5681 probes the path.
//
// Returns whether the bounds changed the window or stop its growth. An algorithm then drops the
// segments that it has counted towards the next growth. Otherwise the window would jump when the
// bounds are lifted.
static __always_inline u8 hold(struct sock *sk, struct wakeai_bounds bounds, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;
	u32 held = state == TCP_CA_Loss ? under_ceiling(bounds, cwnd) : within(bounds, cwnd);
	u8 bound = held != cwnd || at_ceiling(bounds, held);

	if (held > tp->snd_cwnd_clamp)
		held = tp->snd_cwnd_clamp;
	tp->snd_cwnd = held ? held : 1;
	return bound;
}

#endif
