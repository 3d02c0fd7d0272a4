/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Every .bpf.c includes this file. It has the licence, types and helpers of all programs. */
#ifndef WAKEAI_PROGRAM_H
#define WAKEAI_PROGRAM_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include "intf.h"
#include "figures.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Whether a connection in this state may still send data. */
static __always_inline bool may_send(u8 state)
{
	return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT || state == TCP_FIN_WAIT1 ||
	       state == TCP_LAST_ACK || state == TCP_CLOSING;
}

/* Whether two names of algorithms are the same. */
static __always_inline bool same_name(const char *a, const char *b)
{
	for (int i = 0; i < TCP_CA_NAME_MAX; i++) {
		if (a[i] != b[i])
			return false;
		if (!a[i])
			return true;
	}
	return true;
}

#endif
