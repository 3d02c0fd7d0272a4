/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An iterator that bounds the receive windows of connections, and the congestion windows of those whose
 * algorithms apply no bounds. It puts back those that no bounds apply to any more. It takes no request: the maps of the bounds say what has to be done, so that agents of several
 * namespaces and the process that undoes a dead agent's changes can share it.
 */
#include "senders.h"
#include "windows.h"

const volatile u32 windows_stale_after_ms = 1500; /* set at load (registration/load.rs) */

/* Makes the compiler describe the type, from which the build makes the same in Rust. */
enum window_outcome *outcome_layout;

static __always_inline enum window_outcome handle_window(struct sock *sk, struct bounds_value *bounds)
{
	u8 state = sk->__sk_common.skc_state;
	bool arrives = state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2;

	return arrives && bounds && bounds->receive ? bound_window(sk, bounds->receive) : free_window(sk);
}

static __always_inline enum window_outcome handle_sender(struct sock *sk, struct bounds_value *bounds)
{
	if (bounds && bounds->ceiling && !applies_bounds(sk))
		return bound_sender(sk, bounds->ceiling);
	return free_sender(sk);
}

static __always_inline void tell(struct bpf_iter__tcp *ctx, u8 outcome)
{
	if (outcome != WINDOW_ALONE)
		bpf_seq_write(ctx->meta->seq, &outcome, sizeof(outcome));
}

/* Writes one byte, a `window_outcome`, for each window that it handles. */
SEC("iter/tcp")
int bound_windows(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : (void *)0;
	struct bounds_value *bounds;

	if (!tp || skc->skc_state == TCP_LISTEN)
		return 0;
	bounds = bounds_in_force((struct sock *)tp, windows_stale_after_ms);
	tell(ctx, handle_window((struct sock *)tp, bounds));
	tell(ctx, handle_sender((struct sock *)tp, bounds));
	return 0;
}
