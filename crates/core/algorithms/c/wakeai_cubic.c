// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_cubic: CUBIC (RFC 9438) with HyStart, under bounds.
//
// The source is compiled for user space and to BPF. Before it, a shim is included, which defines
//   - struct sock and struct tcp_sock, with the kernel's names of the fields;
//   - tcp_sk(sk), private_of(sk), ca_state(sk), cwnd_limited(sk), path_reorders(sk);
//   - last_sent(sk), idle_us(sk), rto_us(sk), restart_window(sk);
//   - small_queue_shift(sk) and queued_beside_payload(sk), for the host's queue;
//   - bounds_of(sk), the bounds that apply to this socket now, and knobs_of(sk), its parameters.

#include "connection.h"
#include "cubic_state.h"
#include "rtt_fair.h"
#include "curve.h"
#include "hystart.h"

// Resets the curve and the round, for a new connection and after a timeout. Like Linux, it treats
// the path as a new one after a timeout.
HOOK_BODY void cubic_forget(struct sock *sk)
{
	struct wakeai_cubic *ca = cubic_of(sk);

	ca->epoch_start_us = 0;
	ca->price = 0;
	ca->credit = 0;
	ca->window_max = 0;
	ca->delay_min_us = 0;
	ca->rtt_q6 = 0;
	ca->hystart_found = 0;
	hystart_new_round(sk);
}

HOOK_BODY void cubic_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = cubic_of(sk);

	cubic_forget(sk);
	if (!in_slow_start(tp)) {
		// The connection comes from another algorithm. Its window follows from losses that it had there.
		ca->hystart_found = 1;
		ca->window_max = tp->snd_cwnd;
	}
	connection_init(sk);
}

// Handles an ACK. `acked` is the number of segments that it delivered, including selectively
// acknowledged ones. `lost` is the number of segments that were newly marked as lost.
HOOK_BODY void cubic_on_ack(struct sock *sk, u32 acked, u32 lost, s32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_bounds bounds = bounds_of(sk);

	if (rtt_us >= 0)
		hystart_on_rtt(sk, rtt_us ? rtt_us : 1);
	if (rtt_us > 0)
		rtt_fair_sample(sk, rtt_us, acked);
	acked = slow_start(sk, connection_acked(sk, acked, lost));
	if (acked && !at_ceiling(bounds, tp->snd_cwnd))
		tp->snd_cwnd = curve_advance(sk, tp->snd_cwnd, acked);
	// A new curve begins at the window that the bounds have set.
	if (connection_settle(sk, bounds))
		cubic_of(sk)->epoch_start_us = 0;
}

// The slow-start threshold for the reduction that begins.
HOOK_BODY u32 cubic_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_cubic *ca = cubic_of(sk);
	u32 beta = knobs_of(sk)->beta_per_1024;
	u32 cwnd = tp->snd_cwnd;
	u32 reduced = (u64)cwnd * beta >> 10;

	ca->epoch_start_us = 0;
	ca->credit = 0;
	ca->window_max_undo = ca->window_max;
	// Fast convergence (RFC 9438 section 4.7): a flow whose window has become smaller than at its last
	// loss releases more.
	if (cwnd < ca->window_max && knobs_of(sk)->fast_convergence)
		ca->window_max = (u64)cwnd * (1024 + beta) >> 11;
	else
		ca->window_max = cwnd;
	return within(bounds_of(sk), reduced > 2 ? reduced : 2);
}

// The window after a reduction is undone, because the loss was a mistake (RFC 9438 section 4.9).
HOOK_BODY u32 cubic_undo_cwnd(struct sock *sk)
{
	struct wakeai_cubic *ca = cubic_of(sk);

	ca->epoch_start_us = 0;
	ca->window_max = ca->window_max_undo;
	return connection_undo_cwnd(sk);
}

HOOK_BODY void cubic_set_state(struct sock *sk, u8 next)
{
	if (next == TCP_CA_Loss)
		cubic_forget(sk);
	connection_set_state(sk, next);
}

HOOK_BODY void cubic_before_sending(struct sock *sk)
{
	if (connection_before_sending(sk))
		cubic_of(sk)->epoch_start_us = 0;
}

// Called when the first segment after an idle time is sent. The curve does not count idle time (RFC
// 9438 section 5.8).
HOOK_BODY void cubic_after_idle(struct sock *sk)
{
	struct wakeai_cubic *ca = cubic_of(sk);

	if (ca->epoch_start_us)
		ca->epoch_start_us += idle_us(sk);
	connection_after_idle(sk);
}

#define cubic_release connection_release
