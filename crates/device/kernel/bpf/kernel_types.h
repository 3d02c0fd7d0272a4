/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel types that our programs use, with only the members that they use. When libbpf loads
 * the programs, it takes the real offsets from the running kernel's type information (BTF). So this
 * file replaces a vmlinux.h of 100,000 lines, and fits every kernel.
 */
#ifndef WAKEAI_KERNEL_TYPES_H
#define WAKEAI_KERNEL_TYPES_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
enum { false, true };

/* The parts of <linux/bpf.h> that BTF does not have in the form that our programs need. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
};

enum {
	AF_INET = 2,
	AF_INET6 = 10,
	SOL_TCP = 6,
	TCP_WINDOW_CLAMP = 10,
	TCP_BPF_SNDCWND_CLAMP = 1002,
	TCP_CONGESTION = 13,
	TCP_CA_NAME_MAX = 16,
	TCP_ECN_OK = 1,
	TCP_INFINITE_SSTHRESH = 0x7fffffff,
	TCP_CONG_NON_RESTRICTED = 1,
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	NETIF_F_SG_BIT = 0,
	NETIF_F_TSO_BIT = 16,
};

enum { TCP_ESTABLISHED = 1, TCP_SYN_RECV = 3, TCP_FIN_WAIT1 = 4, TCP_FIN_WAIT2 = 5, TCP_CLOSE = 7, TCP_CLOSE_WAIT = 8, TCP_LAST_ACK = 9, TCP_LISTEN = 10, TCP_CLOSING = 11 };
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum tcp_ca_event { CA_EVENT_TX_START };
enum { BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct netns_ipv4 {
	u8 sysctl_tcp_slow_start_after_idle;
	int sysctl_tcp_reordering;
	int sysctl_tcp_adv_win_scale; /* used before Linux 6.6 */
	int sysctl_tcp_min_tso_segs;
};

struct net {
	u64 net_cookie;
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

typedef struct {
	s64 counter;
} atomic64_t;

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct net_device {
	int ifindex;
	u64 features;
};

struct dst_entry {
	struct net_device *dev;
};

struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
	int sk_rx_dst_ifindex;
	int sk_rcvbuf;
	int sk_wmem_queued;
	u32 sk_pacing_status;
	u8 sk_pacing_shift;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
};

struct inet_sock {
	__be16 inet_sport;
};

struct inet_connection_sock {
	struct {
		u32 lrcvtime;
		u16 rcv_mss;
	} icsk_ack;
	const struct tcp_congestion_ops *icsk_ca_ops;
	__u32 icsk_rto;
	__u8 icsk_ca_state : 5;
	__u8 icsk_ca_setsockopt : 1;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_rack {
	u32 rtt_us;
};

struct tcp_options_received {
	u16 tstamp_ok : 1;
	u16 rcv_wscale : 4;
	u16 mss_clamp;
};

struct tcp_sock {
	u64 bytes_received;
	u32 window_clamp;
	u32 rcv_wnd;
	u16 advmss;
	u8 scaling_ratio; /* new in Linux 6.6 */
	struct {
		u32 rtt_us;
	} rcv_rtt_est;
	struct tcp_options_received rx_opt;
	bool is_mptcp; /* with CONFIG_MPTCP */
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;
	u64 tcp_wstamp_ns;
	u64 tcp_mstamp;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 prr_delivered;
	u32 prr_out;
	u32 packets_out;
	u32 max_packets_out;
	u32 lsndtime;
	u32 reordering;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 delivered;
	u32 lost;
	u32 app_limited;
	u64 delivered_mstamp;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 srtt_us;
	u32 rttvar_us;
	u32 mss_cache;
	u32 undo_marker;
	u32 tlp_high_seq;
	struct tcp_rack rack;
	struct minmax rtt_min;
	u8 ecn_flags;
	u8 is_cwnd_limited : 1;
	u8 rate_app_limited : 1;
};

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_ack_delayed;
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	u32 flags;
};

struct bpf_struct_ops_link {
};

struct bpf_sock;

struct bpf_sock_ops {
	u32 op;
	union {
		struct bpf_sock *sk;
	};
};

/* The context of programs that see packets. */
struct __sk_buff {
	u32 len;
	u32 protocol;
	u32 ifindex;
	u64 tstamp;
	u32 gso_segs;
	union {
		struct bpf_sock *sk;
	};
};

struct sk_buff;
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_map;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

#endif
