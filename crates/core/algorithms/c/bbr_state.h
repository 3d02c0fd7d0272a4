// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// The state of wakeai_bbr per connection, and the constants of BBR version 1.

#ifndef WAKEAI_BBR_STATE_H
#define WAKEAI_BBR_STATE_H

#include "state.h"

// Bandwidths are in segments per us, times BBR_BW_UNIT. Gains are in 1/256.
#define BBR_BW_UNIT (1u << 24)
#define BBR_UNIT 256u

// The mode of the state machine (draft-cardwell-iccrg-bbr-congestion-control-00, section 3.4).
enum bbr_mode {
	BBR_STARTUP,   // doubles the rate per round trip, until the bandwidth grows no more
	BBR_DRAIN,     // lets the queue of STARTUP drain
	BBR_PROBE_BW,  // cycles through rates around the bandwidth
	BBR_PROBE_RTT, // sends little, so that the path shows its RTT without a queue
};

#define BBR_HIGH_GAIN 739u  // 2 / ln 2, the least gain that doubles the rate per round trip; rounded up
#define BBR_DRAIN_GAIN 88u  // its inverse
#define BBR_CWND_GAIN 512u  // 2: room for delayed and aggregated ACKs
#define BBR_CYCLE_PHASES 8u // of PROBE_BW: 1.25, 0.75, and six times 1
#define BBR_PROBING 0u      // the phase with the gain 1.25
#define BBR_LEAST_CWND 4u   // segments; the window of PROBE_RTT

#define BBR_BW_ROUNDS 10u              // the length of the bandwidth filter
#define BBR_MIN_RTT_MS 10000u          // the length of the RTT filter
#define BBR_PROBE_RTT_MS 200u          // the least duration of PROBE_RTT
#define BBR_FULL_BW_THRESHOLD 320u     // 1.25: the growth per round by which STARTUP goes on
#define BBR_FULL_BW_ROUNDS 3u          // rounds without this growth after which STARTUP ends
#define BBR_PACING_MARGIN_PERCENT 1u   // the rate stays below the bandwidth, so that queues drain
#define BBR_UNKNOWN_RTT_US 1000u       // the RTT from which the first rate follows before a sample
#define BBR_LEAST_BURST_RATE 150000u   // bytes/s; below, a burst is a single segment
#define BBR_AGGREGATION_ROUNDS 5u      // the length of each half of the aggregation filter
#define BBR_AGGREGATION_US 100000u     // the largest compensation, as a time at the bandwidth
#define BBR_EPOCH_LIMIT (1u << 20)     // segments after which an epoch of aggregation ends

// The detection of a policer (bbr_policer.h).
#define BBR_POLICER_ROUNDS 4u     // the least length of an interval
#define BBR_POLICER_LOSS 50u      // the share of lost segments, in 1/256, of a policed interval
#define BBR_POLICER_RATIO 8u      // bandwidths of two intervals are equal if they differ by an eighth,
#define BBR_POLICER_DIFFERENCE 500u // or by this many bytes per second
#define BBR_POLICER_FOR_ROUNDS 48u  // the rounds for which the result is used

// The bandwidth of a round.
struct bbr_bandwidth {
	u32 round;
	u32 bw;
};

struct wakeai_bbr {
	u32 min_rtt_us; // ~0: no sample yet
	u32 min_rtt_ms; // the time of that sample
	u32 probe_rtt_until_ms; // the end of PROBE_RTT, if its round is over then; 0: not yet known
	struct bbr_bandwidth best[3]; // the bandwidth filter
	u32 rounds;             // round trips
	u32 round_until;        // a segment that is sent at this count of delivered segments begins a round
	u32 phase_us;           // when the phase of PROBE_BW began
	u32 full_bw;            // the bandwidth from which STARTUP judges growth
	u32 prior_cwnd;         // the window before a recovery or PROBE_RTT
	u32 epoch_us;           // when the epoch of aggregation began
	u32 epoch_acked;        // segments acknowledged since
	u16 extra_acked;        // the most segments beyond the bandwidth, in this half of the filter
	u16 extra_before;       // and in the half before
	u32 limited_from;       // segments that were sent at a count of delivered segments from here
	u32 limited_until;      // to here were limited by PROBE_RTT; 0: none
	u32 policed_bw;         // the bandwidth of a policer; 0: none known
	u32 interval_delivered; // the counts and the time at the start of the interval
	u32 interval_lost;
	u32 interval_ms;
	u32 mode : 2;
	u32 phase : 3;
	u32 prev_state : 3; // the congestion state at the last ACK
	u32 round_start : 1; // this ACK begins a round
	u32 full_bw_rounds : 2;
	u32 full_bw_reached : 1;
	u32 conserves : 1; // packet conservation: the first round of a recovery
	u32 idle_restart : 1;
	u32 probe_rtt_round_done : 1;
	u32 has_seen_rtt : 1;
	u32 extra_rounds : 5;
	u32 samples_interval : 1; // an interval of the policer's detection is open
	u32 uses_policed_bw : 1;
	u32 interval_rounds : 7;
	u32 raised : 1; // the pacing rate is that of a held window
};

FITS_THE_PRIVATE_AREA(struct wakeai_bbr);

static __always_inline struct wakeai_bbr *bbr_of(struct sock *sk)
{
	return private_of(sk);
}

// The clock of the filters, in ms.
static __always_inline u32 bbr_now_ms(struct sock *sk)
{
	return tcp_sk(sk)->tcp_mstamp / 1000;
}

#endif
