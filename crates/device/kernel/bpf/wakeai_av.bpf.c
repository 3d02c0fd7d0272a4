/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* wakeai_av in the kernel: a struct_ops around the shared source, and the targets. */
#define ALGORITHM av
#define PLAIN "reno"
#include "bounded.h"

/* The targets of single sockets in payload bytes per second, by socket cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u64);
} socket_targets SEC(".maps");

static __always_inline u64 target_rate(struct sock *sk)
{
	u64 cookie = sk->__sk_common.skc_cookie.counter;
	u64 *target = bpf_map_lookup_elem(&socket_targets, &cookie);

	return target ? *target : 0;
}

#include "../../../core/algorithms/c/wakeai_av.c"

#define FORGET bpf_map_delete_elem(&socket_targets, &cookie)
#include "hooks.h"
