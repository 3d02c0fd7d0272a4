/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Moves connections to an algorithm, records their previous algorithm, and moves them back to it.
 * Iterators reach existing connections; the socket operations of a cgroup reach its new
 * connections. A new connection that has the algorithm by default is not moved, and gets only a
 * target rate.
 */
#include "program.h"

/* The assignment: the algorithm, and the connections that are to use it. User space also writes it
 * while the programs run. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct assignment);
} assignment SEC(".maps");

/* The result of the last iterator. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct assign_outcome);
} outcome SEC(".maps");

/* The connections that processes have moved. The kernel removes an entry with its socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct moved_value);
} moved_sockets SEC(".maps");

/* The map of wakeai_av's targets, shared with its programs. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u64);
} socket_targets SEC(".maps");

static __always_inline struct assignment *asked_for(void)
{
	u32 only = 0;

	return bpf_map_lookup_elem(&assignment, &only);
}

static __always_inline int count(long error)
{
	u32 only = 0;
	struct assign_outcome *done = bpf_map_lookup_elem(&outcome, &only);

	if (done && error)
		done->failed++;
	else if (done)
		done->done++;
	return 0;
}

static __always_inline void name_of(char *name, const struct inet_connection_sock *icsk)
{
	bpf_probe_read_kernel(name, TCP_CA_NAME_MAX, icsk->icsk_ca_ops->name);
}

static __always_inline bool goes_there(struct tcp_sock *tp, const struct assignment *asked)
{
	struct net *net = ((struct sock *)tp)->__sk_common.skc_net.net;
	struct socket_value socket = {};
	const u32 *remote = (const u32 *)socket.remote;

	if (asked->netns_cookie && asked->netns_cookie != net->net_cookie)
		return false;
	read_addresses(&socket, tp);
	for (int i = 0; i < 4; i++) {
		if ((remote[i] ^ asked->to[i]) & asked->to_mask[i])
			return false;
	}
	return !asked->to_port || asked->to_port == socket.remote_port;
}

/* Whether the socket has the algorithm by default or by its route, and has not chosen it itself. */
static __always_inline bool has_by_default(struct tcp_sock *tp, const struct assignment *asked)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)tp;
	char name[TCP_CA_NAME_MAX] = {};

	if (BPF_CORE_READ_BITFIELD(icsk, icsk_ca_setsockopt))
		return false;
	name_of(name, icsk);
	return same_name(name, asked->algorithm) && goes_there(tp, asked);
}

static __always_inline void aim(u64 cookie, const struct assignment *asked)
{
	u64 rate = asked->rate;

	/* If the assignment has no target, a target that another process has set stays. */
	if (rate)
		bpf_map_update_elem(&socket_targets, &cookie, &rate, 0);
}

/*
 * Moves a socket. Its options are set through `handle`, and its storage is found through `sk`. In a
 * program for socket operations these are different objects.
 */
static __always_inline long take(void *handle, void *sk, u64 cookie, struct assignment *asked)
{
	char name[TCP_CA_NAME_MAX] = {}, algorithm[TCP_CA_NAME_MAX];
	struct moved_value *moved;
	bool is_first;
	long error;

	error = bpf_getsockopt(handle, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	if (error)
		return error;
	moved = bpf_sk_storage_get(&moved_sockets, sk, (void *)0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!moved)
		return -1;
	/* After several moves, the algorithm before the first move is restored. */
	is_first = !moved->owner;
	if (is_first)
		__builtin_memcpy(moved->before, name, sizeof(name));
	__builtin_memcpy(algorithm, asked->algorithm, sizeof(algorithm));
	if (!same_name(name, algorithm))
		error = bpf_setsockopt(handle, SOL_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm));
	if (error) {
		if (is_first)
			bpf_sk_storage_delete(&moved_sockets, sk);
		return error;
	}
	moved->owner = asked->owner;
	aim(cookie, asked);
	return 0;
}

static __always_inline struct tcp_sock *full_socket(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;

	return skc ? bpf_skc_to_tcp_sock(skc) : (void *)0;
}

