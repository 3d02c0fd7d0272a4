/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Iterators that read the connections that may still send or receive. */
#include "program.h"

struct snapshot_request request;

/* Whether data may still move over a connection in this state. */
static __always_inline bool may_carry(u8 state)
{
	return may_send(state) || state == TCP_FIN_WAIT2;
}

/*
 * Whether a connection has nothing to send, and has sent and received nothing lately. A connection under CUBIC or
 * Reno never counts as idle, because user space has to see it to move it to one of our algorithms.
 */
static __always_inline bool is_idle(struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)tp;
	const struct tcp_congestion_ops *ops = icsk->icsk_ca_ops;
	u32 now = bpf_jiffies64(), silent = now - tp->lsndtime;
	u32 unheard = now - icsk->icsk_ack.lrcvtime;

	return !tp->packets_out && tp->write_seq == tp->snd_una && silent > request.idle_jiffies &&
	       unheard > request.idle_jiffies &&
	       !has_name(ops, (algorithm_name){ "cubic" }) &&
	       !has_name(ops, (algorithm_name){ "reno" });
}

/* The connections that `snapshot_connections` wrote when it last ran with `request.marks`. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u8);
} marked SEC(".maps");

static __always_inline void write_connection(struct seq_file *seq, struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)tp;
	const u64 *name = (const u64 *)icsk->icsk_ca_ops->name;
	struct snapshot_value value = {};
	u64 *to = (u64 *)value.algorithm;

	read_socket(&value.socket, tp);
	read_figures(&value.figures, tp);
	read_receiving(&value.receiving, tp);
	to[0] = name[0];
	to[1] = name[1];
	bpf_seq_write(seq, &value, sizeof(value));
}

SEC("iter/tcp")
int snapshot_connections(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp;

	if (!skc || !may_carry(skc->skc_state))
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp)
		return 0;
	if (request.ifindex && request.ifindex != ifindex_of((struct sock *)tp))
		return 0;
	if (is_idle(tp) && request.idle++ >= request.idle_most) {
		if (request.marks)
			bpf_sk_storage_delete(&marked, tp);
		return 0;
	}
	if (request.marks)
		bpf_sk_storage_get(&marked, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	write_connection(ctx->meta->seq, tp);
	return 0;
}

/*
 * Reads the marked connections. This iterator does not lock the sockets, so the figures of one
 * connection may come from different moments.
 */
SEC("iter/bpf_sk_storage_map")
int snapshot_marked(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock_common *skc = (struct sock_common *)ctx->sk;
	struct tcp_sock *tp;

	if (!skc || !may_carry(skc->skc_state))
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp || (request.ifindex && request.ifindex != ifindex_of((struct sock *)tp)))
		return 0;
	write_connection(ctx->meta->seq, tp);
	return 0;
}
