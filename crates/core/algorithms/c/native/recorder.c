// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// A stand-in for an algorithm, for tests of senders. It records the calls of its hooks. It returns
// the simplest values with which a sender can continue. src/recorder.rs reads the records.

#include "hooks.h"

#define CALLS 48

struct recorder {
	u32 count;
	struct {
		u8 hook;
		u8 detail; // a value of the sender's state at the call; at most 255
	} calls[CALLS];
};

_Static_assert(sizeof(struct recorder) <= 13 * sizeof(u64), "fits into the private area");

static __always_inline void note(struct sock *sk, u8 hook, u32 detail)
{
	struct recorder *ca = private_of(sk);

	if (ca->count < CALLS) {
		ca->calls[ca->count].hook = hook;
		ca->calls[ca->count].detail = detail < 255 ? detail : 255;
		ca->count++;
	}
}

HOOK_BODY void recorder_init(struct sock *sk)
{
	(void)sk;
}

HOOK_BODY void recorder_release(struct sock *sk)
{
	(void)sk;
}

HOOK_BODY void recorder_on_ack(struct sock *sk, u32 acked, u32 lost, s32 rtt_us)
{
	(void)lost;
	(void)rtt_us;
	note(sk, 'a', acked);
}

HOOK_BODY u32 recorder_ssthresh(struct sock *sk)
{
	note(sk, 's', sk->snd_cwnd);
	return sk->snd_cwnd / 2;
}

HOOK_BODY u32 recorder_undo_cwnd(struct sock *sk)
{
	note(sk, 'u', sk->prior_cwnd);
	return sk->prior_cwnd;
}

HOOK_BODY void recorder_set_state(struct sock *sk, u8 next)
{
	note(sk, 't', next);
}

HOOK_BODY void recorder_before_sending(struct sock *sk)
{
	note(sk, 'b', sk->packets_out);
}

HOOK_BODY void recorder_after_idle(struct sock *sk)
{
	note(sk, 'i', sk->packets_out);
}

EXPORT_HOOKS(recorder);
