// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Compiles the algorithms of the kernel for user space.

#include "hooks.h"
#include "../wakeai_av.c"
#include "../wakeai_bbr.c"
#include "../wakeai_compound.c"
#include "../wakeai_cubic.c"
#include "../wakeai_reno.c"

static u32 k_q10(const struct sock *sk)
{
	return cubic_k_q10((const struct wakeai_cubic *)sk->priv);
}

EXPORT_HOOKS(av);
EXPORT_HOOKS_WITH(bbr, bbr_on_ack, .paces = 1);
EXPORT_HOOKS(compound);
EXPORT_HOOKS(cubic, .k_q10 = k_q10);
EXPORT_HOOKS(reno);
