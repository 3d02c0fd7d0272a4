// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_av: TCP-AV, which holds a target rate (the paper on TCP-AV over wireless LANs, section 4.1). Its shim
// has to define what wakeai_cubic.c lists, and target_rate(sk) in bytes per second.
//
//   owed          = sum of (target rate - achieved rate) x time, at least 0
//   target window = target rate x RTT + owed
//   limit         = target rate x (smallest RTT + 1 s)
//
// Up to min(target window, limit) the window grows as in slow start, and no loss reduces it below this value.
// Above this value, and without a target, the window grows and is reduced as in Reno.

#include "connection.h"

// The ACKs of the target rate may arrive this much later than on an empty path. In the full buffer
// of an access point ACKs wait for nearly as long.
#define AV_PATIENCE_US 1000000
// A longer time between two ACKs does not count as owed, because the path is not its cause.
#define AV_LONGEST_GAP_US 10000000
// Congestion is severe in a round in which at least one segment in this many was lost, and after a
// timeout.
#define AV_SEVERE_SHARE 32
#define AV_LEVEL 1024
// The level is the share of the target that the connection holds. A round of severe congestion
// lowers it to three quarters. From 0 to the whole target it rises in AV_RESTORE_US. This time is
// the same for all targets. So connections whose targets exceed the capacity of the path converge
// to the same share of their targets.
#define AV_LEVEL_LEFT(level) ((level) / 4 * 3)
#define AV_RESTORE_US 60000000
#define AV_LEVEL_LEAST 32

struct wakeai_av {
	struct wakeai_connection connection;
	u64 owed;            // bytes
	u64 counted_us;      // the time up to which `owed` is counted
	u64 level_us;        // the time up to which the level is restored
	u32 level;           // the share of the target that the connection holds, in 1/1024
	u32 credit;          // segments acknowledged since the window last grew
	u32 rtt_min_us;      // 0: none known
	u32 round_end_seq;   // the round ends when this is acknowledged
	u32 round_delivered; // segments
	u32 round_lost;
};

FITS_THE_PRIVATE_AREA(struct wakeai_av);

static __always_inline struct wakeai_av *av_of(struct sock *sk)
{
	return private_of(sk);
}

static __always_inline u64 bytes_in(u64 rate, u64 us)
{
	return rate * us / 1000000;
}

// This is above the rate of any path. Its product with the microseconds of a minute fits 64 bits.
#define AV_FASTEST (1ull << 37)

static __always_inline u64 av_target(struct sock *sk)
{
	u64 target = target_rate(sk);

	return (target < AV_FASTEST ? target : AV_FASTEST) * av_of(sk)->level / AV_LEVEL;
}

static __always_inline u64 av_limit_bytes(struct sock *sk)
{
	return bytes_in(av_target(sk), (u64)av_of(sk)->rtt_min_us + AV_PATIENCE_US);
}

// min(target window, limit) in segments; 0 without a target, or before the RTT is known.
HOOK_BODY u32 av_window(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 target = av_target(sk), limit = av_limit_bytes(sk);
	u32 mss = tp->mss_cache ? tp->mss_cache : 1;
	u64 window;

	if (!target || !tp->srtt_us)
		return 0;
	window = bytes_in(target, tp->srtt_us >> 3) + av_of(sk)->owed;
	if (window > limit)
		window = limit;
	window = (window + mss - 1) / mss;
	return window > 0x7fffffff ? 0x7fffffff : window;
}

static __always_inline void av_new_round(struct sock *sk)
{
	struct wakeai_av *ca = av_of(sk);

	ca->round_end_seq = tcp_sk(sk)->snd_nxt;
	ca->round_delivered = 0;
	ca->round_lost = 0;
}

static __always_inline void av_lower(struct sock *sk)
{
	struct wakeai_av *ca = av_of(sk);

	ca->level = AV_LEVEL_LEFT(ca->level);
	if (ca->level < AV_LEVEL_LEAST)
		ca->level = AV_LEVEL_LEAST;
	ca->level_us = tcp_sk(sk)->tcp_mstamp;
	// The owed bytes are dropped, because other connections need the path, too.
	ca->owed = 0;
}

