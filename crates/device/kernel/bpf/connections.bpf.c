/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* An iterator that moves connections to another algorithm. */
#include "program.h"

struct move_request request;

static __always_inline bool is_asked_for(const char *name)
{
	if (!request.from_count)
		return !same_name(name, request.to);
	for (u32 i = 0; i < MOVE_FROM_MAX; i++) {
		if (i < request.from_count && same_name(name, request.from[i]))
			return true;
	}
	return false;
}

/* The socket, if it is a full TCP socket on the requested interface. */
static __always_inline struct tcp_sock *candidate(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp;

	if (!skc)
		return (void *)0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp)
		return (void *)0;
	if (request.ifindex && request.ifindex != ifindex_of((struct sock *)tp))
		return (void *)0;
	return tp;
}

static __always_inline void count(long error)
{
	if (error)
		request.failed++;
	else
		request.moved++;
}

SEC("iter/tcp")
int move_connections(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = candidate(ctx);
	char name[TCP_CA_NAME_MAX] = {};

	if (!tp || bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		return 0;
	if (is_asked_for(name))
		count(bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, request.to, sizeof(request.to)));
	return 0;
}
