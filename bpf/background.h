/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * background: packets that only take the queue's room and the wire's time.
 *
 * The loader draws the on and off times of the sources, and writes what all of them
 * send as stretches of packets at constant distances (struct emud_stretch). Before a packet
 * is judged, the queue is advanced over the stretches that arrived since the last one, as
 * if each of their packets had been admitted or dropped at its time: within a stretch
 * that is a formula. So the background depends on time and seed alone, and the result
 * is that of a simulation packet by packet (tests/kernel/classifier/background.rs).
 *
 * A row also stores the backlog of the background alone. As soon as the queue is in
 * that state, the later rows have it, too: a long silence costs a binary search.
 *
 * Rows cannot be looked up under the lock: the queue is advanced before, and again if
 * another packet was faster.
 */
#ifndef EMUD_BACKGROUND_H
#define EMUD_BACKGROUND_H

#include "maps.h"

#define EMUD_STRETCHES_LOG 13
_Static_assert(EMUD_STRETCHES == 1 << EMUD_STRETCHES_LOG, "steps of a binary search");

/* By the number of the queue. */
EMUD_MAP(emud_behinds, ARRAY, 1, struct emud_behind);
/* EMUD_STRETCHES rows of each slot. */
EMUD_MAP(emud_stretches, ARRAY, 1, struct emud_stretch);

/* A queue on its way from one packet to the next. */
struct emud_crossing {
	/* the state that it begins with */
	__u64 seen_busy;
	__u64 seen_frac;
	__u64 seen_until;

	__u64 busy; /* as in emud_state, and the burst */
	__u64 idle; /* the wire had nothing to send meanwhile, so no fraction is left */
	__u64 from; /* arrivals after this time */
	__u64 to; /* and up to this one */
	__u64 there;

	/* a row of a period, for `from` and later; and that of `to` */
	__u64 base;
	__u64 end_base;
	__u32 row;
	__u32 end_row;

	/* of the link */
	__u64 period;
	__u64 service;
	__u64 limit;
	__u32 first; /* in emud_stretches */
	__u32 count;
};

/* Not on the stack, of which all stages together have 512 bytes. */
EMUD_MAP(emud_crossings, PERCPU_ARRAY, EMUD_DIRECTIONS, struct emud_crossing);

static __always_inline const struct emud_stretch *
emud_stretch(const struct emud_crossing *c, __u32 row)
{
	return EMUD_LOOKUP(emud_stretches, c->first + row);
}

struct emud_stretch_search {
	__u64 pos;
	__u32 first;
	__u32 low;
	__u32 high;
};

static long emud_stretch_seek(__u32 i, struct emud_stretch_search *s)
{
	__u32 middle = s->low + ((s->high - s->low) >> 1);
	const struct emud_stretch *stretch;

	if (s->high - s->low < 2)
		return 1;
	stretch = EMUD_LOOKUP(emud_stretches, s->first + middle);
	if (!stretch)
		return 1;
	if (stretch->at_ns <= s->pos)
		s->low = middle;
	else
		s->high = middle;
	return 0;
}

/* Returns the row of a position in the period; the first one is at 0. */
static __always_inline __u32 emud_stretch_at(const struct emud_crossing *c, __u64 pos,
					     __u32 near)
{
	const struct emud_stretch *from = emud_stretch(c, near), *next;
	struct emud_stretch_search s = {.pos = pos, .first = c->first, .high = c->count};

	next = emud_stretch(c, near + 1);
	if (near < c->count && from && next && from->at_ns <= pos && pos < next->at_ns)
		return near;
	bpf_loop(EMUD_STRETCHES_LOG + 1, emud_stretch_seek, &s, 0);
	return s.low;
}

/* n packets, the first at `at`. Either all of them find less in front of them than the
 * one before, and only the first ones may be dropped, or more: then those that fit are as
 * many as the wire has time for, since the limit is longer than a packet. */
static __always_inline void emud_cross_stretch(struct emud_crossing *c, __u64 at,
					       __u64 gap, __u64 n)
{
	__u64 last = at + (n - 1) * gap, wait, room, lost, fit;

	if (c->busy < at) {
		c->busy = at;
		c->idle = 1;
	}
	wait = c->busy - at;
	if (gap < c->service) {
		room = c->limit + (last - at);
		if (wait > room || !c->service)
			return;
		fit = (room - wait) / c->service + 1;
		c->busy += (fit < n ? fit : n) * c->service;
		return;
	}
	if (wait > c->limit) {
		lost = (wait - c->limit + gap - 1) / gap;
		if (lost >= n)
			return;
		n -= lost;
	}
	c->busy += (n - 1) * c->service;
	if (c->busy < last) {
		c->busy = last;
		c->idle = 1;
	}
	c->busy += c->service;
}

/* How many packets of a stretch have arrived up to a time. */
static __always_inline __u64 emud_arrived(const struct emud_stretch *stretch, __u64 at,
					  __u64 time)
{
	__u64 n;

	if (time < at || !stretch->gap_ns)
		return 0;
	n = (time - at) / stretch->gap_ns + 1;
	return n < stretch->count ? n : stretch->count;
}

