/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* wakeai_cubic in the kernel: a struct_ops around the shared source, and the bounds' maps. */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include "intf.h"
#include "figures.h"
#include "shim.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Bounds of single sockets, by socket cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct bounds_value);
} socket_bounds SEC(".maps");

/* Bounds of the other sockets that are routed over an interface. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct interface_key);
	__type(value, struct bounds_value);
} interface_bounds SEC(".maps");

/* When the agent of an interface was last heard, CLOCK_MONOTONIC in ns. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct interface_key);
	__type(value, u64);
} heartbeats SEC(".maps");

#include "../../algorithms/c/state.h"

const volatile struct wakeai_knobs knobs = {
	.beta_per_1024 = 717,
	.c_per_1024 = 410,
	.fast_convergence = 1,
	.hystart = 1,
	.stale_after_ms = 1500,
};

static __always_inline const volatile struct wakeai_knobs *knobs_of(struct sock *sk)
{
	return &knobs;
}

/*
 * The interface decides first: without a fresh heartbeat for the one that the socket is routed
 * over, nothing binds, not even bounds of the socket's own.
 */
static __always_inline struct wakeai_bounds bounds_of(struct sock *sk)
{
	struct wakeai_bounds none = {};
	struct interface_key interface = {
		.netns_cookie = sk->__sk_common.skc_net.net->net_cookie,
		.ifindex = ifindex_of(sk),
	};
	u64 *heard_ns = bpf_map_lookup_elem(&heartbeats, &interface);
	struct bounds_value *found;
	u64 cookie;

	if (!heard_ns || bpf_ktime_get_ns() > *heard_ns + knobs.stale_after_ms * 1000000ull)
		return none;
	cookie = sk->__sk_common.skc_cookie.counter;
	found = bpf_map_lookup_elem(&socket_bounds, &cookie);
	if (!found)
		found = bpf_map_lookup_elem(&interface_bounds, &interface);
	if (!found)
		return none;
	return (struct wakeai_bounds){ found->floor, found->ceiling, found->pacing };
}

#include "../../algorithms/c/wakeai_cubic.c"

/* Set when the algorithm is unloaded. */
u32 retired;

/*
 * User space moves the connections that it can see to another algorithm. It cannot see those that
 * were closed with data under way and whose namespace has no name and no process any more: they
 * leave by themselves, at their next ACK or timeout. After true, the private area is not ours.
 */
static __always_inline bool left_for_good(struct sock *sk)
{
	char cubic[TCP_CA_NAME_MAX] = "cubic", reno[TCP_CA_NAME_MAX] = "reno";

	if (!retired)
		return false;
	return !bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, cubic, sizeof(cubic)) ||
	       !bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
}

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	cubic_init(sk);
}

SEC("struct_ops")
void BPF_PROG(release, struct sock *sk)
{
	u64 cookie = sk->__sk_common.skc_cookie.counter;

	cubic_release(sk);
	bpf_map_delete_elem(&socket_bounds, &cookie);
}

SEC("struct_ops")
u32 BPF_PROG(ssthresh, struct sock *sk)
{
	return cubic_ssthresh(sk);
}

SEC("struct_ops")
u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	return cubic_undo_cwnd(sk);
}

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 new_state)
{
	if (!left_for_good(sk))
		cubic_set_state(sk, new_state);
}

SEC("struct_ops")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		cubic_after_idle(sk);
}

/* cong_control as it is from Linux 6.10 on... */
SEC("struct_ops")
void BPF_PROG(cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	if (!left_for_good(sk))
		cubic_on_ack(sk, rs->acked_sacked, rs->losses, rs->rtt_us);
}

/* ... and as it was before. User space creates the map below that fits the kernel. */
SEC("struct_ops")
void BPF_PROG(cong_control_short, struct sock *sk, const struct rate_sample *rs)
{
	if (!left_for_good(sk))
		cubic_on_ack(sk, rs->acked_sacked, rs->losses, rs->rtt_us);
}

/* Without the flag no namespace but the first may make it its default. */
#define HOOKS                             \
	.init = (void *)init,             \
	.release = (void *)release,       \
	.ssthresh = (void *)ssthresh,     \
	.undo_cwnd = (void *)undo_cwnd,   \
	.set_state = (void *)set_state,   \
	.cwnd_event = (void *)cwnd_event, \
	.flags = TCP_CONG_NON_RESTRICTED, \
	.name = WAKEAI_ALGORITHM

SEC(".struct_ops.link")
struct tcp_congestion_ops wakeai_cubic = {
	HOOKS,
	.cong_control = (void *)cong_control,
};

SEC(".struct_ops.link")
struct tcp_congestion_ops wakeai_cubic_s = {
	HOOKS,
	.cong_control = (void *)cong_control_short,
};
