/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every type that the classifier and the Rust side share. Plain C, no kernel
 * header beyond <linux/types.h>; bindgen makes the Rust half of it.
 */
#ifndef EMUD_H
#define EMUD_H

#include <linux/types.h>

/* Bumped whenever a struct below changes: show, set and detach of one emud
 * refuse a classifier that another emud loaded, instead of misreading it. */
#define EMUD_ABI 2

#define EMUD_UP 0 /* egress of the device */
#define EMUD_DOWN 1 /* ingress of the device */
#define EMUD_DIRECTIONS 2

/* Two configurations a direction: the one in force and the one being written. */
#define EMUD_GENERATIONS 2
#define EMUD_SLOTS (EMUD_DIRECTIONS * EMUD_GENERATIONS)

/* skb->tc_index of a packet that has its departure time behind it (or, for the
 * clone, in its stamp) and must not be emulated again. No qdisc since 6.3 reads
 * tc_index, and skb->mark belongs to the user. */
#define EMUD_TC_INDEX 0xe3d1
/* skb->tc_index of a clone made only to lose the socket: it is yet to be emulated. */
#define EMUD_TC_INDEX_CLONE 0xe3d2

/* A stamp further in the future than this is not a departure time (a receive
 * time in CLOCK_REALTIME, for one); sch_fq's default horizon is the same. */
#define EMUD_HORIZON_NS 10000000000ULL

/* Delay table: EMUD_TABLE_LEN - 1 steps over the standard normal value
 * [-8, 8), so that one step is 1/256 of a standard deviation. */
#define EMUD_Z_SHIFT 24 /* normal values are Q8.24 */
#define EMUD_TABLE_SHIFT 16 /* 2^16 of those to a step */
#define EMUD_TABLE_STEPS 4096
#define EMUD_TABLE_LEN (EMUD_TABLE_STEPS + 1)
#define EMUD_TABLE_ORIGIN (8 << EMUD_Z_SHIFT)

/* Normal quantile by floating-point-like index: 32 octaves of 64 steps. */
#define EMUD_NORMAL_OCTAVES 32
#define EMUD_NORMAL_STEPS 64
#define EMUD_NORMAL_LEN (EMUD_NORMAL_OCTAVES * EMUD_NORMAL_STEPS + 1)

/* 1/sqrt(w^2 + (1-w)^2) over w in [0, 1], Q2.30. */
#define EMUD_BLEND_STEPS 1024
#define EMUD_BLEND_LEN (EMUD_BLEND_STEPS + 1)

/* The longest queue that can be counted in packets. */
#define EMUD_RING_LEN 65536

/* Flows whose packets are numbered: sets of EMUD_FLOW_WAYS. */
#define EMUD_FLOW_SETS 8192
#define EMUD_FLOW_WAYS 4

#define EMUD_HIST_LEN 64

enum emud_release {
	EMUD_RELEASE_NONE, /* not active: every packet passes */
	EMUD_RELEASE_STAMP, /* fq on this device honours skb->tstamp */
	EMUD_RELEASE_IFB, /* fq on emud's ifb does */
	EMUD_RELEASE_MIRRED, /* the same, by a mirred filter after the classifier */
	EMUD_RELEASE_HOLD, /* the holder behind the TAP does */
};

enum emud_flags {
	EMUD_F_L3 = 1 << 0, /* the device has no Ethernet header */
	EMUD_F_NEIGHBOURS = 1 << 1, /* emulate ARP and neighbour discovery too */
	EMUD_F_PER_PACKET = 1 << 2, /* jitter drawn per packet: reorders */
	EMUD_F_JITTER = 1 << 3, /* the delay table is in use */
	EMUD_F_CLONE = 1 << 4, /* packets with a socket go by clone */
	EMUD_F_SHARE = 1 << 8, /* only a share of the packets is delayed */
	EMUD_F_REORDER = 1 << 9, /* some packets are sent without delay */
	EMUD_F_CORRELATED = 1 << 10, /* per packet, and like the one before */
};

/* Why a packet passed untouched. */
enum emud_pass {
	EMUD_PASS_NEIGHBOUR, /* ARP, ICMPv6 neighbour discovery */
	EMUD_PASS_NOT_IP, /* this engine cannot delay other protocols here */
	EMUD_PASS_NO_HOLDER, /* the holder's lease has run out */
	EMUD_PASS_INACTIVE, /* attach or detach is under way */
	EMUD_PASS_FAILED, /* a helper refused the packet */
	EMUD_PASS_REASONS,
};

