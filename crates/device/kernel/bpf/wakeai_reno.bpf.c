/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* wakeai_reno in the kernel: a struct_ops around the shared source. */
#define ALGORITHM reno
#define PLAIN "reno"
#include "bounded.h"
#include "../../../core/algorithms/c/wakeai_reno.c"
#include "hooks.h"
