// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_cubic for user space.

#include "hooks.h"
#include "../wakeai_cubic.c"

EXPORT_HOOKS(cubic);
