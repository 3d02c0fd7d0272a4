// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_compound: Compound TCP (Tan, Song, Zhang and Sridharan, INFOCOM 2006;
// draft-sridharan-tcpm-ctcp), a stand-in for a Windows sender. The window is the sum of two
// windows. The loss window is that of Reno. The delay window grows fast while the path has no
// queue, and shrinks as the queue grows. Gamma is the constant of the paper; the draft estimates
// it, with this constant as the upper limit. wakeai_cubic.c lists what a shim defines.

#include "connection.h"

// Alpha, zeta and gamma of the paper. Its k is in three_quarter_power_q8(), and its beta is the
// half of Reno.
#define COMPOUND_ALPHA_DIVISOR 8
#define COMPOUND_ZETA 1
#define COMPOUND_GAMMA 30 // segments queued on the path

struct wakeai_compound {
	struct wakeai_connection connection;
	u32 loss_window;      // segments
	u32 loss_window_undo; // the loss window before the last reduction
	u32 delay_window;     // segments
	u32 credit;           // segments acknowledged since the loss window last grew
	u32 gain_q8;          // growth of the delay window below one segment, not applied yet, in 1/256
	u32 rtt_min_us;       // smallest RTT of the connection; 0: none known
	u32 round_rtt_us;     // smallest RTT of this round; ~0: none yet
	u32 round_end_seq;
};

FITS_THE_PRIVATE_AREA(struct wakeai_compound);

static __always_inline struct wakeai_compound *compound_of(struct sock *sk)
{
	return private_of(sk);
}

// floor(sqrt(x)) for x below 2^62, computed bit by bit. The steps have no branch, because the
// kernel's verifier would follow both sides of each branch.
static __always_inline u32 square_root(u64 x)
{
	u64 root = 0;
	int bit;

	for (bit = 30; bit >= 0; bit--) {
		u64 tried = root | 1ull << bit;
		u64 is_too_large = (x - tried * tried) >> 63;

		root += (is_too_large ^ 1) << bit;
	}
	return root;
}

// window^(3/4) in 1/256 segments: the square root of the window times its own square root.
static __always_inline u32 three_quarter_power_q8(u32 window)
{
	u64 root_q16;

	if (window >= 1u << 28)
		window = (1u << 28) - 1;
	root_q16 = square_root((u64)window << 32);
	return square_root((u64)window * root_q16);
}

static __always_inline void compound_new_round(struct sock *sk)
{
	struct wakeai_compound *ca = compound_of(sk);

	ca->round_end_seq = tcp_sk(sk)->snd_nxt;
	ca->round_rtt_us = ~0u;
}

