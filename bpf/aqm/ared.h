/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A-RED: RED whose probability follows the average length, with the paper's gentle slope
 * above the upper threshold and ns-2's distances between signals.
 */
#ifndef EMUD_AQM_ARED_H
#define EMUD_AQM_ARED_H

#include "red.h"

static __always_inline void emud_ared_adapt(const struct emud_queueing *q,
					    struct emud_aqm_state *a, __u64 now)
{
	__u64 average = a->red_average >> EMUD_RED_SHIFT, more;
	__u64 part = (q->red.max_ns - q->red.min_ns) * 2 / 5;

	if (now <= a->ared_moved + q->ared.interval_ns)
		return;
	if (average < q->red.min_ns + part && a->ared_probability > EMUD_ARED_BOTTOM) {
		a->ared_probability = emud_scale(a->ared_probability, q->ared.beta);
	} else if (average > q->red.max_ns - part &&
		   a->ared_probability < EMUD_ARED_TOP) {
		more = a->ared_probability / 4;
		a->ared_probability += q->ared.alpha < more ? q->ared.alpha : more;
	} else {
		return;
	}
	a->ared_moved = now;
}

static __always_inline int emud_ared(const struct emud_packet *p,
				     const struct emud_queueing *q,
				     struct emud_aqm_state *a, __u64 wait, __u64 decay)
{
	__u64 max = q->red.max_ns, average, probability;

	emud_red_count(p, &q->red, a, wait, decay);
	emud_ared_adapt(q, a, p->arrival);
	average = a->red_average >> EMUD_RED_SHIFT;
	if (average < q->red.min_ns) {
		a->red_count = -1;
		return 0;
	}
	probability = a->ared_probability;
	if (average < max)
		probability = emud_red_share(probability, average - q->red.min_ns,
					     max - q->red.min_ns);
	else
		probability += emud_red_share(EMUD_Q32 - probability, average - max, max);
	if (average < 2 * max && !emud_red_draw(p, &a->red_count, probability, 1))
		return 0;
	a->red_count = 0;
	return 1;
}

#endif
