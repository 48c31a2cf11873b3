/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CoDel: drops while the sojourn time stays above a target.
 */
#ifndef EMUD_AQM_CODEL_H
#define EMUD_AQM_CODEL_H

#include "arrival.h"
#include "../rng.h"

/* x / sqrt(n), n not 0, rounded: Newton's steps for the inverse root, as the kernel's
 * codel, but until it is one (the kernel makes one step a drop). */
static __always_inline __u64 emud_over_sqrt(__u64 x, __u32 n)
{
	__u32 half = emud_log2(n) >> 1;
	__u64 m = (__u64)n << (30 - 2 * half); /* 1 <= m < 4, times 2^30 */
	__u64 root = 0x52000000; /* 0.64, times 2^31 */
	int i;

	for (i = 0; i < 6; i++) {
		__u64 square = (root * root) >> 31;

		root = (root * ((3ULL << 31) - ((m * square) >> 30))) >> 32;
	}
	return (emud_scale(x, root << 1) + ((1ULL << half) >> 1)) >> half;
}

/* Returns whether the sojourn time has been above the target for an interval. */
static __always_inline int emud_codel_above(const struct emud_codel *c,
					    struct emud_aqm_state *a, __u64 wait,
					    __u64 now)
{
	if (wait < c->target_ns || wait <= c->packet_ns) {
		a->codel_first_above = 0;
		return 0;
	}
	if (!a->codel_first_above) {
		a->codel_first_above = now + c->interval_ns;
		return 0;
	}
	return now >= a->codel_first_above;
}

static __always_inline void emud_codel_begin(const struct emud_codel *c,
					     struct emud_aqm_state *a, __u64 now)
{
	__u32 since = a->codel_count - a->codel_last_count;
	__s64 ago = now - a->codel_drop_next;

	a->codel_count = since > 1 && ago < (__s64)(16 * c->interval_ns) ? since : 1;
	a->codel_last_count = a->codel_count;
	a->codel_drop_next = now + emud_over_sqrt(c->interval_ns, a->codel_count);
	a->codel_dropping = 1;
	a->codel_owes = 0;
}

static __always_inline void emud_codel_move_on(const struct emud_codel *c,
					       struct emud_aqm_state *a)
{
	a->codel_drop_next += emud_over_sqrt(c->interval_ns, a->codel_count);
	a->codel_owes = 0;
}

static __always_inline int emud_codel(const struct emud_codel *c,
				      struct emud_aqm_state *a, __u64 wait, __u64 now,
				      int capable)
{
	int above = emud_codel_above(c, a, wait, now);

	if (!above) {
		a->codel_dropping = 0;
		return 0;
	}
	if (!a->codel_dropping) {
		emud_codel_begin(c, a, now);
		return 1;
	}
	if (a->codel_owes)
		emud_codel_move_on(c, a);
	if (now < a->codel_drop_next)
		return 0;
	a->codel_count++;
	a->codel_owes = 1;
	if (capable)
		emud_codel_move_on(c, a);
	return 1;
}

#endif
