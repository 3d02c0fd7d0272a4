/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reads a connection's identity and figures. */
#ifndef WAKEAI_FIGURES_H
#define WAKEAI_FIGURES_H

#include "shim.h"
#include "../../../core/algorithms/c/cubic_state.h"

/*
 * The interface through which the socket sends, by its cached route. When routes change, the cached
 * route is missing for a moment. Then this is the interface of the last received packet.
 */
static __always_inline u32 ifindex_of(struct sock *sk)
{
	struct dst_entry *dst = sk->sk_dst_cache;
	struct net_device *dev = dst ? dst->dev : (void *)0;

	return dev ? dev->ifindex : sk->sk_rx_dst_ifindex;
}

static __always_inline void copy_address(u8 *to, const __be32 *v6, __be32 v4, bool is_v4)
{
	__be32 *words = (__be32 *)to;

	words[0] = is_v4 ? 0 : v6[0];
	words[1] = is_v4 ? 0 : v6[1];
	words[2] = is_v4 ? bpf_htonl(0xffff) : v6[2];
	words[3] = is_v4 ? v4 : v6[3];
}

/*
 * The local port. When the event of a close comes, the socket has already released its port number
 * (skc_num is 0). Then the port is inet_sport, the port in its segments.
 */
static __always_inline u16 local_port_of(struct tcp_sock *tp)
{
	u16 port = ((struct sock *)tp)->__sk_common.skc_num;

	return port ? port : bpf_ntohs(((struct inet_sock *)tp)->inet_sport);
}

static __always_inline void read_addresses(struct socket_value *to, struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	struct sock_common *skc = &sk->__sk_common;
	bool is_v4 = skc->skc_family == AF_INET;
	__be32 local[4] = {}, remote[4] = {};

	if (!is_v4) {
		for (int i = 0; i < 4; i++) {
			local[i] = skc->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			remote[i] = skc->skc_v6_daddr.in6_u.u6_addr32[i];
		}
	}
	copy_address(to->local, local, skc->skc_rcv_saddr, is_v4);
	copy_address(to->remote, remote, skc->skc_daddr, is_v4);
	to->local_port = local_port_of(tp);
	to->remote_port = bpf_ntohs(skc->skc_dport);
}

static __always_inline void read_socket(struct socket_value *to, struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	struct net *net = sk->__sk_common.skc_net.net;

	read_addresses(to, tp);
	to->cookie = bpf_get_socket_cookie(sk);
	to->netns_cookie = net->net_cookie;
	to->netns_inode = net->ns.inum;
	to->ifindex = ifindex_of(sk);
	to->zero = 0;
}

/* A name in the format of `tcp_congestion_ops`: padded with NUL. */
typedef union {
	char text[TCP_CA_NAME_MAX];
	u64 words[TCP_CA_NAME_MAX / 8];
} algorithm_name;

static __always_inline bool has_name(const struct tcp_congestion_ops *ops, algorithm_name asked)
{
	const u64 *words = (const u64 *)ops->name;

	return words[0] == asked.words[0] && words[1] == asked.words[1];
}

/* K of CUBIC's window curve, in wakeai_cubic and wakeai_rtt. Other algorithms have no K. */
static __always_inline u32 k_q10_of(struct inet_connection_sock *icsk)
{
	const struct tcp_congestion_ops *ops = icsk->icsk_ca_ops;

	if (!has_name(ops, (algorithm_name){ "wakeai_cubic" }) &&
	    !has_name(ops, (algorithm_name){ "wakeai_rtt" }))
		return NO_K;
	return cubic_k_q10((const struct wakeai_cubic *)icsk->icsk_ca_priv);
}

static __always_inline void read_figures(struct figures_value *to, struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)tp;

	to->pacing_rate = sk->sk_pacing_rate;
	to->cwnd = tp->snd_cwnd;
	to->ssthresh = tp->snd_ssthresh;
	to->srtt_us = tp->srtt_us >> 3; /* the kernel keeps 8 times the value */
	to->latest_rtt_us = tp->rack.rtt_us;
	to->min_rtt_us = tp->rtt_min.s[0].v;
	to->packets_out = tp->packets_out;
	to->sacked_out = tp->sacked_out;
	to->lost_out = tp->lost_out;
	to->retrans_out = tp->retrans_out;
	to->send_queue = tp->write_seq - tp->snd_una;
	to->delivered = tp->delivered;
	to->rate_delivered = tp->rate_delivered;
	to->rate_interval_us = tp->rate_interval_us;
	to->mss = tp->mss_cache;
	to->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	to->app_limited = BPF_CORE_READ_BITFIELD(tp, rate_app_limited);
	to->zero = 0;
	to->k_q10 = k_q10_of(icsk);
}

/* The kernel's first estimate of the size of the peer's segments is at most this (RFC 1122 section 4.2.2.6). */
#define DEFAULT_MSS 536
/* After so many bytes an estimate that is as small counts as measured. */
#define BYTES_OF_ESTIMATE 65536

/*
 * The size of the peer's segments, bytes. Until segments of full size have arrived, it is the smaller one
 * of the sizes that the two ends have announced.
 */
static __always_inline u32 peer_mss(struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)tp;
	struct tcp_options_received *options = &tp->rx_opt;
	u32 measured = icsk->icsk_ack.rcv_mss, announced = tp->advmss;

	if (measured > DEFAULT_MSS || (measured && tp->bytes_received > BYTES_OF_ESTIMATE))
		return measured;
	/* A connection that is accepted subtracts the timestamps (12 bytes) only when it is established. */
	if (((struct sock *)tp)->__sk_common.skc_state == TCP_SYN_RECV &&
	    BPF_CORE_READ_BITFIELD(options, tstamp_ok))
		announced -= 12;
	return announced < options->mss_clamp ? announced : options->mss_clamp;
}

/* Whether the socket carries a part of an MPTCP connection (RFC 8684). */
static __always_inline bool is_multipath(struct tcp_sock *tp)
{
	return bpf_core_field_exists(tp->is_mptcp) && BPF_CORE_READ_BITFIELD(tp, is_mptcp);
}

static __always_inline void read_receiving(struct receiving_value *to, struct tcp_sock *tp)
{
	to->received = tp->bytes_received;
	to->rtt_us = tp->rcv_rtt_est.rtt_us >> 3; /* the kernel keeps 8 times the value */
	to->window = tp->rcv_wnd;
	to->mss = peer_mss(tp);
	to->zero = 0;
}

#endif
