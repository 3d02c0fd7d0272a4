/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's version of the functions that the algorithms' source calls. The simulator, which
 * shares that source, has a version of its own.
 */
#ifndef WAKEAI_SHIM_H
#define WAKEAI_SHIM_H

#define HOOK_BODY static __always_inline

void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

/*
 * The socket, to read pointers from. Since Linux 6.4 the verifier searches the names of all types of the
 * kernel, twice, for each pointer that a program reads from a struct that it trusts. It trusts a hook's
 * arguments. It does not trust the result of this kernel function, whose call it replaces by a move
 * between registers. Linux before 6.2 does not have the function, and does not need it
 * (docs/decisions/021-restart.md has the times).
 */
static __always_inline struct sock *to_follow(struct sock *sk)
{
	if (!bpf_core_type_exists(struct bpf_struct_ops_link)) /* new in 6.4 */
		return sk;
	return bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct sock));
}

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline void *private_of(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline u8 ca_state(struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;

	return BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
}

/* Whether the congestion window limits the sender (RFC 7661). The test is Linux's. */
static __always_inline u8 cwnd_limited(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Whether pacing has scheduled the next segment, and its time stamp, for a future time. */
static __always_inline u8 departure_ahead(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return tp->tcp_wstamp_ns / 1000 > tp->tcp_mstamp;
}

/* The time until pacing lets the next segment depart. */
static __always_inline u32 us_to_departure(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 departure_us = tp->tcp_wstamp_ns / 1000, now_us = tp->tcp_mstamp;

	return departure_us > now_us ? departure_us - now_us : 0;
}

/* The smallest RTT that TCP knows; ~0: none. */
static __always_inline u32 min_rtt_us(struct sock *sk)
{
	return tcp_sk(sk)->rtt_min.s[0].v;
}

/*
 * The amount of data that may wait in the host's queue, as a shift of the pacing rate. The driver
 * sets it. mac80211 lets more data wait than other drivers, so that aggregates fill.
 */
static __always_inline u32 small_queue_shift(struct sock *sk)
{
	return sk->sk_pacing_shift & 31;
}

/*
 * The bytes that a packet counts for in the host's queue in addition to its payload. The kernel
 * counts the memory that the packet takes (truesize). The figures here are those of x86-64 and
 * arm64. They depend on the device:
 *   - A device with scatter-gather gets packets that share the burst's data. Each takes 832 bytes more than
 *     its payload in Linux 6.18, 960 in Debian's 6.12 and 1280 in 6.1. The smallest of these is used, so
 *     that no kernel lets more packets wait than requested.
 *   - A device without scatter-gather gets copies. Devices of mac80211 that compute no checksums are
 *     of this kind. The memory of a copy comes in powers of two, so a payload above 1400 bytes takes
 *     4096 bytes, and 256 more for the packet's description.
 *   - A device that segments bursts itself gets whole bursts, whose overhead is negligible.
 */
enum { BESIDE_SHARED_PAYLOAD = 832, BESIDE_COPIED_PAYLOAD = 4096 + 256 - 1448, LARGEST_IN_2048 = 1400 };

static __always_inline u32 queued_beside_payload(struct sock *sk)
{
	struct dst_entry *dst = to_follow(sk)->sk_dst_cache;
	struct net_device *dev = dst ? dst->dev : (void *)0;
	u64 features = dev ? dev->features : 0;

	if (!dev || features >> NETIF_F_TSO_BIT & 1)
		return 0;
	if (features >> NETIF_F_SG_BIT & 1 || tcp_sk(sk)->mss_cache <= LARGEST_IN_2048)
		return BESIDE_SHARED_PAYLOAD;
	return BESIDE_COPIED_PAYLOAD;
}

/* Reads a sysctl of the socket's namespace, whose size differs from kernel to kernel. */
#define ipv4_sysctl(sk, name)                                             \
	({                                                                \
		struct net *net = to_follow(sk)->__sk_common.skc_net.net; \
		struct netns_ipv4 *ipv4 = &net->ipv4;                     \
		BPF_CORE_READ_BITFIELD(ipv4, name);                       \
	})

/* Whether the path reorders by more than the duplicate ACK threshold. The test is Linux's. */
static __always_inline u8 path_reorders(struct sock *sk)
{
	return tcp_sk(sk)->reordering > (u32)ipv4_sysctl(sk, sysctl_tcp_reordering);
}

/*
 * The window for the restart after an idle time: the initial window of RFC 6928. It is 0 where the
 * administrator has switched this restart off.
 */
static __always_inline u32 restart_window(struct sock *sk)
{
	return ipv4_sysctl(sk, sysctl_tcp_slow_start_after_idle) ? 10 : 0;
}

#endif
