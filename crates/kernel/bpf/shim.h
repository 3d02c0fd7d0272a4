/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the algorithms' shared source expects of its world: here, the kernel. */
#ifndef WAKEAI_SHIM_H
#define WAKEAI_SHIM_H

#define HOOK_BODY static __always_inline

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

/* Whether the window is what holds the sender back (RFC 7661; Linux's test). */
static __always_inline u8 cwnd_limited(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Whether pacing has set the next departure (and its time stamp) to a time to come. */
static __always_inline u8 departure_ahead(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return tp->tcp_wstamp_ns / 1000 > tp->tcp_mstamp;
}

/* A sysctl of the socket's namespace. Their sizes differ from kernel to kernel. */
#define ipv4_sysctl(sk, name)                                                    \
	({                                                                       \
		struct netns_ipv4 *ipv4 = &(sk)->__sk_common.skc_net.net->ipv4;  \
		BPF_CORE_READ_BITFIELD(ipv4, name);                              \
	})

/* Whether the path is known to reorder further than duplicate ACKs speak of a loss (Linux's test). */
static __always_inline u8 path_reorders(struct sock *sk)
{
	return tcp_sk(sk)->reordering > (u32)ipv4_sysctl(sk, sysctl_tcp_reordering);
}

/* RFC 6928's initial window; 0 where the administrator wants no restart after idleness. */
static __always_inline u32 restart_window(struct sock *sk)
{
	return ipv4_sysctl(sk, sysctl_tcp_slow_start_after_idle) ? 10 : 0;
}

#endif
