// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The hooks of an algorithm in user space, as a table that src/algorithm.rs mirrors. A file
// includes this file first, then the source of the algorithm, and then uses EXPORT_HOOKS.

#ifndef WAKEAI_NATIVE_HOOKS_H
#define WAKEAI_NATIVE_HOOKS_H

#include "shim.h"
#include "../state.h"

static __always_inline struct wakeai_bounds bounds_of(const struct sock *sk)
{
	return (struct wakeai_bounds){ sk->bound_floor, sk->bound_ceiling, sk->bound_pacing,
				       sk->bound_small_queue };
}

static __always_inline u32 small_queue_shift(const struct sock *sk)
{
	return sk->sk_pacing_shift & 31;
}

// The bytes that the host's queue counts for a packet in addition to its payload. The simulator
// counts the length of the packet.
static __always_inline u32 queued_beside_payload(const struct sock *sk)
{
	(void)sk;
	return PACKET_HEADERS;
}

static __always_inline const struct wakeai_knobs *knobs_of(const struct sock *sk)
{
	return (const struct wakeai_knobs *)sk->knobs;
}

_Static_assert(sizeof(struct wakeai_knobs) <= 8 * sizeof(u32), "tcp_sock.knobs is large enough");

struct wakeai_hooks {
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	void (*on_ack)(struct sock *sk, const struct rate_sample *rs);
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 next);
	void (*before_sending)(struct sock *sk);
	void (*after_idle)(struct sock *sk);
	u32 (*k_q10)(const struct sock *sk); // null where there is no curve
	u32 paces; // 1: the algorithm paces by itself and needs samples of the delivery rate
};

// The hooks of an algorithm that does not use the delivery rate. Initialisers of further hooks may follow its name.
#define EXPORT_HOOKS(algorithm, ...)                                                               \
	static void algorithm##_on_sample(struct sock *sk, const struct rate_sample *rs)           \
	{                                                                                          \
		algorithm##_on_ack(sk, rs->acked_sacked, rs->losses, rs->rtt_us);                  \
	}                                                                                          \
	EXPORT_HOOKS_WITH(algorithm, algorithm##_on_sample, __VA_ARGS__)

// The hooks of an algorithm whose `handler` takes the samples of the delivery rate.
#define EXPORT_HOOKS_WITH(algorithm, handler, ...)             \
	extern const struct wakeai_hooks wakeai_##algorithm;   \
	const struct wakeai_hooks wakeai_##algorithm = {       \
		.init = algorithm##_init,                      \
		.release = algorithm##_release,                \
		.on_ack = handler,                             \
		.ssthresh = algorithm##_ssthresh,              \
		.undo_cwnd = algorithm##_undo_cwnd,            \
		.set_state = algorithm##_set_state,            \
		.before_sending = algorithm##_before_sending,  \
		.after_idle = algorithm##_after_idle,          \
		__VA_ARGS__                                    \
	}

#endif
