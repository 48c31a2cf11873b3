/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * arrival: what a manager knows of a packet that arrives, and its arithmetic.
 *
 * Fractions are times 2^32.
 */
#ifndef EMUD_AQM_ARRIVAL_H
#define EMUD_AQM_ARRIVAL_H

#include "../maps.h"

#define EMUD_Q32 (1ULL << 32)

enum emud_verdict {
	EMUD_ADMIT,
	EMUD_MARK,
	EMUD_DROP, /* by a manager */
	EMUD_FULL,
	EMUD_AGAIN, /* another CPU has moved the queue on meanwhile */
};

/* Figures of a packet that are computed before the lock, under which no function may
 * be called. */
struct emud_offer {
	__u64 len; /* on the wire */
	__u64 fraction; /* emud_red_decay() or emud_rem_probability() */
	__u64 busy_limit; /* ns */
	__u32 segments; /* counted one by one */
	__u32 packets; /* limit; 0: any */
	__u32 behind; /* the packet this far before the queue's end must have left */
	__u32 assured; /* by its DSCP, for RIO */
	__u64 wait_limit; /* ns */
	__u32 limited; /* there is a limit in packets */
	__u32 ring; /* where the pieces of its ring begin */
	__u32 rings; /* how many there are */
	__u32 capable; /* of ECN */
};

/* When a packet is on the wire. */
struct emud_turn {
	__u64 wait; /* the sojourn time: until its own bits begin */
	__u64 busy_until;
	__u64 busy_frac;
	__u64 sent;
	__u64 full; /* beyond a limit */
};

/* x times factor / 2^32, rounded; factor at most 2^32. */
static __always_inline __u64 emud_scale(__u64 x, __u64 factor)
{
	return (x >> 32) * factor + (((x & 0xffffffff) * factor + (1ULL << 31)) >> 32);
}

/* factor^n, all times 2^32. */
__noinline __u64 emud_power(__u64 factor, __u32 n)
{
	__u64 power = EMUD_Q32;
	int i;

	for (i = 0; i < 32; i++) {
		if (!n)
			break;
		if (n & 1)
			power = emud_scale(power, factor);
		factor = emud_scale(factor, factor);
		n >>= 1;
	}
	return power;
}

#endif
