// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_cubic for user space: the hooks as functions.

#include "shim.h"
#include "../state.h"

static __always_inline struct wakeai_bounds bounds_of(const struct sock *sk)
{
	return (struct wakeai_bounds){ sk->bound_floor, sk->bound_ceiling, sk->bound_pacing };
}

static __always_inline const struct wakeai_knobs *knobs_of(const struct sock *sk)
{
	return (const struct wakeai_knobs *)sk->knobs;
}

_Static_assert(sizeof(struct wakeai_knobs) <= 6 * sizeof(u32), "knobs has room for them");

#include "../wakeai_cubic.c"

void wakeai_cubic_init(struct sock *sk)
{
	cubic_init(sk);
}

void wakeai_cubic_release(struct sock *sk)
{
	cubic_release(sk);
}

void wakeai_cubic_on_ack(struct sock *sk, u32 acked, u32 lost, s32 rtt_us)
{
	cubic_on_ack(sk, acked, lost, rtt_us);
}

u32 wakeai_cubic_ssthresh(struct sock *sk)
{
	return cubic_ssthresh(sk);
}

u32 wakeai_cubic_undo_cwnd(struct sock *sk)
{
	return cubic_undo_cwnd(sk);
}

void wakeai_cubic_set_state(struct sock *sk, u8 next)
{
	cubic_set_state(sk, next);
}

void wakeai_cubic_after_idle(struct sock *sk)
{
	cubic_after_idle(sk);
}
