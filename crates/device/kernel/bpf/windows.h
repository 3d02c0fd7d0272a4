/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Bounds the receive window of a socket by its clamp (TCP_WINDOW_CLAMP), and puts the clamp back. Unlike
 * the bounds of sending, which expire by themselves, a clamp stays on its socket until it is put back
 * (docs/decisions/031-receive-windows.md).
 */
#ifndef WAKEAI_WINDOWS_H
#define WAKEAI_WINDOWS_H

#include "maps.h"

/* The sockets whose clamp is ours. The kernel removes an entry with its socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct window_value);
} receive_windows SEC(".maps") __weak;

/* The largest window that the scale of the window (RFC 7323) can say. */
static __always_inline u32 largest_window(struct tcp_sock *tp)
{
	struct tcp_options_received *options = &tp->rx_opt;

	return 65535u << BPF_CORE_READ_BITFIELD(options, rcv_wscale);
}

/* The largest window that the receive buffer allows. The kernel's own clamp is this one. */
static __always_inline u32 window_of_buffer(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 largest = largest_window(tp);
	s64 bytes = sk->sk_rcvbuf;

	/*
	 * The kernel leaves a part of the buffer to what packets take beside their data. Since Linux 6.6 this
	 * part is measured. Before, a sysctl sets it.
	 */
	if (bpf_core_field_exists(tp->scaling_ratio)) {
		bytes = bytes * tp->scaling_ratio >> 8;
	} else {
		s32 scale = ipv4_sysctl(sk, sysctl_tcp_adv_win_scale);

		bytes = scale > 0 ? bytes - (bytes >> (scale & 31)) : bytes >> (-scale & 31);
	}
	return bytes < largest ? bytes : largest;
}

/* The clamp that bounds the window to so many segments. */
static __always_inline u32 clamp_for(struct tcp_sock *tp, u32 segments)
{
	struct tcp_options_received *options = &tp->rx_opt;
	u32 scale = BPF_CORE_READ_BITFIELD(options, rcv_wscale);
	/* An even number, because the ACK of a single segment is delayed (RFC 1122 section 4.2.3.2). */
	u64 even = segments < 2 ? 2 : ((u64)segments + 1) & ~1ull;
	u64 bytes = even * peer_mss(tp), largest = largest_window(tp);

	/* The peer sees the window in units of its scale. */
	bytes = ((bytes + (1ull << scale) - 1) >> scale) << scale;
	return bytes < largest ? bytes : largest;
}

static __always_inline long set_clamp(struct sock *sk, u32 clamp)
{
	return bpf_setsockopt(sk, SOL_TCP, TCP_WINDOW_CLAMP, &clamp, sizeof(clamp));
}

/* Takes the socket's clamp for what has to be put back. */
static __always_inline void note_found(struct window_value *entry, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 present = tp->window_clamp, of_buffer = window_of_buffer(sk);

	/* The kernel's first clamp leaves room for a segment. */
	entry->is_own = (u64)present + tp->advmss < of_buffer;
	/* The largest one stands for none: the kernel sets its first one after the algorithm's first hook. */
	entry->found = present < largest_window(tp) ? present : of_buffer;
}

/* Whether the kernel has set the socket's clamp since we wrote it, as it does when the buffer grows. */
static __always_inline bool is_of_kernel(struct sock *sk)
{
	return tcp_sk(sk)->window_clamp == window_of_buffer(sk);
}

/*
 * Bounds the window to so many segments. The entry, the record of what was found, is made before the clamp
 * is overwritten.
 */
static __always_inline enum window_outcome bound_window(struct sock *sk, u32 segments)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct window_value *entry;
	bool has_moved = true;
	u32 clamp;

	/* The window of MPTCP is that of the whole connection. */
	if (is_multipath(tp))
		return WINDOW_MULTIPATH;
	/* Nothing can arrive, and nothing is gained while the application does not read. */
	if (!tp->rcv_wnd)
		return WINDOW_CLOSED;
	entry = bpf_sk_storage_get(&receive_windows, sk, (void *)0, 0);
	if (!entry) {
		entry = bpf_sk_storage_get(&receive_windows, sk, (void *)0, BPF_SK_STORAGE_GET_F_CREATE);
		if (!entry)
			return WINDOW_REFUSED;
		note_found(entry, sk);
	} else if (tp->window_clamp == entry->written) {
		has_moved = false;
	} else if (!is_of_kernel(sk)) {
		note_found(entry, sk); /* the application has set one meanwhile */
	}
	clamp = clamp_for(tp, segments);
	if (entry->is_own && entry->found < clamp)
		clamp = entry->found;
	if (clamp != tp->window_clamp && set_clamp(sk, clamp))
		return WINDOW_REFUSED;
	entry->written = tp->window_clamp; /* the kernel raises a clamp that is too small for a packet */
	return has_moved ? WINDOW_MOVED : WINDOW_BOUND;
}

/* Puts back the clamp that was found. The kernel's own has grown with the buffer meanwhile. */
static __always_inline enum window_outcome free_window(struct sock *sk)
{
	struct window_value *entry = bpf_sk_storage_get(&receive_windows, sk, (void *)0, 0);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 clamp, of_buffer = window_of_buffer(sk);

	if (!entry)
		return WINDOW_ALONE;
	clamp = entry->found;
	if (!entry->is_own && clamp < of_buffer)
		clamp = of_buffer;
	/* Any other clamp was set by the kernel or the application since. */
	if (tp->window_clamp == entry->written && clamp != tp->window_clamp && set_clamp(sk, clamp))
		return WINDOW_REFUSED;
	bpf_sk_storage_delete(&receive_windows, sk);
	return WINDOW_FREED;
}

#endif
