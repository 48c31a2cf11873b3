/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RED: drops with an average length of the queue between two thresholds.
 */
#ifndef EMUD_AQM_RED_H
#define EMUD_AQM_RED_H

#include "arrival.h"
#include "../rng.h"

#define EMUD_RED_SHIFT 16
#define EMUD_RED_WAIT_MAX ((1ULL << 46) - 1) /* shifted, still in 64 bits */

/* Returns whether a manager has RED's average. */
static __always_inline int emud_is_red(__u32 aqm)
{
	return aqm == EMUD_AQM_RED || aqm == EMUD_AQM_ARED || aqm == EMUD_AQM_RIO;
}

/* What an idle time leaves of the average, times 2^32: as if as many small packets
 * had found the queue empty as the wire had room for. A packet in between ends
 * the idle time. The last one counts in part (1 - weight * part): with whole ones
 * only, the average would stay where it is while all gaps are shorter than one. */
static __always_inline __u64 emud_red_decay(const struct emud_link *l,
					    const struct emud_state *s, __u64 now)
{
	__u64 since = *(volatile __u64 *)&s->busy_until, packets, part;
	__u64 counted = *(volatile __u64 *)&s->aqm.next;

	if (!emud_is_red(l->queueing.aqm))
		return EMUD_Q32;
	/* One that is dropped leaves the wire idle. */
	if (s->aqm.aqm == l->queueing.aqm && since < counted)
		since = counted;
	if (since >= now || !l->queueing.red.packet_ns)
		return EMUD_Q32;
	packets = (now - since) / l->queueing.red.packet_ns;
	part = (((now - since) % l->queueing.red.packet_ns) << 20) /
	       l->queueing.red.packet_ns;
	return emud_scale(emud_power(EMUD_Q32 - l->queueing.red.weight,
				     packets < 0xffffffff ? packets : 0xffffffff),
			  EMUD_Q32 - (l->queueing.red.weight * part >> 20));
}

static __always_inline __u64 emud_red_average(const struct emud_red *red, __u64 average,
					      __u64 wait)
{
	__u64 length = (wait < EMUD_RED_WAIT_MAX ? wait : EMUD_RED_WAIT_MAX)
		       << EMUD_RED_SHIFT;

	if (length > average)
		return average + emud_scale(length - average, red->weight);
	return average - emud_scale(average - length, red->weight);
}

/* Probabilities are times 2^32. `part` < `whole` < 2^43. */
static __always_inline __u64 emud_red_share(__u64 probability, __u64 part, __u64 whole)
{
	__u64 share = whole ? (part << 20) / whole : 0;

	return (probability * share) >> 20;
}

/* The paper's second method: distances between two signals are uniform, not
 * geometric, between 1 and 1/p packets, or, if they wait, between 1/p and 2/p. */
static __always_inline int emud_red_draw(const struct emud_packet *p, __s32 *count,
					 __u64 probability, int waits)
{
	__u64 used = ++*count * probability;

	if (waits) {
		if (used < EMUD_Q32)
			return 0;
		used -= EMUD_Q32;
	}
	if (used >= EMUD_Q32 - probability)
		return 1;
	return emud_draw(p, EMUD_FOR_AQM) >> 32 < (probability << 32) / (EMUD_Q32 - used);
}

static __always_inline int emud_red_judge(const struct emud_packet *p,
					  const struct emud_red *red, __s32 *count,
					  __u64 average)
{
	__u64 probability;

	average >>= EMUD_RED_SHIFT;
	if (average < red->min_ns) {
		*count = -1;
		return 0;
	}
	if (average < red->max_ns) {
		probability = emud_red_share(red->probability, average - red->min_ns,
					     red->max_ns - red->min_ns);
		if (!emud_red_draw(p, count, probability, 0))
			return 0;
	}
	*count = 0;
	return 1;
}

/* Updates the average with this packet. */
static __always_inline void emud_red_count(const struct emud_packet *p,
					   const struct emud_red *red,
					   struct emud_aqm_state *a, __u64 wait,
					   __u64 decay)
{
	if (wait) {
		a->red_average = emud_red_average(red, a->red_average, wait);
		return;
	}
	a->red_average = emud_scale(a->red_average, decay);
	a->next = p->arrival;
}

static __always_inline int emud_red(const struct emud_packet *p,
				    const struct emud_red *red, struct emud_aqm_state *a,
				    __u64 wait, __u64 decay)
{
	emud_red_count(p, red, a, wait, decay);
	return emud_red_judge(p, red, &a->red_count, a->red_average);
}

#endif
