/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* wakeai_cubic in the kernel: a struct_ops around the shared source. */
#define ALGORITHM cubic
#define PLAIN "cubic"
#include "bounded.h"
#include "../../../core/algorithms/c/wakeai_cubic.c"
#include "hooks.h"
