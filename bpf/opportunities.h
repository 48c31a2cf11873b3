/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opportunities are Mahimahi's: each carries 1500 bytes of the packets that
 * wait at that moment, and the unused rest is lost. So the state is the number
 * of the last opportunity used and its unused bytes.
 */
#ifndef EMUD_OPPORTUNITIES_H
#define EMUD_OPPORTUNITIES_H

#include "rows.h"

/* The time of an opportunity; ~0: never. */
static __always_inline __u64 emud_opportunity_ns(const struct emud_timeline *t, __u64 n)
{
	__u64 round = t->count ? n / t->count : 0;
	const struct emud_row *row;

	if (!t->period_ns && round)
		return ~0ULL;
	row = emud_row(t, n - round * t->count);
	return row ? t->epoch_ns + round * t->period_ns + row->at_ns : ~0ULL;
}

/* The first opportunity for a packet: one that arrives at the time of an
 * opportunity is too late for it, as in mm-link. */
static __always_inline __u64 emud_next_opportunity(struct emud_packet *p,
						   struct emud_timed *w,
						   const struct emud_timeline *t,
						   struct emud_state *s)
{
	const struct emud_row *row;
	__u64 n;

	w->at.time = p->arrival;
	/* What was admitted by other rows, or by a rate, is in front. */
	if (w->id != t->id && w->seen_until > p->arrival)
		w->at.time = w->seen_until;
	w->at.row = s->row_arrival;
	if (!emud_place(p, &w->at))
		return 0;
	s->row_arrival = w->at.row;
	n = w->at.round * t->count + w->at.row;
	row = emud_row(t, w->at.row);
	return row && row->at_ns <= w->at.pos && (__s64)(w->at.time - t->epoch_ns) >= 0
		       ? n + 1
		       : n;
}

__noinline int emud_turn_by_opportunities(struct emud_packet *p, struct emud_timed *w)
{
	__u64 first, n, left, begins, more;
	const struct emud_timeline *t;
	const struct emud_link *l;
	struct emud_state *s;

	if (!p || !w || !emud_uses(TIMELINE))
		return 0;
	l = emud_link(p);
	s = emud_queue_state(p);
	t = emud_timeline_of(p);
	if (!l || !s || !t)
		return 0;
	first = emud_next_opportunity(p, w, t, s);
	n = w->opportunity;
	left = w->left;
	if (w->id != t->id || n < first) {
		n = first;
		left = EMUD_OPPORTUNITY;
	}
	begins = left ? n : n + 1;
	if (w->len > left) {
		more = (w->len - left + EMUD_OPPORTUNITY - 1) / EMUD_OPPORTUNITY;
		left += more * EMUD_OPPORTUNITY;
		n += more;
	}
	left -= w->len;
	w->turn.busy_until = emud_opportunity_ns(t, n);
	if (w->turn.busy_until == ~0ULL)
		return 0;
	begins = emud_opportunity_ns(t, begins);
	w->turn.wait = begins > p->arrival ? begins - p->arrival : 0;
	if (l->queue_bytes && (n - first + 1) * EMUD_OPPORTUNITY - left > l->queue_bytes)
		w->turn.full = 1;
	w->turn.busy_frac = 0;
	w->opportunity = n;
	w->left = left;
	w->id = t->id;
	return 1;
}

#endif
