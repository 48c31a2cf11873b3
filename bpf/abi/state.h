/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel keeps: layout, queues, control, counters.
 */
#ifndef EMUD_ABI_STATE_H
#define EMUD_ABI_STATE_H

#include <linux/types.h>

#include "general.h"
#include "link.h"

/* The layout of states and rings in their maps: those of plain links, one per
 * link and direction, then those of instances, then those of pairs. */
struct emud_layout {
	__u32 plain;
	__u32 instances; /* a power of two, or 0 */
	__u32 instance_rings; /* pieces of an instance's ring: a power of two, or 0 */
	__u32 pair_rings;
	__u32 spare_ring; /* the piece for queues without a limit in packets */
	__u32 learned; /* flows of control groups: a power of two, or 0 */
};

/* Classifier features that the links of an interface need. The loader sets them for
 * the links that it attaches, and loads another program before a change needs more
 * (src/datapath/stage/features.rs). */
enum emud_feature {
	/* Bits 0 to 7: 1 << enum emud_release */
	EMUD_FEATURE_MATCH = 1 << 8, /* rules, pairs of addresses */
	EMUD_FEATURE_TIMELINE = 1 << 9, /* traces, phases */
	EMUD_FEATURE_QUEUE = 1 << 10, /* a rate */
	EMUD_FEATURE_SIGNALS = 1 << 11, /* queue managers, congestion marks */
	EMUD_FEATURE_LOSS = 1 << 12,
	EMUD_FEATURE_LOSS_MODELS = 1 << 13, /* other than independent losses */
	EMUD_FEATURE_ALTER = 1 << 14, /* duplicate, corrupt, reset */
	EMUD_FEATURE_JITTER = 1 << 15,
	EMUD_FEATURE_DELAYS =
		1 << 16, /* share, reorder, correlation, figures of pairs and rows */
	EMUD_FEATURE_SLOT = 1 << 17,
	EMUD_FEATURE_SHORT = 1 << 18, /* a link of EMUD_SHORT */
	EMUD_FEATURE_CGROUPS = 1 << 19, /* rules match control groups */
	EMUD_FEATURE_NAMES = 1 << 20, /* rules match names of DNS answers */
	EMUD_FEATURE_BACKGROUND = 1 << 21,
	EMUD_FEATURE_CLASSES = 1 << 22, /* packets may wait in classes */
	EMUD_FEATURES = (1 << 23) - 1,
	/* The features that the built classifiers have besides an engine (build.rs). */
	EMUD_FEATURES_USUAL = EMUD_FEATURE_QUEUE | EMUD_FEATURE_LOSS |
			      EMUD_FEATURE_JITTER | EMUD_FEATURE_SHORT,
	EMUD_BY_FQ = 1 << EMUD_RELEASE_STAMP | 1 << EMUD_RELEASE_IFB |
		     1 << EMUD_RELEASE_MIRRED,
	EMUD_BY_HOLD = 1 << EMUD_RELEASE_HOLD,
	EMUD_BY_QDISC = 1 << EMUD_RELEASE_QDISC | 1 << EMUD_RELEASE_QDISC_IFB,
	/* Those that draw, which requires a packet's number in its flow. */
	EMUD_FEATURES_DRAWING = EMUD_FEATURE_TIMELINE | EMUD_FEATURE_SIGNALS |
				EMUD_FEATURE_LOSS | EMUD_FEATURE_LOSS_MODELS |
				EMUD_FEATURE_ALTER | EMUD_FEATURE_JITTER |
				EMUD_FEATURE_DELAYS,
};

/* Delay by standard normal value, absolute, in ns. */
struct emud_table {
	__u64 delay_ns[EMUD_TABLE_LEN];
};

/* The state of the queue manager; times are in ns. */
struct emud_aqm_state {
	__u32 aqm; /* owner of this state: a different one resets it */
	__s32 red_count; /* packets since the last drop, from -1 */
	__u64 red_average; /* length of the queue, times 2^16 */
	__u64 codel_first_above; /* 0: below the target */
	__u64 codel_drop_next;
	__u32 codel_count;
	__u32 codel_last_count;
	__u32 codel_dropping;
	__u32 codel_owes; /* drop_next moves on with the next packet above the target */
	/* PIE, PI and REM: update of the probability or the price; REDs: until when idle time is
	 * counted */
	__u64 next;
	__u64 pie_probability; /* times 2^EMUD_PIE_SHIFT, as the next */
	__u64 pie_accumulated;
	__u64 pie_delay_old;
	__u64 pie_burst; /* no drop for this time */
	__u64 ared_probability; /* at max_ns, times 2^32 */
	__u64 ared_moved; /* when it did */
	__u64 pi_probability; /* times 2^32 */
	__u64 pi_before; /* length at the last sample */
	__u64 rem_price; /* times ln(phi) and 2^32 */
	__u64 rem_arrived; /* ns of the wire since the last change of the price */

	/* RIO: the rest of the ring, from the first packet that has not left yet as far
	 * as is known */
	__u32 rio_queued; /* packets */
	__s32 rio_count; /* red_count of assured packets */
	__u64 rio_average; /* red_average of assured packets */
	__u64 rio_backlog; /* of assured packets */
	__u64 rio_left; /* when the one before the first left the wire */
	__u64 rio_last; /* when the last one will */
};
_Static_assert(sizeof(struct emud_aqm_state) == 176, "shared with Rust");

