/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The structs that BPF programs and user space exchange. The build makes the same structs in Rust from
 * the compiled objects; `src/raw.rs` names them.
 */
#ifndef WAKEAI_INTF_H
#define WAKEAI_INTF_H

/* Key of the maps `interface_bounds` and `heartbeats`. */
struct interface_key {
	u64 netns_cookie;
	u32 ifindex;
	u32 zero;
};

/* Value of the maps `interface_bounds` and `socket_bounds`: 0 means no bound. */
struct bounds_value {
	u32 floor;       /* segments */
	u32 ceiling;     /* segments */
	u64 pacing;      /* bytes per second */
	u64 small_queue; /* bytes of packets */
	u32 receive;     /* the receive window, segments of the peer's size */
	u32 zero;
};

/* Value of the map `receive_windows`: clamps of a socket's receive window, in bytes. */
struct window_value {
	u32 found;   /* by us, before we wrote the first one */
	u32 written; /* by us */
	u32 is_own;  /* whether `found` is the application's own, and not the kernel's */
};

/* Value of the map `bounded_senders`: clamps of a socket's congestion window, in segments. */
struct sender_value {
	u32 found;   /* by us, before we wrote the first one */
	u32 written; /* by us */
};

/* What `bound_windows` did with a connection. */
enum window_outcome {
	WINDOW_ALONE,     /* it is not bounded, and was not */
	WINDOW_BOUND,
	WINDOW_MOVED,     /* it is bounded, and was not, or its clamp had changed since it was written */
	WINDOW_FREED,     /* the clamp that was found is put back */
	WINDOW_CLOSED,    /* it stays as it is, because the window is 0 */
	WINDOW_MULTIPATH, /* a subflow of MPTCP, which stays as it is */
	WINDOW_REFUSED,   /* by the kernel */
	SENDER_BOUND,     /* its congestion window, because its algorithm applies no bounds */
	SENDER_FREED,     /* the clamp of its congestion window is put back */
};

/* A socket. IPv4 addresses are IPv4-mapped IPv6 addresses (RFC 4291 section 2.5.5.2). */
struct socket_value {
	u64 cookie;
	u64 netns_cookie;
	u8 local[16];
	u8 remote[16];
	u32 netns_inode;
	u32 ifindex;
	u16 local_port;
	u16 remote_port;
	u32 zero;
};

struct figures_value {
	u64 pacing_rate; /* bytes per second; ~0: none */
	u32 cwnd;        /* in segments, like all counts below */
	u32 ssthresh;
	u32 srtt_us;
	u32 latest_rtt_us;
	u32 min_rtt_us;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 send_queue; /* bytes */
	u32 delivered;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 mss; /* bytes */
	u8 ca_state;
	u8 app_limited;
	u16 zero;
	u32 k_q10; /* K of CUBIC's curve, in 1/1024 s; ~0: none known */
};

/* The figures of a receiver. */
struct receiving_value {
	u64 received; /* bytes in order */
	u32 rtt_us;   /* 0: not measured */
	u32 window;   /* bytes */
	u32 mss;      /* bytes */
	u32 zero;
};

enum record_kind {
	RECORD_SAMPLE,
	RECORD_OPENED,
	RECORD_CLOSED,
	RECORD_STATE, /* detail: enum state_detail */
	RECORD_RETRANSMIT,
};

/* The detail of RECORD_STATE: the congestion states before and after, and the cause of CWR. */
enum state_detail {
	STATE_FROM_SHIFT = 0,
	STATE_TO_SHIFT = 8,
	STATE_BY_ECN = 1 << 16,
	STATE_BY_TAIL_LOSS_PROBE = 1 << 17,
};

/* Record of the ring buffer `records`. */
struct record_value {
	u64 at_ns; /* CLOCK_MONOTONIC */
	enum record_kind kind;
	u32 detail;
	struct socket_value socket;
	struct figures_value figures;
};

/* Record of the iterator `snapshot_connections`. */
struct snapshot_value {
	struct socket_value socket;
	struct figures_value figures;
	struct receiving_value receiving;
	char algorithm[TCP_CA_NAME_MAX];
};

