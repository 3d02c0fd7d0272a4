// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_cubic for user space.

#include "hooks.h"
#include "../wakeai_cubic.c"

static u32 k_q10(const struct sock *sk)
{
	return cubic_k_q10((const struct wakeai_cubic *)sk->priv);
}

EXPORT_HOOKS(cubic, .k_q10 = k_q10);
