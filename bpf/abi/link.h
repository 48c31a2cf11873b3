/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The figures of a link, and those of one packet that replace them.
 */
#ifndef EMUD_ABI_LINK_H
#define EMUD_ABI_LINK_H

#include <linux/types.h>

#include "queueing.h"
#include "time.h"

enum emud_flags {
	EMUD_F_L3 = 1 << 0, /* the device has no Ethernet header */
	EMUD_F_NEIGHBOURS = 1 << 1, /* emulate ARP and neighbour discovery too */
	EMUD_F_PER_PACKET = 1 << 2, /* jitter is random per packet and reorders */
	EMUD_F_JITTER = 1 << 3, /* the delay table is in use */
	EMUD_F_CLONE = 1 << 4, /* packets with a socket are cloned */
	EMUD_F_PLAIN_QUEUE = 1 << 7, /* a rate and limits, nothing else */
	EMUD_F_SHARE = 1 << 8, /* only a share of the packets is delayed */
	EMUD_F_REORDER = 1 << 9, /* some packets are sent without delay */
	EMUD_F_CORRELATED = 1 << 10, /* per packet, correlated with the previous one */

	EMUD_F_DOWN = 1 << 16, /* the link is down */
	EMUD_F_LOSS_BEFORE = 1 << 17, /* loss before the queue */
	EMUD_F_MEND = 1 << 18, /* corrupt: repair the checksums */
	EMUD_F_LOSS_MARKS = 1 << 19, /* loss: mark instead of drop where possible */

	/* of link number 0 */
	EMUD_F_RULES = 1 << 24, /* rules choose the link of a packet */
	EMUD_F_MATRIX = 1 << 25, /* pairs of addresses have separate figures */
	EMUD_F_CGROUPS = 1 << 26, /* rules match control groups */
	EMUD_F_NAMES = 1 << 27, /* rules match names of DNS answers */
};

/* Why a packet passed without emulation. */
enum emud_pass {
	EMUD_PASS_NEIGHBOUR, /* ARP, ICMPv6 neighbour discovery, PTP events */
	EMUD_PASS_NOT_IP, /* this engine cannot delay other protocols here */
	EMUD_PASS_NO_HOLDER, /* the holder's lease has expired */
	EMUD_PASS_INACTIVE, /* attach or detach is under way */
	EMUD_PASS_FAILED, /* a helper returned an error */
	EMUD_PASS_RULE, /* a rule lets it pass */
	EMUD_PASS_REASONS,
};

/* The model that drops packets. Its figures are in emud_link.loss_param in this
 * order. A probability is the bound of a random u64. */
enum emud_loss {
	EMUD_LOSS_NONE,
	EMUD_LOSS_BERNOULLI, /* emud_link.loss */
	EMUD_LOSS_GILBERT_ELLIOTT, /* p, r, loss in the bad, in the good state */
	EMUD_LOSS_FOUR_STATE, /* p13, p31, p32, p23, p14 */
	EMUD_LOSS_BIT_ERROR, /* probability that a byte survives, times 2^64, minus 1 */
	EMUD_LOSS_EVERY, /* n, count at the start */
	EMUD_LOSS_PATTERN, /* packets, 1: repeats */
	EMUD_LOSS_BURST, /* probability that a burst begins, packets */
};
#define EMUD_LOSS_PARAMS 5

/* A recorded pattern: one bit per packet, 1 means lost. */
#define EMUD_PATTERN_LEN 262144
struct emud_pattern {
	__u64 bits[EMUD_PATTERN_LEN / 64];
};

/* Correlations are fractions of 2^30. */
#define EMUD_CORRELATION_SHIFT 30

/* An event of one probability. Packets are independent or correlated. With
 * correlation the event happens if a standard normal AR(1) process is below the
 * quantile of the probability, so correlation does not change the probability. */
struct emud_chance {
	__u64 probability; /* bound of a random u64; 0: never */
	__s64 below; /* quantile of the probability, Q8.24 */
	__u32 correlation; /* of the normal values; 0: none */
	__u32 innovation; /* sqrt(1 - correlation^2) */
};

