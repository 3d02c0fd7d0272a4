// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The state that every algorithm keeps per connection, the knobs (parameters of the algorithms),
// and the bounds.

#ifndef WAKEAI_STATE_H
#define WAKEAI_STATE_H

// The first member of each algorithm's own state. The state is in icsk_ca_priv, which has 104 bytes
// and is zero at first.
struct wakeai_connection {
	u32 last_una;
	u32 prr_delivered; // RFC 6937, segments
	u32 recovery_us;   // tcp_mstamp when the last Recovery began
	u32 recovery_cwnd; // the window at that time; 0: not needed any more
	u32 restarted_for; // last_sent() when the window was last reduced for idle time
	u8 paced_by_us;    // whether pace() has set sk_pacing_status
	u8 queue_raised;   // whether sk_pacing_rate is above the ordinary rate (raise_small_queue)
	u8 unused[2];
};

#define FITS_THE_PRIVATE_AREA(state) \
	_Static_assert(sizeof(state) <= 104, "icsk_ca_priv is 13 words of 64 bits")

static __always_inline struct wakeai_connection *connection_of(struct sock *sk)
{
	return private_of(sk);
}

// The parameters, which are fixed when the algorithm is loaded. Each algorithm uses only some of
// them.
struct wakeai_knobs {
	u32 beta_per_1024;    // the factor of the window at a loss; 0.7 in RFC 9438
	u32 c_per_1024;       // C of the curve in segments/s^3; 0.4 in RFC 9438
	u32 fast_convergence; // 0 or 1
	u32 hystart;          // 0: off; 1: as today; 2: half the growth of the RTT ends slow start (Linux before 3.19)
	u32 tcp_friendliness; // 0 or 1: the Reno-friendly region, RFC 9438 section 4.3
	u32 rtt_ref_ms;       // wakeai_rtt's RTT_ref; 0: C is the same at every RTT
	u32 stale_after_ms;   // bounds apply for this long after their agent's last heartbeat
	u32 tick_us;          // the kernel's jiffy: CUBIC evaluates its curve at most once in it
};

// The bounds of one socket; 0 means no bound. A ceiling below the floor takes precedence.
struct wakeai_bounds {
	u32 floor;       // segments; not in Loss
	u32 ceiling;     // segments
	u64 pacing;      // bytes per second
	u64 small_queue; // bytes of packets that may wait in the host's queue, where Linux allows
			 // fewer; only under a ceiling, and while nothing but wakeai_bbr paces
};

// The bytes of the headers of a packet: IPv4, and TCP with timestamps.
#define PACKET_HEADERS 52

static __always_inline u8 in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

// Whether a reduction of the window is going on (prr.h).
static __always_inline u8 reducing(u8 state)
{
	return state == TCP_CA_CWR || state == TCP_CA_Recovery;
}

// Whether sequence number a comes after b.
static __always_inline u8 comes_after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

#endif
