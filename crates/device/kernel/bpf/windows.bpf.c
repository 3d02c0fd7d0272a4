/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An iterator that bounds the receive windows of connections and puts back those that no bounds apply to
 * any more. It takes no request: the maps of the bounds say what has to be done, so that agents of several
 * namespaces and the process that undoes a dead agent's changes can share it.
 */
#include "windows.h"

const volatile u32 windows_stale_after_ms = 1500; /* set at load (registration/load.rs) */

/* Makes the compiler describe the type, from which the build makes the same in Rust. */
enum window_outcome *outcome_layout;

/* The bound of a connection's window, segments; 0: none. */
static __always_inline u32 window_bound(struct sock *sk)
{
	u8 state = sk->__sk_common.skc_state;
	struct bounds_value *bounds;

	if (state != TCP_ESTABLISHED && state != TCP_FIN_WAIT1 && state != TCP_FIN_WAIT2)
		return 0; /* nothing arrives any more */
	bounds = bounds_in_force(sk, windows_stale_after_ms);
	return bounds ? bounds->receive : 0;
}

/* Writes for each connection that it handles one byte, a `window_outcome`. */
SEC("iter/tcp")
int bound_windows(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : (void *)0;
	u32 segments;
	u8 outcome;

	if (!tp || skc->skc_state == TCP_LISTEN)
		return 0;
	segments = window_bound((struct sock *)tp);
	outcome = segments ? bound_window((struct sock *)tp, segments) : free_window((struct sock *)tp);
	if (outcome != WINDOW_ALONE)
		bpf_seq_write(ctx->meta->seq, &outcome, sizeof(outcome));
	return 0;
}