/* The maximum number of bits that corrupt flips in a packet. */
#define EMUD_CORRUPT_BITS 32

/* One direction of the link, as the classifier runs it. */
struct emud_link {
	__u64 seed; /* seed, link and direction, already mixed */
	__u64 rate_mult; /* ns per byte, times 2^rate_shift; 0: no rate */
	__u64 queue_wait_ns; /* longest wait before serialisation; ~0: any */
	__u64 queue_busy_ns; /* longest backlog including the packet; ~0: any */
	__u64 delay_ns; /* constant delay, instead of a table */
	__u64 coherence_ns; /* distance between two knots of the jitter */
	__u64 epoch_ns; /* time of knot 0, CLOCK_MONOTONIC */
	__u32 rate_shift;
	__u32 queue_packets; /* 1..EMUD_RING_LEN; 0: any */
	__s32 overhead; /* bytes a packet on the wire, may be negative */
	__u32 flags; /* enum emud_flags */
	__u32 release; /* enum emud_release */
	__u32 ifindex; /* redirect target: ifb or TAP, or 0 */

	/* delay */
	__u64 share; /* delayed if a random u64 is below */
	__u64 reorder; /* sent without delay if a random u64 is below */
	__u64 reorder_repeat; /* same as the previous decision if a random u64 is below */
	__u64 reorder_gap; /* at least gap - 1 delayed packets in between */
	__u32 correlation; /* of a flow's successive normal values, Q2.30 */
	__u32 innovation; /* sqrt(1 - correlation^2), Q2.30 */

	struct emud_chance loss; /* EMUD_LOSS_BERNOULLI */
	__u64 loss_param[EMUD_LOSS_PARAMS]; /* of the other models */
	__u64 loss_id; /* a new one restarts the model */
	struct emud_chance duplicate;
	struct emud_chance corrupt;
	__u64 reset; /* a TCP packet becomes a reset if a random u64 is below */
	__u32 loss_model; /* enum emud_loss */
	__u32 corrupt_bits; /* 1..EMUD_CORRUPT_BITS */
	__u32 corrupt_from; /* range of bytes from the start */
	__u32 corrupt_to; /* of the IP header; excluded */

	struct emud_queueing queueing;

	__u32 queue_bytes; /* longest backlog, source of queue_busy_ns; 0: any */
	__u32 bottleneck; /* number of the link that owns the queue */
	__u32 matrix_link; /* of link number 0: the base link of pairs */
	__u32 pair_packets; /* limits of a pair's queue, instead of the link's */
	__u32 pair_bytes;
	__u32 fq_shift; /* packets of one delay, to 2^this ns, are a flow to fq */
	__u32 service; /* number of the class where packets wait; 0: none */
	__u32 loss_run_max; /* maximum number of packets lost in a row; 0: any */
	__u32 delay_class; /* of delay_ns, in emud_counters.delay_hist */
	__u32 reserved; /* 0 */

	struct emud_timeline timeline;
	struct emud_tdma tdma;
	struct emud_background background;
};
_Static_assert(sizeof(struct emud_link) == 760, "shared with Rust");

/* Which figures replace those of the link. */
enum emud_set {
	EMUD_SET_RATE = 1 << 0,
	EMUD_SET_DELAY = 1 << 1,
	EMUD_SET_JITTER = 1 << 2,
	EMUD_SET_LOSS = 1 << 3,
	EMUD_SET_PAIR = 1 << 4, /* of a pair: the pair exists */
};
#define EMUD_JITTER_SHIFT 20

/* Figures of one packet that come from its pair of addresses or from a row of a
 * trace. */
struct emud_overlay {
	__u64 rate_mult; /* as emud_link's */
	__u64 delay_ns; /* mean; replaces the mean of the link's delays */
	__u64 loss; /* bound of a random u64; replaces every model */
	__u32 rate_shift;
	__u32 jitter; /* amplitude, times 2^EMUD_JITTER_SHIFT; at most 1 */
	__u32 set; /* enum emud_set */
	__u32 reserved; /* 0 */
};
_Static_assert(sizeof(struct emud_overlay) == 40, "shared with Rust");

#endif