// Divides a window that was set elsewhere. The part beyond the loss window becomes the delay
// window.
static __always_inline void compound_split(struct sock *sk)
{
	struct wakeai_compound *ca = compound_of(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if (ca->loss_window > cwnd)
		ca->loss_window = cwnd;
	ca->delay_window = cwnd - ca->loss_window;
}

HOOK_BODY void compound_init(struct sock *sk)
{
	struct wakeai_compound *ca = compound_of(sk);

	ca->credit = 0;
	ca->gain_q8 = 0;
	ca->rtt_min_us = 0;
	compound_new_round(sk);
	connection_init(sk);
	ca->loss_window = ca->loss_window_undo = tcp_sk(sk)->snd_cwnd;
	ca->delay_window = 0;
}

static __always_inline void compound_sample(struct sock *sk, u32 rtt_us)
{
	struct wakeai_compound *ca = compound_of(sk);

	if (!ca->rtt_min_us || rtt_us < ca->rtt_min_us)
		ca->rtt_min_us = rtt_us;
	if (rtt_us < ca->round_rtt_us)
		ca->round_rtt_us = rtt_us;
}

// Changes the delay window at the end of a round. `diff` is the number of queued segments. Below
// gamma the window grows by alpha win^k - 1; otherwise it shrinks by zeta diff.
HOOK_BODY void compound_move_delay_window(struct sock *sk)
{
	struct wakeai_compound *ca = compound_of(sk);
	u32 window = ca->loss_window + ca->delay_window;
	u32 rtt_us = ca->round_rtt_us, diff, gain_q8;

	if (rtt_us == ~0u || !rtt_us || !ca->rtt_min_us || rtt_us < ca->rtt_min_us)
		return;
	diff = (u64)window * (rtt_us - ca->rtt_min_us) / rtt_us;
	if (diff < COMPOUND_GAMMA) {
		gain_q8 = three_quarter_power_q8(window) / COMPOUND_ALPHA_DIVISOR;
		ca->gain_q8 += gain_q8 > 256 ? gain_q8 - 256 : 0;
		ca->delay_window += ca->gain_q8 >> 8;
		ca->gain_q8 &= 255;
	} else {
		diff *= COMPOUND_ZETA;
		ca->delay_window -= diff < ca->delay_window ? diff : ca->delay_window;
		ca->gain_q8 = 0;
	}
}

// Grows the window at an ACK outside of a reduction.
HOOK_BODY void compound_advance(struct sock *sk, u32 acked, u8 round_is_over)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wakeai_compound *ca = compound_of(sk);
	u32 before = tp->snd_cwnd;

	acked = slow_start(sk, acked);
	// Slow start grows only the loss window.
	ca->loss_window += tp->snd_cwnd - before;
	if (ca->loss_window + ca->delay_window != tp->snd_cwnd)
		compound_split(sk);
	if (!acked || at_ceiling(bounds_of(sk), tp->snd_cwnd))
		return;
	// Congestion avoidance adds a segment to the loss window for each acknowledged window.
	ca->loss_window += additive_increase(&ca->credit, tp->snd_cwnd, acked);
	if (round_is_over)
		compound_move_delay_window(sk);
	tp->snd_cwnd = ca->loss_window + ca->delay_window;
	// Slow start must not regain what the delay window has given up.
	if (tp->snd_ssthresh > tp->snd_cwnd)
		tp->snd_ssthresh = tp->snd_cwnd;
}

HOOK_BODY void compound_on_ack(struct sock *sk, u32 acked, u32 lost, s32 rtt_us)
{
	struct wakeai_compound *ca = compound_of(sk);
	u8 round_is_over = comes_after(tcp_sk(sk)->snd_una, ca->round_end_seq);

	if (rtt_us > 0)
		compound_sample(sk, rtt_us);
	acked = connection_acked(sk, acked, lost);
	if (!reducing(ca_state(sk)))
		compound_advance(sk, acked, round_is_over);
	if (round_is_over)
		compound_new_round(sk);
	if (!connection_settle(sk, bounds_of(sk)))
		return;
	ca->credit = 0;
	ca->gain_q8 = 0;
	// During a reduction prr.h sets the window, which may then be far below its final value.
	if (!reducing(ca_state(sk)))
		compound_split(sk);
}

// The threshold is half of the sum. The loss window is halved here, and the delay window later
// becomes the rest.
HOOK_BODY u32 compound_ssthresh(struct sock *sk)
{
	struct wakeai_compound *ca = compound_of(sk);
	u32 half = tcp_sk(sk)->snd_cwnd / 2;

	ca->loss_window_undo = ca->loss_window;
	ca->loss_window /= 2;
	return within(bounds_of(sk), half > 2 ? half : 2);
}

HOOK_BODY u32 compound_undo_cwnd(struct sock *sk)
{
	struct wakeai_compound *ca = compound_of(sk);

	ca->loss_window = ca->loss_window_undo;
	return connection_undo_cwnd(sk);
}

HOOK_BODY void compound_set_state(struct sock *sk, u8 next)
{
	struct wakeai_compound *ca = compound_of(sk);

	if (next == TCP_CA_Loss || reducing(next)) {
		ca->credit = 0;
		ca->gain_q8 = 0;
	}
	connection_set_state(sk, next);
	if (next == TCP_CA_Loss) {
		// After a timeout the loss window begins at one segment, and there is no delay window.
		ca->loss_window = tcp_sk(sk)->snd_cwnd;
		ca->delay_window = 0;
	} else if (!reducing(next)) {
		compound_split(sk);
	}
	compound_new_round(sk);
}

HOOK_BODY void compound_before_sending(struct sock *sk)
{
	struct wakeai_compound *ca = compound_of(sk);

	if (connection_before_sending(sk))
		ca->credit = 0;
	if (!reducing(ca_state(sk)) && ca->loss_window + ca->delay_window != tcp_sk(sk)->snd_cwnd)
		compound_split(sk);
}

#define compound_after_idle connection_after_idle
#define compound_release connection_release
