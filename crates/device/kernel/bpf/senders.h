/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Bounds the congestion window of a socket whose algorithm applies no bounds, by the clamp that every algorithm of
 * the kernel obeys (snd_cwnd_clamp), and puts the clamp back. Like the clamp of a receive window it stays on its
 * socket until it is put back (docs/decisions/031-receive-windows.md).
 */
#ifndef WAKEAI_SENDERS_H
#define WAKEAI_SENDERS_H

#include "maps.h"

/* The sockets whose clamp is ours. The kernel removes an entry with its socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sender_value);
} bounded_senders SEC(".maps") __weak;

/* Whether the algorithm looks up bounds itself. */
static __always_inline bool applies_bounds(struct sock *sk)
{
	const struct tcp_congestion_ops *ops = ((struct inet_connection_sock *)sk)->icsk_ca_ops;
	const char prefix[] = "wakeai_";

	for (u32 i = 0; i < sizeof(prefix) - 1; i++)
		if (ops->name[i] != prefix[i])
			return false;
	return true;
}

/* The kernel takes the same number for ssthresh, so a window below the clamp grows to it as in slow start. */
static __always_inline long set_sender_clamp(struct sock *sk, u32 segments)
{
	s32 clamp = segments < TCP_INFINITE_SSTHRESH ? segments : TCP_INFINITE_SSTHRESH;

	return bpf_setsockopt(sk, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &clamp, sizeof(clamp));
}

/* Bounds the congestion window to so many segments, at least two. */
static __always_inline enum window_outcome bound_sender(struct sock *sk, u32 segments)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sender_value *entry;

	/* A subflow of MPTCP shares its data with others. */
	if (is_multipath(tp))
		return WINDOW_MULTIPATH;
	entry = bpf_sk_storage_get(&bounded_senders, sk, (void *)0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!entry)
		return WINDOW_REFUSED;
	/* A new entry is zero, and no clamp is. Any other clamp was set by a route or a program since. */
	if (tp->snd_cwnd_clamp != entry->written)
		entry->found = tp->snd_cwnd_clamp;
	if (segments < 2)
		segments = 2;
	if (segments > entry->found)
		segments = entry->found;
	/* It is written only when it changes, so that ssthresh stays the algorithm's in between. */
	if (segments != tp->snd_cwnd_clamp && set_sender_clamp(sk, segments))
		return WINDOW_REFUSED;
	entry->written = tp->snd_cwnd_clamp;
	return SENDER_BOUND;
}

/* Puts back the clamp that was found. */
static __always_inline enum window_outcome free_sender(struct sock *sk)
{
	struct sender_value *entry = bpf_sk_storage_get(&bounded_senders, sk, (void *)0, 0);

	if (!entry)
		return WINDOW_ALONE;
	if (tcp_sk(sk)->snd_cwnd_clamp == entry->written && entry->found != entry->written &&
	    set_sender_clamp(sk, entry->found))
		return WINDOW_REFUSED;
	bpf_sk_storage_delete(&bounded_senders, sk);
	return SENDER_FREED;
}

#endif
