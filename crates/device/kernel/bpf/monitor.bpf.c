/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The monitor: at TCP's tracepoints these programs write records into one ring buffer. */
#include "program.h"

const volatile struct watch_config watch;

/* The number of records that were dropped because `records` was full. */
u64 lost_records;

/*
 * The build makes the structs of user space from BTF. No map holds these two structs, so only these
 * variables put them into BTF.
 */
struct record_value *record_layout;
struct snapshot_value *snapshot_layout;

/* User space polls, because a wake-up per record would cost ten times as much as the record. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} records SEC(".maps");

/* The namespaces to watch: cookies, or inodes with NAMESPACE_BY_INODE. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u32);
} watched_namespaces SEC(".maps");

struct last_seen {
	u64 sampled_ns;
	u32 probing_tail; /* 1: a tail loss probe was in flight at the last ACK */
	u32 zero;
};

/* For each socket the state at its last ACK. The kernel removes it with the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct last_seen);
} last_seen SEC(".maps");

static __always_inline bool is_watched_address(const struct socket_value *socket)
{
	bool local = true, remote = true;

	for (int i = 0; i < 16; i++) {
		local &= socket->local[i] == watch.address[i];
		remote &= socket->remote[i] == watch.address[i];
	}
	return local || remote;
}

static __always_inline bool is_watched_namespace(struct net *net)
{
	u64 cookie = net->net_cookie;
	u64 inode = net->ns.inum | NAMESPACE_BY_INODE;

	return bpf_map_lookup_elem(&watched_namespaces, &cookie) ||
	       bpf_map_lookup_elem(&watched_namespaces, &inode);
}

static __always_inline bool is_watched(struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	struct socket_value socket;

	if (watch.by_namespace && !is_watched_namespace(sk->__sk_common.skc_net.net))
		return false;
	if (watch.port && watch.port != local_port_of(tp) &&
	    watch.port != bpf_ntohs(sk->__sk_common.skc_dport))
		return false;
	if (!watch.by_address)
		return true;
	read_addresses(&socket, tp);
	return is_watched_address(&socket);
}

static __always_inline void report(struct tcp_sock *tp, u32 kind, u32 detail)
{
	struct record_value *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);

	if (!record) {
		__sync_fetch_and_add(&lost_records, 1);
		return;
	}
	record->at_ns = bpf_ktime_get_ns();
	record->kind = kind;
	record->detail = detail;
	read_socket(&record->socket, tp);
	read_figures(&record->figures, tp);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Whether a sample is due. It also records the state that on_state_change needs. */
static __always_inline bool sample_is_due(struct sock *sk, struct tcp_sock *tp)
{
	struct last_seen *seen =
		bpf_sk_storage_get(&last_seen, sk, (void *)0, BPF_SK_STORAGE_GET_F_CREATE);
	u64 now;

	if (!seen)
		return true; /* without memory for the state every ACK gets a sample */
	seen->probing_tail = tp->tlp_high_seq != 0;
	if (!watch.sample_interval_ns)
		return true;
	now = bpf_ktime_get_ns();
	if (now - seen->sampled_ns < watch.sample_interval_ns)
		return false;
	seen->sampled_ns = now;
	return true;
}

/* Called before TCP handles an arrived segment. If data is in flight, the segment is an ACK. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(on_segment, struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp;

	if (!sk->sk_wmem_queued)
		return 0; /* most sockets without data are receivers; this keeps their cost small */
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !tp->packets_out || !is_watched(tp))
		return 0;
	if (sample_is_due(sk, tp))
		report(tp, RECORD_SAMPLE, 0);
	return 0;
}

/*
 * Whether the state CWR comes from a tail loss probe that has repaired a loss, and not from an
 * overflow of the host's queue. The kernel resets tlp_high_seq just before, so the value at the
 * last ACK is used.
 */
static __always_inline bool is_tail_loss_probe(struct sock *sk, struct tcp_sock *tp)
{
	struct last_seen *seen = bpf_sk_storage_get(&last_seen, sk, (void *)0, 0);

	return seen && seen->probing_tail && !tp->tlp_high_seq;
}

SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(on_congestion_state, struct sock *sk, const u8 state)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)tp;
	u32 detail;
	u8 before;

	if (!tp || !is_watched(tp))
		return 0;
	before = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	if (before == state && state != TCP_CA_Loss)
		return 0;
	detail = before << STATE_FROM_SHIFT | state << STATE_TO_SHIFT;
	if (state == TCP_CA_CWR && tp->ecn_flags & TCP_ECN_OK)
		detail |= STATE_BY_ECN;
	if (state == TCP_CA_CWR && is_tail_loss_probe(sk, tp))
		detail |= STATE_BY_TAIL_LOSS_PROBE;
	report(tp, RECORD_STATE, detail);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_retransmit, struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (tp && is_watched(tp))
		report(tp, RECORD_RETRANSMIT, 0);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_socket_state, struct sock *sk, const int before, const int after)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (!tp || !is_watched(tp))
		return 0;
	if (after == TCP_ESTABLISHED)
		report(tp, RECORD_OPENED, 0);
	else if (after == TCP_CLOSE && before != TCP_LISTEN)
		report(tp, RECORD_CLOSED, 0);
	return 0;
}
