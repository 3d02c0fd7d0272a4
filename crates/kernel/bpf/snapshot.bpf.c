/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* An iterator that reads every connection that may still send. */
#include "program.h"

SEC("iter/tcp")
int snapshot_connections(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct snapshot_value value = {};
	struct tcp_sock *tp;

	if (!skc || !may_send(skc->skc_state))
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp)
		return 0;
	read_socket(&value.socket, tp);
	read_figures(&value.figures, tp);
	bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, value.algorithm, sizeof(value.algorithm));
	bpf_seq_write(ctx->meta->seq, &value, sizeof(value));
	return 0;
}