SEC("iter/tcp")
int take_existing(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = full_socket(ctx);
	struct sock *sk = (struct sock *)tp;
	struct assignment *asked = asked_for();
	u64 cookie;

	if (!tp || !asked || !may_send(sk->__sk_common.skc_state))
		return 0;
	cookie = bpf_get_socket_cookie(sk);
	if ((asked->cookie && asked->cookie != cookie) || !goes_there(tp, asked))
		return 0;
	return count(take(tp, tp, cookie, asked));
}

SEC("sockops")
int take_in_cgroup(struct bpf_sock_ops *ctx)
{
	struct assignment *asked = asked_for();
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp;

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (!asked || !sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp && goes_there(tp, asked))
		take(ctx, sk, bpf_get_socket_cookie(ctx), asked);
	return 1;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(aim_new, struct sock *sk, int old_state, int new_state)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct assignment *asked = asked_for();

	if (new_state == TCP_ESTABLISHED && tp && asked && asked->rate && has_by_default(tp, asked))
		aim(bpf_get_socket_cookie(sk), asked);
	return 0;
}

/* Sets the present target of the connections in the assignment, and counts them. */
SEC("iter/tcp")
int aim_existing(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = full_socket(ctx);
	struct assignment *asked = asked_for();
	struct moved_value *moved;
	bool is_assigned;

	if (!tp || !asked || !may_send(((struct sock *)tp)->__sk_common.skc_state))
		return 0;
	if (asked->by_default) {
		is_assigned = has_by_default(tp, asked);
	} else {
		moved = bpf_sk_storage_get(&moved_sockets, tp, (void *)0, 0);
		is_assigned = moved && moved->owner == asked->owner;
	}
	if (!is_assigned)
		return 0;
	aim(bpf_get_socket_cookie(tp), asked);
	return count(0);
}

/* Moves the socket to `before`, or to `otherwise` where the kernel no longer has `before`. */
static __always_inline long put(struct tcp_sock *tp, char *before, char *otherwise)
{
	return bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, before, TCP_CA_NAME_MAX) &&
	       bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, otherwise, TCP_CA_NAME_MAX);
}

SEC("iter/tcp")
int give_back_moved(struct bpf_iter__tcp *ctx)
{
	char before[TCP_CA_NAME_MAX], otherwise[TCP_CA_NAME_MAX], name[TCP_CA_NAME_MAX] = {};
	struct tcp_sock *tp = full_socket(ctx);
	struct assignment *asked = asked_for();
	struct moved_value *moved;
	long error = 0;
	u64 cookie;

	if (!tp || !asked)
		return 0;
	moved = bpf_sk_storage_get(&moved_sockets, tp, (void *)0, 0);
	if (!moved || moved->owner != asked->owner)
		return 0;
	__builtin_memcpy(before, moved->before, sizeof(before));
	__builtin_memcpy(otherwise, asked->otherwise, sizeof(otherwise));
	/* A socket that was later moved to a third algorithm keeps it. */
	if (!bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, name, sizeof(name)) &&
	    same_name(name, asked->algorithm) && !same_name(name, before))
		error = put(tp, before, otherwise);
	cookie = bpf_get_socket_cookie(tp);
	bpf_map_delete_elem(&socket_targets, &cookie);
	bpf_sk_storage_delete(&moved_sockets, tp);
	return count(error);
}

/*
 * Moves back the connections that have the algorithm by default. It moves none if the algorithm
 * is still the namespace's default, because then another process has made it the default.
 * Listening sockets are moved only if the algorithm will be unloaded. Otherwise this is not
 * necessary: a connection that a listening socket accepts gets the default, unless an application
 * has set the listening socket's algorithm.
 */
SEC("iter/tcp")
int give_back_defaults(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = full_socket(ctx);
	struct assignment *asked = asked_for();
	char otherwise[TCP_CA_NAME_MAX];
	u64 cookie;

	if (!tp || !asked || !has_by_default(tp, asked))
		return 0;
	if (same_name(asked->otherwise, asked->algorithm))
		return 0;
	if (((struct sock *)tp)->__sk_common.skc_state == TCP_LISTEN && !asked->listeners)
		return 0;
	cookie = bpf_get_socket_cookie(tp);
	bpf_map_delete_elem(&socket_targets, &cookie);
	__builtin_memcpy(otherwise, asked->otherwise, sizeof(otherwise));
	return count(bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, otherwise, sizeof(otherwise)));
}
