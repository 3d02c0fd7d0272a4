// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_av for user space.

#include "hooks.h"
#include "../wakeai_av.c"

EXPORT_HOOKS(av);
