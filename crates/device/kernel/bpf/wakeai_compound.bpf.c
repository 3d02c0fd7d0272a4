/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* wakeai_compound in the kernel: a struct_ops around the shared source. */
#define ALGORITHM compound
#define PLAIN "reno"
#include "bounded.h"
#include "../../../core/algorithms/c/wakeai_compound.c"
#include "hooks.h"
