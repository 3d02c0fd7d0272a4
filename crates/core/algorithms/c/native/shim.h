// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The types and functions that the algorithms' sources need, for user space. The fields have the
// names and meanings of the kernel's fields (include/linux/tcp.h). src/sock.rs mirrors the struct.

#ifndef WAKEAI_NATIVE_SHIM_H
#define WAKEAI_NATIVE_SHIM_H

#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
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
	u64 delivered_mstamp; // the time of the last delivery, as tcp_mstamp
	u64 departure_us;     // the next departure that pacing allows, as tcp_mstamp
	u32 delivered;
	u32 lost;
	u32 app_limited;
	u32 rtt_min_us; // ~0: none
	u32 knobs[8];
	u64 priv[13];
};

_Static_assert(sizeof(struct tcp_sock) == 328, "mirrored in src/sock.rs");

// What an ACK says about the delivery rate (draft-cheng-iccrg-delivery-rate-estimation). src/sock.rs mirrors the
// struct.
struct rate_sample {
	s64 interval_us; // the time in which `delivered` segments were delivered; not above 0: no sample
	s64 rtt_us;      // below 0: no sample
	u32 prior_delivered; // tcp_sock.delivered when the segment was sent that this ACK delivers
	s32 delivered;       // segments delivered since; below 0: no sample
	s32 losses;          // segments that were newly marked as lost
	u32 acked_sacked;    // segments that were newly delivered
	u32 prior_in_flight; // segments in flight before the ACK
	u32 is_app_limited;  // the application limited the sender when the segment was sent
	u32 is_ack_delayed;  // the ACK may have been delayed by its receiver
	u32 unused;
};

_Static_assert(sizeof(struct rate_sample) == 48, "mirrored in src/sock.rs");

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

// The smallest RTT that TCP knows; ~0: none.
static __always_inline u32 min_rtt_us(const struct sock *sk)
{
	return sk->rtt_min_us;
}

// The time until pacing lets the next segment depart.
static __always_inline u32 us_to_departure(const struct sock *sk)
{
	return sk->departure_us > sk->tcp_mstamp ? sk->departure_us - sk->tcp_mstamp : 0;
}

// A number below `limit`, from which connections differ. It follows from the connection's state (by the mixing function of
// splitmix64), so that a run is reproduced by its seed.
static __always_inline u32 random_below(const struct sock *sk, u32 limit)
{
	u64 mixed = sk->tcp_mstamp * 0x9e3779b97f4a7c15 + sk->snd_nxt + ((u64)sk->delivered << 32);

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return (u32)((mixed ^ mixed >> 31) >> 33) % limit;
}

static __always_inline u32 restart_window(const struct sock *sk)
{
	return sk->restart_window;
}

#endif
