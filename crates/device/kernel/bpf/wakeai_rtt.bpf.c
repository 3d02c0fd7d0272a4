/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* wakeai_rtt in the kernel: wakeai_cubic's source with a reference RTT (docs/decisions/004). */
#define RTT_REF_MS 200
#define ALGORITHM rtt
#define SOURCE cubic
#define PLAIN "cubic"
#include "bounded.h"
#include "../../../core/algorithms/c/wakeai_cubic.c"
#include "hooks.h"