/* As the background alone has it in the last row. Never less than now. */
static __always_inline void emud_cross_alone(struct emud_crossing *c)
{
	const struct emud_stretch *stretch = emud_stretch(c, c->end_row);
	__u64 busy;

	if (!stretch)
		return;
	c->row = c->end_row;
	c->base = c->end_base;
	busy = c->base + stretch->at_ns + stretch->backlog_ns;
	c->busy = busy > c->busy ? busy : c->busy;
	c->idle = 1;
}

/* The packets of a row; then the next row. */
static long emud_cross_row(__u32 i, struct emud_crossing **walk)
{
	struct emud_crossing *c = *walk;
	const struct emud_stretch *stretch = emud_stretch(c, c->row);
	__u64 at, done, n;

	if (!stretch)
		return 1;
	at = c->base + stretch->at_ns;
	done = emud_arrived(stretch, at, c->from);
	n = emud_arrived(stretch, at, c->to) - done;
	if (n)
		emud_cross_stretch(c, at + done * stretch->gap_ns, stretch->gap_ns, n);
	c->there = c->row == c->end_row && c->base == c->end_base;
	if (c->there)
		return 1;
	c->row++;
	if (c->row >= c->count) {
		c->row = 0;
		c->base += c->period;
	}
	stretch = emud_stretch(c, c->row);
	if (!stretch)
		return 1;
	at = c->base + stretch->at_ns;
	if ((!c->seen_frac || c->idle) &&
	    (c->busy > at ? c->busy - at : 0) == stretch->backlog_ns)
		emud_cross_alone(c);
	return 0;
}

/* Returns the row of a time, and when its period began. */
static __always_inline __u32 emud_cross_seek(const struct emud_crossing *c, __u64 epoch,
					     __u64 time, __u32 near, __u64 *base)
{
	__u64 rounds = (time - epoch) / c->period;

	*base = epoch + rounds * c->period;
	return emud_stretch_at(c, time - *base, near);
}

/* Advances the queue to the arrival of the packet, from its current state. Returns false
 * if there is none. */
__noinline int emud_cross(struct emud_packet *p)
{
	const struct emud_background *b;
	const struct emud_link *l;
	struct emud_crossing *c;
	struct emud_behind *s;
	struct emud_state *q;

	if (!p || !emud_uses(BACKGROUND))
		return 0;
	l = emud_link(p);
	if (!l)
		return 0;
	b = &l->background;
	if (!b->count)
		return 1;
	q = emud_queue_state(p);
	s = EMUD_LOOKUP(emud_behinds, p->queue);
	c = EMUD_LOOKUP(emud_crossings, p->scratch);
	if (!q || !s || !c)
		return 0;
	c->seen_until = *(volatile __u64 *)&s->until;
	c->seen_busy = *(volatile __u64 *)&q->busy_until;
	c->seen_frac = *(volatile __u64 *)&q->busy_frac;
	c->busy = c->seen_busy + l->queueing.burst_ns;
	c->idle = 0;
	c->from = c->seen_until;
	c->to = p->arrival;
	c->end_row = *(volatile __u32 *)&s->row;
	c->period = b->period_ns;
	if (c->to <= c->from || (__s64)(c->to - b->epoch_ns) < 0 || !c->period)
		return 1;
	/* It begins beside packets that were there before. */
	if (!c->seen_until && *(volatile __u32 *)&q->ring_pos)
		return 1;
	if ((__s64)(c->from - b->epoch_ns) < 0)
		c->from = b->epoch_ns - 1;
	c->service = b->service_ns;
	c->limit = b->limit_ns;
	c->first = p->slot * EMUD_STRETCHES;
	c->count = b->count;
	c->there = 0;
	c->row = emud_cross_seek(c, b->epoch_ns, c->from + 1, c->end_row, &c->base);
	c->end_row = emud_cross_seek(c, b->epoch_ns, c->to, c->row, &c->end_base);
	bpf_loop(2 * EMUD_STRETCHES, emud_cross_row, &c, 0);
	if (!c->there) {
		/* A queue that does not come to rest, and a silence of many periods. */
		emud_cross_alone(c);
		bpf_loop(1, emud_cross_row, &c, 0);
	}
	return 1;
}

/* Puts that into the state. Under the lock; returns false if another packet was faster. */
static __always_inline int emud_cross_commit(struct emud_state *q, struct emud_behind *s,
					     const struct emud_crossing *c,
					     const struct emud_link *l)
{
	if (q->busy_until != c->seen_busy || q->busy_frac != c->seen_frac ||
	    s->until != c->seen_until)
		return 0;
	q->busy_until = c->busy - l->queueing.burst_ns;
	if (c->idle)
		q->busy_frac = 0;
	if (c->to > s->until)
		s->until = c->to;
	s->row = c->end_row;
	return 1;
}

#endif
