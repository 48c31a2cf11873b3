/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bottleneck as the server in the kernel runs it (engine qdisc).
 */
#ifndef EMUD_ABI_SERVICE_H
#define EMUD_ABI_SERVICE_H

#include <linux/types.h>

#include "general.h"

/* The nodes of a tree: the wire, node 0, and the classes below it. */
#define EMUD_NODES 32
/* Classes above each other, at most. */
#define EMUD_DEPTH 8
/* Paths of a direction whose packets may keep their order behind a server. */
#define EMUD_PATHS (EMUD_DIRECTIONS * EMUD_LINKS_MAX)

/* As Schedule in src/bottleneck/plan.rs. */
enum emud_schedule {
	EMUD_SCHEDULE_FIFO,
	EMUD_SCHEDULE_PRIORITY,
	EMUD_SCHEDULE_DRR,
	EMUD_SCHEDULE_HTB,
};

/* A class. What the schedule does not use is 0. */
struct emud_node_plan {
	__u64 rate; /* guaranteed, bit/s; 0: none */
	__u64 ceil; /* bit/s; 0: none */
	__u64 quantum; /* bytes in a round */
	__u64 limit_bytes; /* ~0: any */
	__u64 limit_ns; /* ~0: any */
	__u32 limit_packets; /* ~0: any */
	__u16 parent; /* a node */
	__u8 level; /* 0: nothing is guaranteed below it; then the deepest first */
	__u8 priority;
	__u32 is_leaf;
	/* Its number: the verifier would follow each number that it knows by itself, and does
	 * not know what it reads. */
	__u32 node;
};

/* What a direction's server runs; 0 nodes: it has none. */
struct emud_plan {
	__u64 rate; /* bit/s */
	__u32 schedule; /* enum emud_schedule */
	__u32 nodes;
	__u32 leaves;
	__u32 first; /* number of the class of node 1 */
	struct emud_node_plan node[EMUD_NODES];
};

/* In the number of a class: when it is full, senders of this host wait. */
#define EMUD_SERVICE_BLOCKS (1U << 31)

/* What the classifier writes for the qdisc about a packet that waits in a class: skb->cb. */
struct emud_classed {
	__u16 magic; /* EMUD_CLASSED, EMUD_TOKEN */
	__u16 service; /* number of the class */
	__u16 path; /* packets of one path keep their order */
	__u16 token; /* random, the same for a packet and its token */
	__u32 bytes; /* on the wire */
	__u32 own_bytes; /* without overhead */
	__u8 link; /* number */
	__u8 flags; /* enum emud_service_flags */
	__u16 packets; /* of a super-packet */
};
#define EMUD_CLASSED 0xe3d5
/* The packet that a sender waits for: that one is a clone, without the socket, and this one
 * is freed when the server sends it. */
#define EMUD_TOKEN 0xe3d6
#define EMUD_TOKENS 65536
_Static_assert(sizeof(struct emud_classed) == 20, "what a qdisc has of skb->cb");

#endif
