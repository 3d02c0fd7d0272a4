/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* wakeai_compound in the kernel: a struct_ops around the shared source. */
#include "bounded.h"
#include "../../algorithms/c/wakeai_compound.c"

#define ALGORITHM compound
#define PLAIN "reno"
#include "hooks.h"
