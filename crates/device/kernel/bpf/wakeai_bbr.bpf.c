/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* wakeai_bbr in the kernel: a struct_ops around the shared source, which takes the samples of the delivery rate. */
#define ALGORITHM bbr
#define PLAIN "bbr"
#include "bounded.h"

static __always_inline u32 random_below(struct sock *sk, u32 limit)
{
	return bpf_get_prandom_u32() % limit;
}

#include "../../../core/algorithms/c/wakeai_bbr.c"

#define ON_ACK(sk, rs) bbr_on_ack(sk, rs)
#define MIN_TSO_SEGS(sk) bbr_least_burst(sk)
/* Room for three windows, as Linux's BBR asks for: a recovery may double the window. */
#define SNDBUF_WINDOWS 3
#include "hooks.h"