/* The request and the result of `snapshot_connections`. */
struct snapshot_request {
	u32 ifindex;      /* 0: any */
	u32 idle_jiffies; /* a connection that has sent and received nothing for longer is idle */
	u32 idle_most;    /* the largest number of idle connections that are written */
	u32 marks;        /* 1: `snapshot_marked` will read the connections that are written */
	u32 idle;         /* result: the number of idle connections, written or not */
};

/* The request and the result of `move_connections`. */
#define MOVE_FROM_MAX 8

struct move_request {
	u32 ifindex;    /* 0: any */
	u32 from_count; /* 0: any algorithm */
	char from[MOVE_FROM_MAX][TCP_CA_NAME_MAX];
	char to[TCP_CA_NAME_MAX];
	u32 moved;
	u32 failed;
};

/* The assignment of assign.bpf.c. A condition whose value is zero is not checked. */
struct assignment {
	u64 netns_cookie;
	u64 cookie;
	u64 rate;       /* target of wakeai_av, payload bytes per second; 0: none */
	u32 to[4];      /* remote network, as in socket_value */
	u32 to_mask[4]; /* the bits of `to` that are compared */
	u32 owner;      /* the process that moves the connections */
	u16 to_port;
	u8 by_default; /* 1: connections with the algorithm by default; 0: those `owner` moved */
	u8 listeners; /* 1: listening sockets are moved back, too */
	char algorithm[TCP_CA_NAME_MAX];
	char otherwise[TCP_CA_NAME_MAX]; /* for connections whose previous algorithm is gone */
};

struct assign_outcome {
	u32 done;
	u32 failed;
};

/* Value of the map `moved_sockets`. */
struct moved_value {
	u32 owner;
	char before[TCP_CA_NAME_MAX];
};

/* The connections that the monitor watches. A condition whose value is zero is not checked. */
struct watch_config {
	u64 sample_interval_ns; /* 0: every ACK */
	u8 address[16];
	u16 port;
	u8 by_address;
	u8 by_namespace; /* 1: the namespace must be in the map `watched_namespaces` */
	u32 zero;
};

/* A flow of datagrams as this machine sends it. Addresses are as in socket_value. */
struct flow_key {
	u8 local[16];
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
	u32 zero;
};

/* Value of the map `udp_flows`. */
struct flow_value {
	struct flow_key flow;
	u64 id;        /* FLOW_ID, a time and the slot; 0: the slot is free; FLOW_CLAIMED */
	u64 last_ns;   /* CLOCK_MONOTONIC */
	u64 bytes;     /* payload that the flow's sockets have handed over, and was not dropped */
	u64 datagrams; /* likewise */
	u64 next_ns;   /* when the next datagram may leave, by `rate` */
	u64 unmarked_ns; /* when the next datagram could leave, if those with CE had been dropped */
	u64 departs_ns; /* when the last datagram leaves that has to wait */
	u64 rate;      /* payload bytes per second, of the last datagram that had one */
	u64 delayed;   /* datagrams with a later departure time */
	u64 marked;    /* datagrams with CE */
	u64 dropped;   /* datagrams */
	u32 carries;   /* enum flow_content */
	u32 zero;
};

/* The slots of the maps `udp_flows` and `udp_rates`. */
#define FLOW_SLOTS 2048
/* The bit that no socket's cookie has. */
#define FLOW_ID (1ull << 63)
#define FLOW_CLAIMED 1

/* Value of the map `udp_rates`: the rate of the flow in the same slot, if it has this id. */
struct flow_rate {
	u64 id;
	u64 rate; /* payload bytes per second; 0: none */
	u64 burst_ns; /* datagrams that have to wait leave together at multiples of this time; 0: each at its own */
};

/* What a flow carries, by its ports and its first datagram. */
enum flow_content {
	CARRIES_DATA,
	CARRIES_TUNNEL, /* or what may be one: it is never dropped */
};

/* Value of the only entry of the map `egress_interface`. */
struct egress_config {
	u64 netns_cookie;
	u32 ifindex;
	u32 departs; /* 1: the interface's queueing discipline obeys departure times */
};

/* A key of `watched_namespaces` is a namespace's cookie, or its inode with this bit set. */
#define NAMESPACE_BY_INODE (1ull << 63)

#endif
