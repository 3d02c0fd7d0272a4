/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* An iterator that reads the connections that may still send. */
#include "program.h"

struct snapshot_request request;

/*
 * Whether a connection has no data and has sent nothing lately. A connection under CUBIC or Reno is never
 * idle here, because it has to be read to be moved to the bounded algorithm.
 */
static __always_inline bool is_idle(struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)tp;
	const struct tcp_congestion_ops *ops = icsk->icsk_ca_ops;
	u32 silent = (u32)bpf_jiffies64() - tp->lsndtime;

	return !tp->packets_out && tp->write_seq == tp->snd_una && silent > request.idle_jiffies &&
	       !has_name(ops, (algorithm_name){ "cubic" }) &&
	       !has_name(ops, (algorithm_name){ "reno" });
}

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
	if (request.ifindex && request.ifindex != ifindex_of((struct sock *)tp))
		return 0;
	if (is_idle(tp) && request.idle++ >= request.idle_most)
		return 0;
	read_socket(&value.socket, tp);
	read_figures(&value.figures, tp);
	bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, value.algorithm, sizeof(value.algorithm));
	bpf_seq_write(ctx->meta->seq, &value, sizeof(value));
	return 0;
}
