/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* wakeai_cubic in the kernel: a struct_ops around the shared source. */
#include "bounded.h"
#include "../../algorithms/c/wakeai_cubic.c"

#define ALGORITHM cubic
#define PLAIN "cubic"
#include "hooks.h"