// Raises the level for the time that has passed.
static __always_inline void av_restore(struct sock *sk, u64 now)
{
	struct wakeai_av *ca = av_of(sk);
	u64 step_us = AV_RESTORE_US / AV_LEVEL, steps;

	if (ca->level >= AV_LEVEL || now <= ca->level_us)
		return;
	steps = (now - ca->level_us) / step_us;
	ca->level = steps < AV_LEVEL - ca->level ? ca->level + (u32)steps : AV_LEVEL;
	ca->level_us += steps * step_us;
}

// Updates `owed`.
HOOK_BODY void av_account(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_av *ca = av_of(sk);
	u64 target = av_target(sk), now = tp->tcp_mstamp;
	u64 gap_us = now > ca->counted_us ? now - ca->counted_us : 0;
	u64 most = av_limit_bytes(sk), got = (u64)acked * tp->mss_cache;

	ca->counted_us = now;
	// An application that does not fill the window does not need the target rate now.
	if (gap_us > AV_LONGEST_GAP_US || !cwnd_limited(sk))
		gap_us = 0;
	ca->owed += bytes_in(target, gap_us);
	// Bytes beyond the target do not reduce what is owed later, because a viewer needs the target rate
	// at all times.
	ca->owed = ca->owed > got ? ca->owed - got : 0;
	if (ca->owed > most)
		ca->owed = most;
}

// Counts losses, and lowers the level at the end of a round with severe congestion.
HOOK_BODY void av_watch_losses(struct sock *sk, u32 acked, u32 lost)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_av *ca = av_of(sk);

	ca->round_delivered += acked;
	ca->round_lost += lost;
	if (!comes_after(tp->snd_una, ca->round_end_seq))
		return;
	if ((u64)ca->round_lost * (AV_SEVERE_SHARE - 1) > ca->round_delivered)
		av_lower(sk);
	av_new_round(sk);
}

HOOK_BODY void av_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_av *ca = av_of(sk);

	ca->owed = 0;
	ca->counted_us = tp->tcp_mstamp;
	ca->level_us = tp->tcp_mstamp;
	ca->level = AV_LEVEL;
	ca->credit = 0;
	ca->rtt_min_us = 0;
	av_new_round(sk);
	connection_init(sk);
}

HOOK_BODY void av_on_ack(struct sock *sk, u32 acked, u32 lost, s32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_av *ca = av_of(sk);
	struct wakeai_bounds bounds = bounds_of(sk);

	if (rtt_us > 0 && (!ca->rtt_min_us || (u32)rtt_us < ca->rtt_min_us))
		ca->rtt_min_us = rtt_us;
	av_restore(sk, tp->tcp_mstamp);
	av_account(sk, acked);
	av_watch_losses(sk, acked, lost);
	acked = slow_start(sk, connection_acked(sk, acked, lost));
	if (acked && !at_ceiling(bounds, tp->snd_cwnd))
		acked = grow_to(sk, av_window(sk), acked);
	if (acked && !at_ceiling(bounds, tp->snd_cwnd))
		tp->snd_cwnd += additive_increase(&ca->credit, tp->snd_cwnd, acked);
	if (connection_settle(sk, bounds))
		ca->credit = 0;
}

// min(cwnd, max(Reno's half, min(target window, limit)))
HOOK_BODY u32 av_ssthresh(struct sock *sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u32 kept = av_window(sk);

	if (kept < cwnd / 2)
		kept = cwnd / 2;
	if (kept > cwnd)
		kept = cwnd;
	return within(bounds_of(sk), kept > 2 ? kept : 2);
}

HOOK_BODY void av_set_state(struct sock *sk, u8 next)
{
	if (next == TCP_CA_Loss || reducing(next))
		av_of(sk)->credit = 0;
	if (next == TCP_CA_Loss && ca_state(sk) != TCP_CA_Loss) {
		av_lower(sk);
		av_new_round(sk);
	}
	connection_set_state(sk, next);
}

HOOK_BODY void av_before_sending(struct sock *sk)
{
	if (connection_before_sending(sk))
		av_of(sk)->credit = 0;
}

// The first segment after an idle time is sent. Idle time is not counted as owed.
HOOK_BODY void av_after_idle(struct sock *sk)
{
	av_of(sk)->counted_us = tcp_sk(sk)->tcp_mstamp;
	connection_after_idle(sk);
}

#define av_undo_cwnd connection_undo_cwnd
#define av_release connection_release
