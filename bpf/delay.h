/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * delay: propagation, from the moment the last bit is on the wire.
 *
 * Every distribution is one table of delays over the standard normal value, so
 * there is one path for all of them. Where the normal value comes from makes
 * the difference:
 *
 * per packet: an independent draw each; packets overtake.
 *
 * in order: a process in time. Independent normal values stand at knots one
 * coherence time apart; between two knots a and b, at fraction w,
 *	z = ((1-w) a + w b) / sqrt((1-w)^2 + w^2)
 * is standard normal at every instant, so the delay has the same distribution
 * at every packet rate. Clamping independent draws into order does not: at
 * 10,000 packets/s the mean creeps to the maximum. The clamp is here for the
 * instants at which the delay falls faster than time passes (1 to 3 % of the
 * time with the default coherence time, 0.001 to 0.003 in Kolmogorov-Smirnov
 * distance) and for a delay made shorter while packets are on their way.
 */
#ifndef EMUD_DELAY_H
#define EMUD_DELAY_H

#include "maps.h"
#include "rng.h"

#define EMUD_CLAMP_TRIES 4

/* 1/sqrt(w^2 + (1-w)^2), Q2.30, filled by the loader. */
const volatile __u32 emud_blend[EMUD_BLEND_LEN];

static __always_inline __s64 emud_knot(const struct emud_link *l, __u64 knot)
{
	return emud_normal(emud_mix((l->seed ^ EMUD_FOR_KNOT) + knot * EMUD_GOLDEN));
}

static __always_inline __s64 emud_process(const struct emud_link *l, __u64 now)
{
	__u64 t = now > l->epoch_ns ? now - l->epoch_ns : 0;
	__u64 knot = l->coherence_ns ? t / l->coherence_ns : 0;
	__u64 rest = t - knot * l->coherence_ns;
	/* coherence_ns is below 2^42, so this is at most 2^20 - 1 */
	__s64 w = l->coherence_ns ? (rest << 20) / l->coherence_ns : 0;
	__s64 a = emud_knot(l, knot), b = emud_knot(l, knot + 1);
	__s64 z = a + (((b - a) * w) >> 20);
	__u32 i = emud_bound(w >> 10, EMUD_BLEND_STEPS);
	__s64 from = emud_blend[i], to = emud_blend[i + 1];

	/* |z| < 2^27, a blend < 2^31: 2^58 */
	return (z * (from + (((to - from) * (w & 1023)) >> 10))) >> 30;
}

static __always_inline __u64 emud_table_at(const struct emud_table *t, __s64 z)
{
	__u64 pos = z + EMUD_TABLE_ORIGIN; /* |z| < 6.4 always, the table ends at 8 */
	__u32 i = emud_bound(pos >> EMUD_TABLE_SHIFT, EMUD_TABLE_STEPS);
	__s64 a = t->delay_ns[i], b = t->delay_ns[i + 1];

	return a + (((b - a) * (__s64)(pos & ((1 << EMUD_TABLE_SHIFT) - 1))) >>
		    EMUD_TABLE_SHIFT);
}

static __always_inline __u64 emud_delay_ns(struct emud_packet *p)
{
	const struct emud_link *l = p->link;
	const struct emud_table *t;

	if (!(l->flags & EMUD_F_JITTER))
		return l->delay_ns;
	t = bpf_map_lookup_elem(&emud_tables, &p->slot);
	if (!t)
		return l->delay_ns;
	if (l->flags & EMUD_F_PER_PACKET)
		return emud_table_at(t, emud_normal(emud_draw(p, EMUD_FOR_DELAY)));
	return emud_table_at(t, emud_process(l, p->sent));
}

/* Compare and exchange in place of the lock: a link without a rate takes no
 * lock at all. Two packets that meet here on two CPUs have no order yet, so
 * that after a few lost races the older value may stand. */
static __always_inline void emud_order(struct emud_packet *p)
{
	int may_overtake = p->link->flags & EMUD_F_PER_PACKET;
	int i;

	for (i = 0; i < EMUD_CLAMP_TRIES; i++) {
		__u64 last = *(volatile __u64 *)&p->state->last_departure;

		if (p->departure < last) {
			if (may_overtake) {
				p->count->reordered += p->segments;
			} else {
				p->departure = last;
				p->count->clamped += p->segments;
			}
			return;
		}
		if (__sync_val_compare_and_swap(&p->state->last_departure, last,
						p->departure) == last)
			return;
	}
}

static __always_inline void emud_delay(struct emud_packet *p)
{
	p->departure = p->sent + emud_delay_ns(p);
	emud_order(p);
}

static __always_inline void emud_count_delay(struct emud_packet *p)
{
	p->count->delay_hist[emud_log2(p->departure - p->arrival) &
			     (EMUD_HIST_LEN - 1)] += p->segments;
}

#endif
