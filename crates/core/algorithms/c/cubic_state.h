// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The state of wakeai_cubic and wakeai_rtt per connection. The kernel's monitor reads it, too.

#ifndef WAKEAI_CUBIC_STATE_H
#define WAKEAI_CUBIC_STATE_H

#include "state.h"

struct wakeai_cubic {
	struct wakeai_connection connection;
	u64 epoch_start_us;  // start of this stage of congestion avoidance; 0: none has begun
	u32 price;           // segments to be acknowledged before the window grows by one
	u32 priced_cwnd;     // the window for which the price was computed
	u32 priced_us;       // the time at which it was computed
	u32 credit;          // segments acknowledged since the window last grew
	u32 reno_acked;      // segments acknowledged since reno_window last grew
	u32 window_max;      // W_max: the window before the last reduction; 0: no loss yet
	u32 window_max_undo; // W_max before the last reduction
	u32 origin;          // the curve's plateau
	u32 k_q10;           // K, the time from the epoch's start to the plateau, in 1/1024 s
	u32 c_per_1024;      // this epoch's C
	u32 rtt_q6;          // the RTT from which C is computed (rtt_fair.h), in 1/64 us; 0: unknown
	u32 reno_window;     // W_est: the window that Reno would have
	u32 delay_min_us;    // smallest RTT seen; 0: none
	u32 round_end_seq;   // HyStart's round ends when this is acknowledged
	u32 round_start_us;
	u32 round_last_us;   // time of the last ACK of the train
	u32 round_rtt_us;    // smallest RTT of this round
	u8 round_samples;
	u8 hystart_found;
};

FITS_THE_PRIVATE_AREA(struct wakeai_cubic);

static __always_inline struct wakeai_cubic *cubic_of(struct sock *sk)
{
	return private_of(sk);
}

// The value of K while no stage of congestion avoidance has begun.
#define NO_K (~0u)

// K, the time from the begin of the current stage of congestion avoidance to the plateau, in 1/1024
// s. For wakeai_rtt it is K' of Kozu et al., equation 3.
static __always_inline u32 cubic_k_q10(const struct wakeai_cubic *ca)
{
	return ca->epoch_start_us ? ca->k_q10 : NO_K;
}

#endif
