// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What wakeai_cubic remembers per connection, its knobs, and the bounds that it is given.

#ifndef WAKEAI_STATE_H
#define WAKEAI_STATE_H

// Lives in icsk_ca_priv, so it has room for 104 bytes and starts zeroed.
struct wakeai_cubic {
	u64 epoch_start_us;  // begin of this congestion avoidance stage; 0: none begun
	u64 last_ack_us;     // of any ACK
	u64 credit;          // growth owed: segments, in units of 1/(1024 cwnd)
	u64 reno_credit;     // the same for reno_window
	u32 window_max;      // W_max: the window before the last reduction; 0: no loss yet
	u32 window_max_undo; // what W_max was before the last reduction
	u32 window_before;   // cwnd_prior: cwnd when the last reduction began
	u32 origin;          // the curve's plateau
	u32 k_q10;           // K, the time from the epoch's start to the plateau, in 1/1024 s
	u32 reno_window;     // W_est: where Reno would be
	u32 delay_min_us;    // smallest RTT seen; 0: none
	u32 round_end_seq;   // HyStart's round ends when this is acknowledged
	u32 round_start_us;
	u32 round_last_us;   // the last ACK that came close after the one before
	u32 round_rtt_us;    // smallest RTT of this round
	u32 prr_delivered;   // RFC 6937, segments
	u32 last_una;
	u8 round_samples;
	u8 hystart_found;
	u8 paced_by_us;      // sk_pacing_status is our doing
	u8 unused;
};

_Static_assert(sizeof(struct wakeai_cubic) <= 104, "icsk_ca_priv is 13 words of 64 bits");

// Fixed when the algorithm is loaded.
struct wakeai_knobs {
	u32 beta_per_1024;    // what a loss leaves of the window; RFC 9438: 0.7
	u32 c_per_1024;       // the curve's C in segments/s^3; RFC 9438: 0.4
	u32 fast_convergence; // 0 or 1
	u32 hystart;          // 0 or 1
	u32 stale_after_ms;   // bounds bind this long after their agent's last heartbeat
};

// The bounds of one socket, 0 where there is none. Where they contradict, the ceiling wins.
struct wakeai_bounds {
	u32 floor;   // segments; not in Loss
	u32 ceiling; // segments
	u64 pacing;  // bytes per second
};

static __always_inline u8 in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

// Whether the window is being reduced, step by step (prr.h).
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
