/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An algorithm's .bpf.c defines ALGORITHM (see hooks.h) and includes this before the source that kernel
 * and simulator share. It has the kernel's types, the maps of the bounds, which all algorithms share,
 * and the knobs: the parameters that are set when a program is loaded. It also has those functions of
 * shim.h that need a knob.
 */
#ifndef WAKEAI_BOUNDED_H
#define WAKEAI_BOUNDED_H

#include "program.h"
#include "../../../core/algorithms/c/state.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

/*
 * The build links the objects of all algorithms into one, so that libbpf reads the kernel's types once.
 * So the name of a variable or program contains the algorithm's name. The maps that all algorithms
 * share are weak: the linker makes one map of those with the same name.
 */

/* Bounds of single sockets, by socket cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct bounds_value);
} socket_bounds SEC(".maps") __weak;

/* Bounds of all other sockets, by the interface over which they are routed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct interface_key);
	__type(value, struct bounds_value);
} interface_bounds SEC(".maps") __weak;

/* Time of the last heartbeat of an interface's agent, CLOCK_MONOTONIC in ns. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct interface_key);
	__type(value, u64);
} heartbeats SEC(".maps") __weak;

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

/*
 * The bounds of a socket. They apply only while the agent of the interface over which the socket is
 * routed writes heartbeats.
 */
static __always_inline struct wakeai_bounds bounds_of(struct sock *sk)
{
	struct wakeai_bounds none = {};
	struct interface_key interface = {
		.netns_cookie = to_follow(sk)->__sk_common.skc_net.net->net_cookie,
		.ifindex = ifindex_of(to_follow(sk)),
	};
	u64 *heartbeat_ns = bpf_map_lookup_elem(&heartbeats, &interface);
	s64 allowed = KNOBS.stale_after_ms * 1000000ull;
	u64 now = bpf_ktime_get_ns();
	struct bounds_value *found;
	u64 cookie;

	if (!heartbeat_ns)
		return none;
	/* A heartbeat from the future does not count, because it would be valid for too long. */
	if ((s64)(now - *heartbeat_ns) > allowed || (s64)(*heartbeat_ns - now) > allowed)
		return none;
	cookie = sk->__sk_common.skc_cookie.counter;
	found = bpf_map_lookup_elem(&socket_bounds, &cookie);
	if (!found)
		found = bpf_map_lookup_elem(&interface_bounds, &interface);
	if (!found)
		return none;
	return (struct wakeai_bounds){ found->floor, found->ceiling, found->pacing,
				       found->small_queue };
}

#endif
