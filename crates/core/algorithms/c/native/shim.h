// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The types and functions that the algorithms' sources need, for user space. The fields have the
// names and meanings of the kernel's fields (include/linux/tcp.h). src/sock.rs mirrors the struct.

#ifndef WAKEAI_NATIVE_SHIM_H
#define WAKEAI_NATIVE_SHIM_H

#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#undef __always_inline // the C library has one too
#define __always_inline inline __attribute__((always_inline))
#define HOOK_BODY static inline

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { SK_PACING_NONE, SK_PACING_NEEDED };
enum { TCP_INFINITE_SSTHRESH = 0x7fffffff };

// In the kernel struct tcp_sock contains struct sock. Here both are one struct.
#define sock tcp_sock

struct tcp_sock {
	u64 tcp_mstamp; // now, in us
	u64 sk_pacing_rate;
	u64 sk_max_pacing_rate;
	u32 sk_pacing_status;
	u32 sk_pacing_shift;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 prr_delivered;
	u32 prr_out;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 srtt_us; // times 8
	u32 rttvar_us;
	u32 mss_cache;
	u32 reordering;
	u32 undo_marker;
	u32 is_cwnd_limited;
	u32 ca_state;
	// Fields that the kernel's structs do not have.
	u32 restart_window;
	u32 rto_us;
	u32 bound_floor;
	u32 bound_ceiling;
	u64 last_sent_us; // as tcp_mstamp
	u64 target_rate;
	u64 bound_pacing;
	u64 bound_small_queue;
	u32 knobs[8];
	u64 priv[13];
};

_Static_assert(sizeof(struct tcp_sock) == 296, "mirrored in src/sock.rs");

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return sk;
}

static __always_inline void *private_of(struct sock *sk)
{
	return sk->priv;
}

static __always_inline u8 ca_state(const struct sock *sk)
{
	return sk->ca_state;
}

static __always_inline u8 cwnd_limited(const struct sock *sk)
{
	return sk->is_cwnd_limited ||
	       (sk->snd_cwnd < sk->snd_ssthresh && sk->snd_cwnd < 2 * sk->max_packets_out);
}

// Whether the path is known to reorder by more than three segments, which is Linux's default of
// net.ipv4.tcp_reordering.
static __always_inline u8 path_reorders(const struct sock *sk)
{
	return sk->reordering > 3;
}

// The low bits of the time at which the last segment with data was sent.
static __always_inline u32 last_sent(const struct sock *sk)
{
	return sk->last_sent_us;
}

// The time since the last segment with data was sent.
static __always_inline u64 idle_us(const struct sock *sk)
{
	return sk->tcp_mstamp > sk->last_sent_us ? sk->tcp_mstamp - sk->last_sent_us : 0;
}

static __always_inline u32 rto_us(const struct sock *sk)
{
	return sk->rto_us;
}

// wakeai_av's target in payload bytes per second; 0: none.
static __always_inline u64 target_rate(const struct sock *sk)
{
	return sk->target_rate;
}

// Whether the departure of a segment is scheduled for later. In user space it never is, because a
// segment is stamped when it is sent.
static __always_inline u8 departure_ahead(const struct sock *sk)
{
	(void)sk;
	return 0;
}

static __always_inline u32 restart_window(const struct sock *sk)
{
	return sk->restart_window;
}

#endif
