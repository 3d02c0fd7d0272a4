/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Counts the datagrams that the machine's own sockets send over one interface, per flow, and slows a flow that
 * has a rate: by departure times where the queueing discipline obeys them, else by CE marks and drops, as a
 * shaper does (docs/decisions/034-datagrams.md). Datagrams that have to wait may leave in bursts, which share an
 * aggregate of 802.11. The program is attached to a control group, and sees no packet that is
 * forwarded or that the kernel's own tunnels send.
 */
#include "program.h"

enum { ETH_P_IP = 0x0800, ETH_P_IPV6 = 0x86dd, IPPROTO_UDP = 17, FRAGMENT_OFFSET = 0x1fff };

/* What a program at a cgroup's egress returns. A drop with CONGESTED is no error for the sender. */
enum { PASS = 1, DROP_CONGESTED = 2 };

#define NS_PER_S 1000000000ull
/* Ethernet's header, which the interface's own counter has, too. */
#define LINK_HEADER 14
/* IPv4 and TCP with timestamps (RFC 7323). */
#define TCP_HEADERS 52

/*
 * The largest backlog of a flow's virtual queue: beyond this time datagrams are dropped. Where they wait in it, half of
 * the time is enough: CUBIC, whose window falls to 0.7 of what it was, keeps the rate on paths of up to 116 ms.
 */
const volatile u64 horizon_ns = 100000000;
const volatile u64 longest_wait_ns = 50000000;
/*
 * The parts of the largest backlog beyond which datagrams are marked CE (RFC 3168): the second where they wait in it, because a
 * shorter wait would not keep the rate. A marked datagram does not count in the backlog that is compared with this, as if it had
 * been dropped: the backlog itself takes several round trips to drain after the sender has slowed down, and each of them would
 * reduce the sender's window once more.
 */
#define MARK_PERCENT 50
#define MARK_PERCENT_WAITING 80
/* The longest burst: a longer one would let a flow wait for much longer than for the horizon. */
const volatile u64 burst_most_ns = 30000000;
/* So many bytes fit into the virtual queue at any rate: the initial window of QUIC (RFC 9002 section 7.2). */
const volatile u64 burst_bytes = 14720;
const volatile u64 egress_stale_after_ns = 1500000000; /* set at load */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct egress_config);
} egress_interface SEC(".maps");

/* The time of the agent's last heartbeat, CLOCK_MONOTONIC in ns. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} egress_heartbeat SEC(".maps");

/* What all sockets have sent over the interface, with TCP, in bytes of the link. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} egress_bytes SEC(".maps");

/*
 * The flows: a table of sets with four slots each, of which a new flow takes the one that has been silent for
 * longest. Slots of an array are found in a tenth of the time that the kernel's hash table with LRU takes.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOW_SLOTS);
	__type(key, u32);
	__type(value, struct flow_value);
} udp_flows SEC(".maps");

#define SET_SLOTS 4

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOW_SLOTS);
	__type(key, u32);
	__type(value, struct flow_rate);
} udp_rates SEC(".maps");

/* The headers as they are on the wire. */
struct ports {
	__be16 source;
	__be16 destination;
	__be16 length;
	__be16 checksum;
};

struct ipv4_header {
	u8 version_and_length;
	u8 traffic_class;
	__be16 length;
	__be16 id;
	__be16 fragment;
	u8 ttl;
	u8 protocol;
	__be16 checksum;
	__be32 source;
	__be32 destination;
	struct ports ports; /* where there are no options */
};

struct ipv6_header {
	__be32 version;
	__be16 length;
	u8 next_header;
	u8 hop_limit;
	__be32 source[4];
	__be32 destination[4];
	struct ports ports;
};

/* A packet, as far as it was read. */
struct packet {
	struct flow_key flow;
	u32 headers; /* bytes before the payload */
	u32 segments;
};

/* Whether the kernel has bpf_rdonly_cast, as from Linux 6.2; set at load. */
const volatile bool casts = false;

extern void *bpf_rdonly_cast(const void *address, u32 type) __ksym __weak;

/*
 * The cookie of the network namespace of the packet's socket. The type of the socket in a packet's context gives no
 * access to it.
 */
