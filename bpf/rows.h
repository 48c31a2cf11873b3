/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rows: a moment among the rows of a timeline, and the search for its row.
 */
#ifndef EMUD_ROWS_H
#define EMUD_ROWS_H

#include "aqm/arrival.h"
#include "maps.h"

#define EMUD_SEEK_STEPS 32
/* Rows to search first: the row in demand is mostly among them. */
#define EMUD_NEAR 64

/* A moment among the rows. */
struct emud_place {
	__u64 time;
	__u64 base; /* when the current period began */
	__u64 round;
	__u64 pos; /* time since then */
	__u64 row; /* where the search starts; then the result */
};

/* A search for the last of the rows low..high that is not above the key. */
struct emud_row_search {
	__u64 key;
	__u32 first;
	__u32 low;
	__u32 high;
	__u32 by_sent; /* 0: by time */
};

/* The same for a timeline, with the state that it was computed from. */
struct emud_timed {
	struct emud_turn turn;
	struct emud_place at; /* position of the first bit, then of the last */
	__u64 len; /* bytes on the wire */
	__u64 seen_until;
	__u64 seen_frac;
	__u64 seen_pos;
	__u64 opportunity;
	__u64 left;
	__u64 id;
};

/* Not on the stack, of which all stages together have 512 bytes. Kept from one
 * stage to the next, without another packet in between. */
EMUD_MAP(emud_turns, PERCPU_ARRAY, EMUD_DIRECTIONS, struct emud_timed);

static __always_inline const struct emud_row *emud_row(const struct emud_timeline *t,
						       __u32 row)
{
	return EMUD_LOOKUP(emud_rows, t->first + row);
}

static __always_inline const struct emud_timeline *
emud_timeline_of(const struct emud_packet *p)
{
	const struct emud_link *l = EMUD_LOOKUP(emud_links, p->timeline);

	return l && l->timeline.count ? &l->timeline : 0;
}

static long emud_seek_step(__u32 i, struct emud_row_search *s)
{
	__u32 middle = s->low + ((s->high - s->low) >> 1);
	const struct emud_row *row;

	if (s->high - s->low < 2)
		return 1;
	row = EMUD_LOOKUP(emud_rows, s->first + middle);
	if (!row)
		return 1;
	if ((s->by_sent ? row->sent : row->at_ns) <= s->key)
		s->low = middle;
	else
		s->high = middle;
	return 0;
}

/* The arguments are numbers: callers have no room on the stack. */
__noinline __u32 emud_seek(__u64 key, __u32 first, __u32 low, __u32 high, __u32 by_sent)
{
	struct emud_row_search s = {
		.key = key,
		.first = first,
		.low = low,
		.high = high,
		.by_sent = by_sent,
	};

	bpf_loop(EMUD_SEEK_STEPS, emud_seek_step, &s, 0);
	return s.low;
}

static __always_inline int emud_covers(const struct emud_timeline *t, __u32 row,
				       __u64 pos)
{
	const struct emud_row *from = emud_row(t, row), *to = emud_row(t, row + 1);

	return row < t->count && from && to && from->at_ns <= pos && pos < to->at_ns;
}

/* Fills in the position of a time; false: there are no rows. */
__noinline int emud_place(struct emud_packet *p, struct emud_place *at)
{
	const struct emud_timeline *t;
	const struct emud_row *from;
	__u32 low = 0, high, near;
	__s64 since;

	if (!p || !at || !emud_uses(TIMELINE))
		return 0;
	t = emud_timeline_of(p);
	if (!t)
		return 0;
	since = at->time - t->epoch_ns;
	at->pos = since > 0 ? since : 0;
	at->round = t->period_ns ? at->pos / t->period_ns : 0;
	at->pos -= at->round * t->period_ns;
	at->base = t->epoch_ns + at->round * t->period_ns;
	high = t->count;
	if (emud_covers(t, at->row, at->pos))
		return 1;
	at->row++;
	if (emud_covers(t, at->row, at->pos))
		return 1;
	near = at->row;
	from = near < t->count ? emud_row(t, near) : 0;
	if (from && from->at_ns <= at->pos) {
		low = near;
		from = near + EMUD_NEAR < high ? emud_row(t, near + EMUD_NEAR) : 0;
		if (from && from->at_ns > at->pos)
			high = near + EMUD_NEAR;
	}
	at->row = emud_seek(at->pos, t->first, low, high, 0);
	return 1;
}

/* Applies the figures and the link of the row in force at a time: at arrival,
 * and again when the last bit is sent. */
__noinline int emud_timeline(struct emud_packet *p, __u64 time, __u32 sent)
{
	const struct emud_timeline *t;
	struct emud_place at = {};
	const struct emud_row *row;
	struct emud_state *s;
	__u32 *hint;

	if (!p || !emud_uses(TIMELINE))
		return 0;
	t = emud_timeline_of(p);
	s = emud_queue_state(p);
	if (!t || !s || t->kind == EMUD_TIMELINE_OPPORTUNITIES)
		return 0;
	hint = sent ? &s->row_sent : &s->row_arrival;
	at.time = time;
	at.row = *(volatile __u32 *)hint;
	if (!emud_place(p, &at))
		return 0;
	*hint = at.row;
	row = emud_row(t, at.row);
	if (!row)
		return 0;
	if (row->set & EMUD_SET_RATE) {
		p->over.rate_mult = row->rate_mult;
		p->over.rate_shift = row->rate_shift;
	}
	if (row->set & EMUD_SET_DELAY)
		p->over.delay_ns = row->delay_ns;
	if (row->set & EMUD_SET_JITTER)
		p->over.jitter = row->jitter;
	if (row->set & EMUD_SET_LOSS)
		p->over.loss = row->loss;
	/* Drops what the row at arrival set in addition: the end of a ramp. */
	p->over.set = row->set;
	if (row->number != EMUD_SAME_LINK)
		p->slot = emud_slot(p, row->number);
	return 1;
}

#endif