/* The queue and the order of one direction; `emud set` keeps it. */
struct emud_state {
	EMUD_LOCK lock;
	__u32 ring_pos; /* packets admitted so far */
	__u64 busy_until; /* the wire is busy until, ns */
	__u64 busy_frac; /* and a fraction of a ns, times 2^rate_shift */
	__u64 last_departure; /* the latest departure so far, ns */

	__u64 loss_id; /* id of the model that owns loss_state */
	__u64 loss_state; /* state of its chain, or a count */
	__s64 loss_normal; /* of struct emud_chance; 0: not begun */
	__u64 loss_run; /* packets lost in a row so far */
	__s64 duplicate_normal;
	__s64 corrupt_normal;

	struct emud_aqm_state aqm;

	/* timeline: where the search starts, and the opportunity in use */
	__u32 row_arrival;
	__u32 row_sent;
	__u64 timeline_id;
	__u64 opportunity; /* from the epoch on, all rounds counted */
	__u64 opportunity_left; /* bytes */

	/* slots: the last one in use */
	__u64 tdma_id;
	__u64 tdma_number;
	__u64 tdma_at; /* ns */
	__u32 tdma_packets; /* in the slot so far */
	__u32 tdma_bytes;
};
_Static_assert(sizeof(struct emud_state) == 320, "shared with Rust");

/* Which generation is active, for both directions at once: bits of one integer. */
#define EMUD_LINKS_GENERATION 1
#define EMUD_PAIRS_GENERATION 2
/* The link in force needs no stage but a delay and independent losses: plain packets take
 * the short path. Shifted by the direction. */
#define EMUD_SHORT 4
/* A link in force damages packets and keeps their checksums, so those must be computed
 * before: a packet whose sender left that to the device passes the segmenter, too. Shifted
 * by the direction. */
#define EMUD_SUMS 16
/* Added at each change of links, so that a change and its reverse do not look like no change. */
#define EMUD_CHANGE 256
struct emud_control {
	__u32 abi; /* EMUD_ABI */
	__u32 generation; /* of links and rules, of pairs, EMUD_SHORT, EMUD_SUMS, and how many changes */
	__u32 ifindex; /* the device, for emud_tap */
	__u32 netns; /* inode number of its network namespace, for the monitor */
	__u32 segmenter[EMUD_DIRECTIONS]; /* veth end for super-packets; 0: none */
	__u64 ends_at; /* ns: packets that come then or later pass unchanged; 0: it does not end by itself */
	__u32 features; /* of the loaded classifier, enum emud_feature */
	__u32 next; /* the generation from turns_at on */
	__u64 turns_at; /* ns; 0: no change is ahead */
};
_Static_assert(sizeof(struct emud_control) == 48, "shared with Rust");

struct emud_counters {
	__u64 packets; /* seen, wire packets */
	__u64 bytes; /* seen, wire bytes without overhead */
	__u64 lost; /* by the loss stage */
	__u64 queue_dropped; /* the queue was full */
	__u64 reordered; /* departs before a packet that arrived earlier */
	__u64 clamped; /* held back to keep the order */
	__u64 super_packets; /* GSO or GRO packets, which met one fate each */
	__u64 flows_forgotten; /* flows evicted from the flow table */
	__u64 undelayed; /* not in the delayed share, or sent early by reorder */
	__u64 passed[EMUD_PASS_REASONS];
	__u64 delay_hist[EMUD_HIST_LEN]; /* departure - arrival, emud_delay_class() */
	__u64 down; /* lost because the link was down */
	__u64 duplicated; /* copies made */
	__u64 corrupted;
	__u64 reset; /* TCP packets that became a reset */
	__u64 unaltered; /* copies, corruptions and resets that failed */
	__u64 aqm_dropped[EMUD_AQMS]; /* by each manager, with room in the queue */
	__u64 marked; /* CE by the queue or instead of a loss, including packets that had it */
	__u64 instances_forgotten; /* instances evicted for a new one */
	__u64 sent_bytes; /* wire bytes without overhead of packets with a departure time */
	__u64 delay_ns; /* sum of departure - arrival over wire packets, modulo 2^64 */
	__u64 classed; /* in delay_hist, and not in sent_bytes: they wait in a class first */

	/* of link number 0, if rules match control groups */
	__u64 learned_forgotten; /* flows of control groups evicted for a new one */
	__u64 unattributed; /* neither a socket nor a learned flow */

	/* of link number 0: passed without emulation, counted nowhere else (emud_scratch()) */
	__u64 preempting;
	__u64 preempting_bytes; /* without overhead */
};

/* Counts of a link's packets that waited in a class: known only when its server has
 * sent them, or the class has dropped them. */
struct emud_served {
	__u64 sent_packets; /* and not lost */
	__u64 sent_bytes; /* without overhead */
	__u64 dropped; /* by the class */
	__u64 lost;
	__u64 duplicated;
	__u64 corrupted;
	__u64 reset;
};

#endif