static __always_inline u64 netns_cookie_of(struct __sk_buff *skb)
{
	struct bpf_sock *typed = skb->sk;
	struct sock *sk = (void *)0;

	if (!typed)
		return 0;
	if (casts) {
		sk = bpf_rdonly_cast(typed, bpf_core_type_id_kernel(struct sock));
		return sk->__sk_common.skc_net.net->net_cookie;
	}
	/* Read from the stack, the address is a number, with which the verifier allows arithmetic. */
	bpf_probe_read_kernel(&sk, sizeof(sk), &typed);
	return BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie);
}

static __always_inline void set_ports(struct packet *to, struct ports *ports)
{
	to->flow.local_port = bpf_ntohs(ports->source);
	to->flow.remote_port = bpf_ntohs(ports->destination);
}

/* Reads an IPv4 packet. Returns whether it is a datagram of UDP. */
static __always_inline bool read_v4(struct __sk_buff *skb, struct packet *to)
{
	struct ipv4_header header;
	u32 length;

	if (bpf_skb_load_bytes(skb, 0, &header, sizeof(header)))
		return false;
	length = (header.version_and_length & 15) * 4;
	if (header.protocol != IPPROTO_UDP || header.fragment & bpf_htons(FRAGMENT_OFFSET))
		return false;
	if (length != sizeof(header) - sizeof(header.ports) &&
	    bpf_skb_load_bytes(skb, length, &header.ports, sizeof(header.ports)))
		return false;
	copy_address(to->flow.local, (void *)0, header.source, true);
	copy_address(to->flow.remote, (void *)0, header.destination, true);
	set_ports(to, &header.ports);
	to->headers = length + sizeof(header.ports);
	return true;
}

static __always_inline bool read_v6(struct __sk_buff *skb, struct packet *to)
{
	struct ipv6_header header;

	if (bpf_skb_load_bytes(skb, 0, &header, sizeof(header)) || header.next_header != IPPROTO_UDP)
		return false;
	copy_address(to->flow.local, header.source, 0, false);
	copy_address(to->flow.remote, header.destination, 0, false);
	set_ports(to, &header.ports);
	to->headers = sizeof(header);
	return true;
}

static __always_inline bool read_datagram(struct __sk_buff *skb, struct packet *to)
{
	bool is_udp = skb->protocol == bpf_htons(ETH_P_IP)     ? read_v4(skb, to) :
		      skb->protocol == bpf_htons(ETH_P_IPV6) ? read_v6(skb, to) :
							       false;

	return is_udp && skb->len >= to->headers;
}

static __always_inline bool is_tunnel_port(u16 port)
{
	/* IKE and ESP (RFC 3948), OpenVPN, L2TP, VXLAN of RFC 7348 and of Linux, Geneve, WireGuard. */
	return port == 500 || port == 4500 || port == 1194 || port == 1701 || port == 4789 || port == 8472 ||
	       port == 6081 || port == 51820;
}

/*
 * What a flow carries. A message of WireGuard begins with its type, 1 to 4, and three zeros. The first byte of
 * DTLS is 20 to 63 (RFC 7983), and some tunnels are DTLS. A datagram that is too short tells nothing.
 */
static __always_inline u32 content_of(struct __sk_buff *skb, struct packet *packet)
{
	u8 first[4];

	if (is_tunnel_port(packet->flow.local_port) || is_tunnel_port(packet->flow.remote_port) ||
	    bpf_skb_load_bytes(skb, packet->headers, first, sizeof(first)))
		return CARRIES_TUNNEL;
	if (first[0] >= 1 && first[0] <= 4 && !first[1] && !first[2] && !first[3])
		return CARRIES_TUNNEL;
	return first[0] >= 20 && first[0] <= 63 ? CARRIES_TUNNEL : CARRIES_DATA;
}

static __always_inline bool is_same(const struct flow_key *a, const struct flow_key *b)
{
	const u64 *left = (const u64 *)a, *right = (const u64 *)b;

	/* Without branches, each of which the verifier would follow. */
	return !((left[0] ^ right[0]) | (left[1] ^ right[1]) | (left[2] ^ right[2]) | (left[3] ^ right[3]) |
		 (left[4] ^ right[4]));
}

