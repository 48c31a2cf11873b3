/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What changes with time: rows of a trace or of phases, slots, backgrounds.
 */
#ifndef EMUD_ABI_TIME_H
#define EMUD_ABI_TIME_H

#include <linux/types.h>

/* What the rows of a timeline contain. */
enum emud_timeline_kind {
	EMUD_TIMELINE_NONE,
	EMUD_TIMELINE_FIGURES, /* delay, jitter, loss, other links; no rate */
	EMUD_TIMELINE_RATES, /* the same, and a rate in every row */
	EMUD_TIMELINE_OPPORTUNITIES, /* each carries EMUD_OPPORTUNITY bytes */
};
/* Mahimahi's: Netravali et al.: "Mahimahi: Accurate record-and-replay for HTTP",
 * USENIX ATC 2015. */
#define EMUD_OPPORTUNITY 1500

/* A link that changes with time: rows of emud_rows, and one more row that says
 * where they end. Bytes are times 2^frac. */
struct emud_timeline {
	__u64 epoch_ns; /* time of row 0; used in signed differences */
	__u64 period_ns; /* repeats; 0: the last row stays in force */
	__u64 sent; /* bytes of a period */
	__u64 content; /* hash of the rows, to skip writing the same rows again */
	__u64 id; /* a new one resets the count of opportunities */
	__u32 first; /* in emud_rows */
	__u32 count; /* without the end row */
	__u32 kind; /* enum emud_timeline_kind */
	__u32 frac; /* 1..EMUD_FRAC_MAX */
};
_Static_assert(sizeof(struct emud_timeline) == 56, "shared with Rust");
#define EMUD_FRAC_MAX 40
/* Conversion of ns to bytes: times 2^(frac + this). */
#define EMUD_BYTE_RATE_SHIFT 30

/* rate_mult of a row in which the wire is stopped. */
#define EMUD_STOPPED 0xffffffffffffffffULL
/* emud_row.number of a row that does not change the link. */
#define EMUD_SAME_LINK 0xffffffffU

/* The figures from one moment on. */
struct emud_row {
	__u64 at_ns; /* from the start of the period */
	__u64 rate_mult; /* as emud_link's; 0: no limit */
	__u64 sent; /* bytes from the start of the period until at_ns */
	__u64 byte_rate; /* bytes per ns, times 2^(frac + EMUD_BYTE_RATE_SHIFT) */
	__u64 delay_ns; /* as in emud_overlay, like the next two */
	__u64 loss;
	__u32 rate_shift;
	__u32 jitter;
	__u32 set; /* enum emud_set */
	__u32 number; /* of the link from here on */
};
_Static_assert(sizeof(struct emud_row) == 64, "shared with Rust");

/* Departures in slots (TDMA). */
struct emud_tdma {
	__u64 min_ns; /* minimum distance between slots */
	__u64 span_ns; /* width of the range of distances; 0: no slots */
	__u64 id; /* a new one restarts the process */
	__u64 wait_ns; /* longest wait for a slot; ~0: any */
	__u32 packets; /* of a slot; 0: any */
	__u32 bytes;
};
_Static_assert(sizeof(struct emud_tdma) == 40, "shared with Rust");

/* Packets of a background that arrive at equal distances. The first row of a period is at 0,
 * and the one after the last says where it ends. */
struct emud_stretch {
	__u64 at_ns; /* the first packet, from the start of the period */
	__u64 gap_ns; /* above 0 */
	__u64 count;
	__u64 backlog_ns; /* of the background alone when that packet arrives, and the burst */
};
_Static_assert(sizeof(struct emud_stretch) == 32, "shared with Rust");
#define EMUD_STRETCHES 8192 /* of a link */

/* How far a queue has taken in its background. */
struct emud_behind {
	__u64 until; /* ns: arrivals up to this time are in the queue's clock; 0: none */
	__u32 row; /* where the search starts */
	__u32 reserved; /* 0 */
};
_Static_assert(sizeof(struct emud_behind) == 16, "shared with Rust");

/* Traffic of sources that exist only in the queue. A period begins and ends with no
 * backlog. */
struct emud_background {
	__u64 epoch_ns; /* time of row 0; there is none before */
	__u64 period_ns; /* repeats */
	__u64 service_ns; /* of each packet on the wire */
	__u64 limit_ns; /* a packet that waits longer, and the burst, is dropped */
	__u64 packets; /* in a period */
	__u32 count; /* rows; 0: no background */
	__u32 reserved; /* 0 */
};
_Static_assert(sizeof(struct emud_background) == 48, "shared with Rust");

#endif
