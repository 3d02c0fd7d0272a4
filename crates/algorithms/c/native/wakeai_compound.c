// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_compound for user space.

#include "hooks.h"
#include "../wakeai_compound.c"

EXPORT_HOOKS(compound);