/* The first slot of the set in which a flow has its place. */
static __always_inline u32 set_of(const struct flow_key *flow)
{
	const u64 *words = (const u64 *)flow, factor = 0x9e3779b97f4a7c15ull; /* 2^64 by the golden ratio */
	u64 hash = words[0] * factor;

	for (int i = 1; i < 5; i++)
		hash = (hash ^ (hash >> 29) ^ words[i]) * factor;
	return (hash >> 40) & (FLOW_SLOTS - SET_SLOTS);
}

/*
 * Takes the slot for a new flow. Of several processors that want it at once, one gets it; what the others send
 * is counted from their next packet on.
 */
static __always_inline bool claim(struct flow_value *value, u32 slot, struct __sk_buff *skb,
				  struct packet *packet)
{
	u64 before = value->id, now = bpf_ktime_get_ns();

	if (before == FLOW_CLAIMED || __sync_val_compare_and_swap(&value->id, before, FLOW_CLAIMED) != before)
		return false;
	value->flow = packet->flow;
	value->last_ns = now;
	value->bytes = value->datagrams = value->rate = 0;
	value->next_ns = value->unmarked_ns = value->departs_ns = 0;
	value->delayed = value->marked = value->dropped = 0;
	value->carries = content_of(skb, packet);
	value->id = FLOW_ID | (now >> 10) * FLOW_SLOTS | slot;
	return true;
}

/* The slot of a packet's flow in the table; FLOW_SLOTS where it got none. */
static __always_inline u32 slot_of(struct __sk_buff *skb, struct packet *packet)
{
	u32 first = set_of(&packet->flow), oldest = first;
	struct flow_value *value;
	u64 oldest_ns = ~0ull;

#pragma unroll
	for (u32 n = 0; n < SET_SLOTS; n++) {
		u32 slot = first + n;

		value = bpf_map_lookup_elem(&udp_flows, &slot);
		if (!value)
			return FLOW_SLOTS;
		if (is_same(&value->flow, &packet->flow))
			return value->id == FLOW_CLAIMED ? FLOW_SLOTS : slot;
		if (value->last_ns < oldest_ns) {
			oldest_ns = value->last_ns;
			oldest = slot;
		}
	}
	value = bpf_map_lookup_elem(&udp_flows, &oldest);
	return value && claim(value, oldest, skb, packet) ? oldest : FLOW_SLOTS;
}

/* Whether the agent has written a heartbeat lately. One from the future would be valid for too long. */
static __always_inline bool is_governed(u64 now)
{
	s64 allowed = egress_stale_after_ns;
	u32 only = 0;
	u64 *heartbeat = bpf_map_lookup_elem(&egress_heartbeat, &only);

	return heartbeat && (s64)(now - *heartbeat) <= allowed && (s64)(*heartbeat - now) <= allowed;
}

/* The time that what is in a virtual queue takes, which had this rate before and is empty at `until`. */
static __always_inline u64 backlog_of(u64 until, u64 before, u64 now, u64 rate)
{
	u64 backlog = until > now ? until - now : 0;

	/* When the rate rises, the queue is served faster. When it falls, nobody waits for longer than before. */
	return before < rate ? backlog * before / rate : backlog;
}

/* The end of the burst in which this time lies. All flows of the machine have the same bursts. */
static __always_inline u64 end_of_burst(u64 time, u64 burst)
{
	u64 past;

	if (burst > burst_most_ns)
		burst = burst_most_ns;
	past = burst ? time % burst : 0;
	return past ? time + burst - past : time;
}

/*
 * Gives a packet that has to wait its departure time. It is not before that of an earlier packet of the flow, which
 * may wait for the end of a burst, or for the rate that the flow had before.
 */
static __always_inline void depart(struct __sk_buff *skb, struct flow_value *flow, u64 at, u32 segments)
{
	if (at < flow->departs_ns)
		at = flow->departs_ns;
	flow->departs_ns = at;
	if (skb->tstamp < at) {
		skb->tstamp = at;
		__sync_fetch_and_add(&flow->delayed, segments);
	}
}

/*
 * Lets a packet of so many payload bytes pass a virtual queue that is served at the flow's rate. The queue is
 * empty when the flow was below its rate, so such a flow is neither delayed nor marked.
 */