/* One direction of the link, as the classifier runs it. */
struct emud_link {
	__u64 seed; /* seed, link and direction, already mixed */
	__u64 loss; /* lost if a random u64 is below */
	__u64 rate_mult; /* ns per byte, times 2^rate_shift; 0: no rate */
	__u64 queue_wait_ns; /* longest wait before serialisation; ~0: any */
	__u64 queue_busy_ns; /* longest backlog with the packet; ~0: any */
	__u64 delay_ns; /* constant delay, in place of a table */
	__u64 coherence_ns; /* distance between two knots of the jitter */
	__u64 epoch_ns; /* time of knot 0, CLOCK_MONOTONIC */
	__u32 rate_shift;
	__u32 queue_packets; /* 1..EMUD_RING_LEN; 0: any */
	__s32 overhead; /* bytes a packet on the wire, may be negative */
	__u32 flags; /* enum emud_flags */
	__u32 release; /* enum emud_release */
	__u32 ifindex; /* where to redirect to: ifb or TAP; else 0 */

	/* delay */
	__u64 share; /* delayed if a random u64 is below */
	__u64 reorder; /* sent without delay if a random u64 is below */
	__u64 reorder_repeat; /* as the one before if a random u64 is below */
	__u64 reorder_gap; /* at least gap - 1 delayed ones in between */
	__u32 correlation; /* of a flow's successive normal values, Q2.30 */
	__u32 innovation; /* sqrt(1 - correlation^2), Q2.30 */
};
_Static_assert(sizeof(struct emud_link) == 128, "shared with Rust");

/* Delay by standard normal value, absolute, in ns. */
struct emud_table {
	__u64 delay_ns[EMUD_TABLE_LEN];
};

/* The queue and the order of one direction: lives on through `emud set`. */
struct emud_state {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock; /* always read as 0 */
#endif
	__u32 ring_pos; /* packets admitted so far */
	__u64 busy_until; /* the wire is busy until, ns */
	__u64 busy_frac; /* and a fraction of a ns, times 2^rate_shift */
	__u64 last_departure; /* the latest departure so far, ns */
};
_Static_assert(sizeof(struct emud_state) == 32, "shared with Rust");

/* Which generation is in force, for both directions at once. */
struct emud_control {
	__u32 abi; /* EMUD_ABI */
	__u32 generation; /* 0 or 1 */
	__u32 ifindex; /* the device, for emud_tap */
	__u32 netns; /* inode number of its network namespace, for the monitor */
};
_Static_assert(sizeof(struct emud_control) == 16, "shared with Rust");

struct emud_counters {
	__u64 packets; /* seen, wire packets */
	__u64 bytes; /* seen, wire bytes without overhead */
	__u64 lost; /* by the loss stage */
	__u64 queue_dropped; /* the queue was full */
	__u64 reordered; /* departs before a packet that came earlier */
	__u64 clamped; /* held back to keep the order */
	__u64 super_packets; /* GSO or GRO packets, which met one fate each */
	__u64 flows_forgotten; /* a flow's number of packets was given up */
	__u64 undelayed; /* not in the delayed share, or reordered on purpose */
	__u64 passed[EMUD_PASS_REASONS];
	__u64 delay_hist
		[EMUD_HIST_LEN]; /* [i]: 2^i <= departure - arrival in ns < 2^(i+1) */
};

/* The holder's side of a direction: written by the holder alone. */
struct emud_holder {
	__u64 lease_ns; /* frames may be sent to the holder until then */
	__u64 pid;
	__u64 released; /* frames written back */
	__u64 dropped; /* frames that could not be: malformed, write failed */
	__u64 late; /* written back more than EMUD_LATE_NS after time */
	__u64 worst_late_ns;
	__u64 waiting; /* frames held right now */
	__u32 tuning; /* enum emud_tuning */
	__u32 cpu; /* bound to, if EMUD_TUNED_CPU */
};

/* What the holder got of what makes it punctual. */
enum emud_tuning {
	EMUD_TUNED_CPU = 1 << 0, /* bound to one CPU: else frames may overtake */
	EMUD_TUNED_REALTIME = 1 << 1, /* SCHED_RR: else busy tasks make frames late */
	EMUD_TUNED_TIMER = 1 << 2, /* no timer slack */
	EMUD_TUNED_MEMORY = 1 << 3, /* locked in memory */
};
#define EMUD_LATE_NS 1000000ULL

/* In front of every frame on its way to the holder. The VLAN tag is in here
 * because tun_put_user() would insert it at byte 12, inside this header. */
struct emud_hold_hdr {
	__u64 departure_ns; /* CLOCK_MONOTONIC */
	__u32 magic; /* EMUD_HOLD_MAGIC */
	__u16 vlan_tci;
	__be16 vlan_proto; /* 0: no tag */
};
#define EMUD_HOLD_MAGIC 0x656d7564
_Static_assert(sizeof(struct emud_hold_hdr) == 16, "on the wire to the holder");

/* What detach must put back, and the profile: opaque bytes, written by attach. */
/* 1 MiB: a profile carries its tables of measured delays in its text. */
#define EMUD_RESTORE_LEN 1048576
struct emud_restore {
	__u32 len;
	__u8 bytes[EMUD_RESTORE_LEN - 4];
};

#endif
