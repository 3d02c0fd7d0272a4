/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The maps of the bounds, and how the bounds of a socket are found in them. */
#ifndef WAKEAI_MAPS_H
#define WAKEAI_MAPS_H

#include "program.h"

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

/*
 * The bounds of a socket: its own, or those of the interface over which it is routed. They apply only while
 * the agent of that interface writes heartbeats.
 */
static __always_inline struct bounds_value *bounds_in_force(struct sock *sk, u32 stale_after_ms)
{
	struct interface_key interface = {
		.netns_cookie = to_follow(sk)->__sk_common.skc_net.net->net_cookie,
		.ifindex = ifindex_of(to_follow(sk)),
	};
	u64 *heartbeat_ns = bpf_map_lookup_elem(&heartbeats, &interface);
	s64 allowed = stale_after_ms * 1000000ull;
	u64 now = bpf_ktime_get_ns();
	struct bounds_value *own;
	u64 cookie;

	if (!heartbeat_ns)
		return (void *)0;
	/* A heartbeat from the future does not count, because it would be valid for too long. */
	if ((s64)(now - *heartbeat_ns) > allowed || (s64)(*heartbeat_ns - now) > allowed)
		return (void *)0;
	cookie = sk->__sk_common.skc_cookie.counter;
	own = bpf_map_lookup_elem(&socket_bounds, &cookie);
	return own ? own : bpf_map_lookup_elem(&interface_bounds, &interface);
}

#endif