static __always_inline int queue(struct __sk_buff *skb, struct flow_value *flow, u64 now, struct flow_rate *of,
				 u64 bytes, u32 segments, bool departs)
{
	u64 rate = of->rate, longest = departs ? longest_wait_ns : horizon_ns;
	u64 backlog, unmarked, next, room, taken, mark_above;

	if (!rate) /* it was removed since */
		return PASS;
	backlog = backlog_of(flow->next_ns, flow->rate, now, rate);
	unmarked = backlog_of(flow->unmarked_ns, flow->rate, now, rate);
	room = burst_bytes * NS_PER_S / rate;
	if (room < longest)
		room = longest;
	flow->rate = rate;
	if (backlog > room && flow->carries == CARRIES_DATA) {
		flow->next_ns = now + backlog;
		flow->unmarked_ns = now + unmarked;
		__sync_fetch_and_add(&flow->dropped, segments);
		return DROP_CONGESTED;
	}
	/* What is never dropped does not wait for longer either. */
	next = now + (backlog < room ? backlog : room);
	taken = bytes * NS_PER_S / rate;
	flow->next_ns = next + taken;
	mark_above = room * (departs ? MARK_PERCENT_WAITING : MARK_PERCENT) / 100;
	if (unmarked > mark_above && bpf_skb_ecn_set_ce(skb))
		__sync_fetch_and_add(&flow->marked, segments);
	else
		unmarked = unmarked < room ? unmarked + taken : room + taken;
	flow->unmarked_ns = now + unmarked;
	if (departs && backlog)
		depart(skb, flow, end_of_burst(next, of->burst_ns), segments);
	return PASS;
}

static __always_inline void count_link_bytes(struct __sk_buff *skb, u32 segments, u32 headers)
{
	u32 only = 0;
	u64 *bytes = bpf_map_lookup_elem(&egress_bytes, &only);

	if (bytes)
		*bytes += skb->len + (u64)(segments - 1) * headers + (u64)segments * LINK_HEADER;
}

/* Counts a datagram, or a call's datagrams (UDP GSO), and holds its flow to its rate. */
static __always_inline int govern(struct __sk_buff *skb, struct packet *packet, bool departs)
{
	u32 slot = slot_of(skb, packet);
	struct flow_value *flow = bpf_map_lookup_elem(&udp_flows, &slot);
	struct flow_rate *rate = bpf_map_lookup_elem(&udp_rates, &slot);
	u64 bytes = skb->len - packet->headers, now;
	int verdict = PASS;

	if (!flow || !rate)
		return PASS;
	if (rate->rate && rate->id == flow->id) {
		now = bpf_ktime_get_ns();
		if (is_governed(now))
			verdict = queue(skb, flow, now, rate, bytes, packet->segments, departs);
	} else {
		now = bpf_ktime_get_coarse_ns();
	}
	/* The flow stays in order, also where its queue is empty again before the burst ends, or its rate has ended. */
	if (verdict == PASS && departs && now < flow->departs_ns)
		depart(skb, flow, flow->departs_ns, packet->segments);
	flow->last_ns = now;
	if (verdict == PASS) {
		__sync_fetch_and_add(&flow->bytes, bytes);
		__sync_fetch_and_add(&flow->datagrams, packet->segments);
	}
	return verdict;
}

SEC("cgroup_skb/egress")
int govern_egress(struct __sk_buff *skb)
{
	struct packet packet = {};
	struct egress_config *config;
	u32 only = 0;
	int verdict;

	config = bpf_map_lookup_elem(&egress_interface, &only);
	if (!config || skb->ifindex != config->ifindex || netns_cookie_of(skb) != config->netns_cookie)
		return PASS;
	packet.segments = skb->gso_segs ? skb->gso_segs : 1;
	if (!read_datagram(skb, &packet)) {
		count_link_bytes(skb, packet.segments, TCP_HEADERS);
		return PASS;
	}
	verdict = govern(skb, &packet, config->departs);
	if (verdict == PASS)
		count_link_bytes(skb, packet.segments, packet.headers);
	return verdict;
}

/* Makes the compiler describe the type, from which the build makes the same in Rust. */
enum flow_content *content_layout;
