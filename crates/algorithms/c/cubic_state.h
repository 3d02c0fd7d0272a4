// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// What wakeai_cubic and wakeai_rtt remember of a connection. The kernel's monitor reads it too.

#ifndef WAKEAI_CUBIC_STATE_H
#define WAKEAI_CUBIC_STATE_H

#include "state.h"

struct wakeai_cubic {
	struct wakeai_connection connection;
	u64 epoch_start_us;  // begin of this congestion avoidance stage; 0: none begun
	u32 price;           // segments that are acknowledged for one of growth
	u32 priced_cwnd;     // the window that the price was found for
	u32 priced_us;       // and when
	u32 credit;          // segments acknowledged towards the next one of growth
	u32 reno_acked;      // the same for reno_window
	u32 window_max;      // W_max: the window before the last reduction; 0: no loss yet
	u32 window_max_undo; // what W_max was before the last reduction
	u32 origin;          // the curve's plateau
	u32 k_q10;           // K, the time from the epoch's start to the plateau, in 1/1024 s
	u32 c_per_1024;      // this epoch's C
	u32 rtt_q6;          // the RTT that C goes by (rtt_fair.h), in 1/64 us; 0: none known
	u32 reno_window;     // W_est: where Reno would be
	u32 delay_min_us;    // smallest RTT seen; 0: none
	u32 round_end_seq;   // HyStart's round ends when this is acknowledged
	u32 round_start_us;
	u32 round_last_us;   // the last ACK that came close after the one before
	u32 round_rtt_us;    // smallest RTT of this round
	u8 round_samples;
	u8 hystart_found;
};

FITS_THE_PRIVATE_AREA(struct wakeai_cubic);

// No stage of congestion avoidance has begun, so there is no K.
#define NO_K (~0u)

// K of the stage that runs (wakeai_rtt: K', equation 3 of Kozu et al.), in 1/1024 s.
static __always_inline u32 cubic_k_q10(const struct wakeai_cubic *ca)
{
	return ca->epoch_start_us ? ca->k_q10 : NO_K;
}

#endif
