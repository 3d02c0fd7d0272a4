// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// wakeai_reno for user space.

#include "hooks.h"
#include "../wakeai_reno.c"

EXPORT_HOOKS(reno);
