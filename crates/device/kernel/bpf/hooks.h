/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * An algorithm's .bpf.c includes this after the source that kernel and simulator share. It defines
 * the algorithm's hooks as a struct_ops. The .bpf.c defines before
 *   ALGORITHM  so that the algorithm is registered as wakeai_ALGORITHM;
 *   SOURCE     the prefix of the shared source's functions, if it is not ALGORITHM;
 *   PLAIN      the name of the kernel's algorithm that replaces ours when ours is unloaded;
 *   FORGET     a statement that deletes further state of the socket `cookie`, if there is any;
 *   ON_ACK     what handles an ACK, if it needs more than the counts and the RTT;
 *   MIN_TSO_SEGS    the smallest size of a burst, if it is not the administrator's;
 *   SNDBUF_WINDOWS  the windows for which the send buffer has room, if they are not Linux's two.
 */
#ifndef WAKEAI_HOOKS_H
#define WAKEAI_HOOKS_H

#define STRING_(a) #a
#define STRING(a) STRING_(a)
#ifndef SOURCE
#define SOURCE ALGORITHM
#endif
#ifndef FORGET
#define FORGET
#endif
#ifndef ON_ACK
#define ON_ACK(sk, rs) HOOK(on_ack)(sk, rs->acked_sacked, rs->losses, rs->rtt_us)
#endif
#ifndef MIN_TSO_SEGS
#define MIN_TSO_SEGS(sk) ipv4_sysctl(sk, sysctl_tcp_min_tso_segs)
#endif
#define HOOK(name) JOIN(SOURCE, name)
#define OURS JOIN(wakeai, ALGORITHM)
/* BPF_PROG with the algorithm's name before the hook's. */
#define PROGRAM(name, args...) PROGRAM_(JOIN(OURS, name), ##args)
#define PROGRAM_(name, args...) BPF_PROG(name, ##args)

/*
 * Whether the connection has just changed to another algorithm, because ours is being unloaded.
 * User space moves the connections that it can see. It cannot see connections that were closed with
 * data in flight, in a namespace that has neither a name nor a process any more. Such connections
 * change here, at their next ACK or timeout. After this has returned true, the private area belongs
 * to the new algorithm.
 */
static __always_inline bool left_for_good(struct sock *sk)
{
	char plain[TCP_CA_NAME_MAX] = PLAIN, reno[TCP_CA_NAME_MAX] = "reno";
	u32 only = 0, *retired = bpf_map_lookup_elem(&wakeai_retired, &only);

	if (!retired || !*retired)
		return false;
	return !bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, plain, sizeof(plain)) ||
	       !bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
}

SEC("struct_ops")
void PROGRAM(init, struct sock *sk)
{
	HOOK(init)(sk);
	bound_own_window(sk);
}

SEC("struct_ops")
void PROGRAM(release, struct sock *sk)
{
	u64 cookie = sk->__sk_common.skc_cookie.counter;

	HOOK(release)(sk);
	bpf_map_delete_elem(&socket_bounds, &cookie);
	FORGET;
}

SEC("struct_ops")
u32 PROGRAM(ssthresh, struct sock *sk)
{
	return HOOK(ssthresh)(sk);
}

SEC("struct_ops")
u32 PROGRAM(undo_cwnd, struct sock *sk)
{
	return HOOK(undo_cwnd)(sk);
}

SEC("struct_ops")
void PROGRAM(set_state, struct sock *sk, u8 new_state)
{
	if (!left_for_good(sk))
		HOOK(set_state)(sk, new_state);
}

/*
 * The kernel calls this hook to get the smallest size of a burst, and reads the window afterwards.
 * So the hook can still set the window for the first segments after an idle time. CA_EVENT_TX_START
 * would be too late, because it comes with the first segment.
 */
SEC("struct_ops")
u32 PROGRAM(min_tso_segs, struct sock *sk)
{
	HOOK(before_sending)(sk);
	bound_window_of_answer(sk);
	return MIN_TSO_SEGS(sk);
}

SEC("struct_ops")
void PROGRAM(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		HOOK(after_idle)(sk);
}

/* cong_control from Linux 6.10 on. */
SEC("struct_ops")
void PROGRAM(cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	if (!left_for_good(sk))
		ON_ACK(sk, rs);
}

/* cong_control before Linux 6.10. User space creates the map below that fits the kernel. */
SEC("struct_ops")
void PROGRAM(cong_control_short, struct sock *sk, const struct rate_sample *rs)
{
	if (!left_for_good(sk))
		ON_ACK(sk, rs);
}

#ifdef SNDBUF_WINDOWS
SEC("struct_ops")
u32 PROGRAM(sndbuf_expand, struct sock *sk)
{
	return SNDBUF_WINDOWS;
}
#define SNDBUF_HOOK .sndbuf_expand = (void *)JOIN(OURS, sndbuf_expand),
#else
#define SNDBUF_HOOK
#endif

/* TCP_CONG_NON_RESTRICTED lets every namespace make the algorithm its default. */
#define HOOKS                                             \
	.cwnd_event = (void *)JOIN(OURS, cwnd_event),     \
	.init = (void *)JOIN(OURS, init),                 \
	.release = (void *)JOIN(OURS, release),           \
	.ssthresh = (void *)JOIN(OURS, ssthresh),         \
	.undo_cwnd = (void *)JOIN(OURS, undo_cwnd),       \
	.set_state = (void *)JOIN(OURS, set_state),       \
	.min_tso_segs = (void *)JOIN(OURS, min_tso_segs), \
	SNDBUF_HOOK                                       \
	.flags = TCP_CONG_NON_RESTRICTED,                 \
	.name = STRING(OURS)

SEC(".struct_ops.link")
struct tcp_congestion_ops OURS = {
	HOOKS,
	.cong_control = (void *)JOIN(OURS, cong_control),
};

SEC(".struct_ops.link")
struct tcp_congestion_ops JOIN(OURS, s) = {
	HOOKS,
	.cong_control = (void *)JOIN(OURS, cong_control_short),
};

#endif
