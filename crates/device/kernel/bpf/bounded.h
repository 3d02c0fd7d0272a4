/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An algorithm's .bpf.c defines ALGORITHM (see hooks.h) and includes this before the source that kernel
 * and simulator share. It has the kernel's types, the maps of the bounds, which all algorithms share,
 * and the knobs: the parameters that are set when a program is loaded. It also has those functions of
 * shim.h that need a knob.
 */
#ifndef WAKEAI_BOUNDED_H
#define WAKEAI_BOUNDED_H

#include "windows.h"
#include "../../../core/algorithms/c/state.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

/* 1 once user space unloads the algorithms. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} wakeai_retired SEC(".maps") __weak;

#ifndef RTT_REF_MS
#define RTT_REF_MS 0 /* the reference RTT; only wakeai_rtt has one */
#endif

#define KNOBS JOIN(knobs, ALGORITHM)
#define BOUNDS_WINDOWS JOIN(bounds_windows, ALGORITHM)

const volatile struct wakeai_knobs KNOBS = {
	.beta_per_1024 = 717,
	.c_per_1024 = 410,
	.fast_convergence = 1,
	.hystart = 1,
	.tcp_friendliness = 1,
	.rtt_ref_ms = RTT_REF_MS,
	/* Both are set at load (registration/load.rs). */
	.stale_after_ms = 1500,
	.tick_us = 4000,
};

static __always_inline const volatile struct wakeai_knobs *knobs_of(struct sock *sk)
{
	return &KNOBS;
}

/* Whether this kernel changes the clamp of a running connection; set at load. */
const volatile u32 BOUNDS_WINDOWS = 0;

/* The time at which the last segment with data was sent, in jiffies. */
static __always_inline u32 last_sent(struct sock *sk)
{
	return tcp_sk(sk)->lsndtime;
}

/* The time since the last segment with data was sent, in us. */
static __always_inline u64 idle_us(struct sock *sk)
{
	s32 ticks = (u32)bpf_jiffies64() - tcp_sk(sk)->lsndtime;

	return ticks > 0 ? (u64)ticks * KNOBS.tick_us : 0;
}

/* The retransmission timeout. */
static __always_inline u32 rto_us(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_rto * KNOBS.tick_us;
}

/* The bounds of a socket; none where none are in force. */
static __always_inline struct wakeai_bounds bounds_of(struct sock *sk)
{
	struct bounds_value *found = bounds_in_force(sk, KNOBS.stale_after_ms);

	if (!found)
		return (struct wakeai_bounds){};
	return (struct wakeai_bounds){ found->floor, found->ceiling, found->pacing,
				       found->small_queue };
}

/* Bounds the receive window of a connection whose scale of the window is chosen. */
static __always_inline void bound_own_window(struct sock *sk)
{
	u8 state = sk->__sk_common.skc_state;
	struct bounds_value *found;

	/* A clamp that is set earlier would choose the scale. */
	if (!BOUNDS_WINDOWS || (state != TCP_ESTABLISHED && state != TCP_SYN_RECV))
		return;
	found = bounds_in_force(sk, KNOBS.stale_after_ms);
	if (found && found->receive)
		bound_window(sk, found->receive);
}

/*
 * Bounds the window again before the first segment that answers data. From Linux 6.12 on the kernel sets the
 * clamp anew when the first segment of full size arrives. That is the server's half of a handshake of TLS,
 * which a request follows.
 */
static __always_inline void bound_window_of_answer(struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;

	if ((s32)(icsk->icsk_ack.lrcvtime - tcp_sk(sk)->lsndtime) >= 0)
		bound_own_window(sk);
}

#endif
