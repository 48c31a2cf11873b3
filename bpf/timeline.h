/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * timeline: a link whose figures change with time, read from rows by the clock.
 *
 * A row holds from its time until the time of the next one; after the last row
 * the timeline repeats, or the last row holds forever. The row in which the
 * last bit of a packet is sent determines its figures. A row may name another
 * link; the queue stays that of this link, so a hand-over reorders nothing.
 *
 * Rates: the queue is the same virtual clock, and within a row the arithmetic
 * is the same. If the bits of a packet do not fit into the rest of a row, the
 * end of the remaining bits follows from the bytes since the start of the
 * period, which each row stores: exact, and found by a binary search over any
 * number of rows. No error accumulates: the clock is never derived from bytes.
 *
 * Rows cannot be looked up under the lock: the transmission time of a packet is
 * computed before, and again if another packet was faster.
 */
#ifndef EMUD_TIMELINE_H
#define EMUD_TIMELINE_H

#include "opportunities.h"
#include "rows.h"
#include "wide.h"

/* Fraction bits of the bytes at the end of a row. */
#define EMUD_REST_SHIFT 42
/* Fraction bits of a ns in busy_frac if rates differ. */
#define EMUD_TIMED_SHIFT 63
/* Rounds up all but 2^-12 of a ns. */
#define EMUD_WHOLE_SHIFT 51

/* The bytes that the wire could have carried since time 0, times 2^frac, modulo
 * 2^64. */
static __always_inline __u64 emud_carried(const struct emud_timeline *t,
					  const struct emud_place *at, __u64 busy_frac)
{
	const struct emud_row *row = emud_row(t, at->row);

	if (!row)
		return 0;
	return at->round * t->sent + row->sent +
	       emud_mul_shift(at->pos - row->at_ns, row->byte_rate,
			      EMUD_BYTE_RATE_SHIFT) +
	       (emud_mul_high(busy_frac << 1, row->byte_rate) >> EMUD_BYTE_RATE_SHIFT);
}

/* The bytes of earlier packets that are not yet sent when this one arrives. */
__noinline __u64 emud_backlog(struct emud_packet *p, struct emud_timed *w, __u64 start,
			      __u64 frac)
{
	const struct emud_timeline *t;
	struct emud_state *s;
	__u64 units;

	if (!p || !w || start <= p->arrival || !emud_uses(TIMELINE))
		return 0;
	t = emud_timeline_of(p);
	s = emud_queue_state(p);
	if (!t || !s)
		return 0;
	w->at.time = start;
	w->at.row = s->row_sent;
	if (!emud_place(p, &w->at))
		return 0;
	units = emud_carried(t, &w->at, frac);
	w->at.time = p->arrival;
	w->at.row = s->row_arrival;
	if (!emud_place(p, &w->at))
		return 0;
	units -= emud_carried(t, &w->at, 0);
	return (units + (1ULL << ((t->frac - 1) & 63))) >> (t->frac & 63);
}

/* The remaining bytes of a packet at the end of a row, times 2^EMUD_REST_SHIFT;
 * `work` is in ns of the wire at the rate of the row. */
static __always_inline __u64 emud_rest(__u64 work, __u64 mult)
{
	const int half = EMUD_REST_SHIFT / 2;
	__u64 bytes = work / mult, over = (work % mult) << half;

	/* work % mult < 2^42 */
	return (bytes << EMUD_REST_SHIFT) + ((over / mult) << half) +
	       ((over % mult) << half) / mult;
}

/* The last bit is sent in a later row than `at`: finds where the wire has
 * carried `rest` from the next row on. Returns false if it never does. */
__noinline int emud_across(struct emud_packet *p, struct emud_timed *w, __u64 rest)
{
	const struct emud_row *row, *next;
	const struct emud_timeline *t;
	__u64 units, work, end;
	__u32 shift, low, high;

	if (!p || !w || !emud_uses(TIMELINE))
		return 0;
	t = emud_timeline_of(p);
	if (!t)
		return 0;
	low = w->at.row + 1;
	next = emud_row(t, w->at.row + 1);
	if (!next || next->at_ns == ~0ULL)
		return 0;
	shift = (EMUD_REST_SHIFT - t->frac) & 63;
	units = (rest + (1ULL << ((shift - 1) & 63))) >> shift;
	w->turn.busy_until = w->at.base + next->at_ns;
	if (!units)
		return 1;
	units += next->sent;
	if (t->period_ns && units > t->sent) {
		__u64 rounds;

		if (!t->sent)
			return 0;
		rounds = (units - 1) / t->sent;
		units -= rounds * t->sent;
		w->at.base += rounds * t->period_ns;
		low = 0;
	}
	high = t->count;
	row = low + EMUD_NEAR < high ? emud_row(t, low + EMUD_NEAR) : 0;
	if (row && row->sent >= units)
		high = low + EMUD_NEAR;
	w->at.row = emud_seek(units - 1, t->first, low, high, 1);
	row = emud_row(t, w->at.row);
	next = emud_row(t, w->at.row + 1);
	if (!row || !next || row->rate_mult == EMUD_STOPPED)
		return 0;
	shift = row->rate_shift & 63;
	work = emud_mul_shift(units - row->sent, row->rate_mult, t->frac & 63);
	w->turn.busy_until = w->at.base + row->at_ns + (work >> shift);
	w->turn.busy_frac = (work & ((1ULL << shift) - 1))
			    << ((EMUD_TIMED_SHIFT - shift) & 63);
	end = w->at.base + next->at_ns;
	/* Rounding went past the last bit of the row. */
	if (next->at_ns != ~0ULL && w->turn.busy_until >= end) {
		w->turn.busy_until = end;
		w->turn.busy_frac = 0;
	}
	return 1;
}

/* The same from a row in which the wire is stopped: the packet waits until the wire
 * carries its first bit, here the smallest part of a byte. */
static __always_inline int emud_turn_later(struct emud_packet *p, struct emud_timed *w,
					   const struct emud_timeline *t)
{
	__u64 base = w->at.base, row = w->at.row;

	if (!emud_across(p, w, 1ULL << ((EMUD_REST_SHIFT - t->frac) & 63)))
		return 0;
	/* With a burst the outage may be over. */
	w->turn.wait =
		w->turn.busy_until > p->arrival ? w->turn.busy_until - p->arrival : 0;
	w->at.base = base;
	w->at.row = row;
	return emud_across(p, w, w->len << EMUD_REST_SHIFT);
}

/* Computes the transmission from `at.time` and `turn.busy_frac` on; false:
 * never. */
static __always_inline int emud_turn_at(struct emud_packet *p, struct emud_timed *w,
					const struct emud_timeline *t)
{
	const struct emud_row *row = emud_row(t, w->at.row);
	const struct emud_row *next = emud_row(t, w->at.row + 1);
	__u64 work, room, frac = w->turn.busy_frac;
	__u32 shift;

	if (!row || !next)
		return 0;
	w->turn.busy_until = w->at.time;
	w->turn.busy_frac = 0;
	if (!row->rate_mult)
		return 1;
	if (row->rate_mult == EMUD_STOPPED)
		return emud_turn_later(p, w, t);
	shift = row->rate_shift & 63;
	work = w->len * row->rate_mult + (frac >> ((EMUD_TIMED_SHIFT - shift) & 63));
	room = next->at_ns == ~0ULL ? ~0ULL : w->at.base + next->at_ns - w->at.time;
	if (likely(work >> shift < room)) {
		w->turn.busy_until += work >> shift;
		w->turn.busy_frac = (work & ((1ULL << shift) - 1))
				    << ((EMUD_TIMED_SHIFT - shift) & 63);
		return 1;
	}
	return emud_across(p, w, emud_rest(work - (room << shift), row->rate_mult));
}

/* Bytes that wait for a row without a rate: all leave when it begins, so that the wire carries
 * nothing for them. Counts this packet with them, if it is admitted. */
static __always_inline __u64 emud_unmetered(const struct emud_packet *p,
					    struct emud_timed *w,
					    const struct emud_timeline *t, __u64 start)
{
	const struct emud_row *row = emud_row(t, w->at.row);
	__u64 bytes;

	if (start <= p->arrival || !row || row->rate_mult)
		return 0;
	bytes = w->opportunity == start ? w->left : 0;
	w->opportunity = start;
	w->left = bytes + w->len;
	w->id = 0; /* what opportunities know is gone */
	return bytes;
}

/* The caller sets `seen_*` and `len`. */
__noinline int emud_turn_by_rates(struct emud_packet *p, struct emud_timed *w)
{
	const struct emud_timeline *t;
	const struct emud_link *l;
	struct emud_state *s;
	__u64 start = 0, bytes = 0;

	if (!p || !w || !emud_uses(TIMELINE))
		return 0;
	l = emud_link(p);
	s = emud_queue_state(p);
	t = emud_timeline_of(p);
	if (!l || !s || !t)
		return 0;
	if (p->arrival > l->queueing.burst_ns)
		start = p->arrival - l->queueing.burst_ns;
	w->turn.busy_frac = 0;
	if (w->seen_until >= start) {
		start = w->seen_until;
		w->turn.busy_frac = w->seen_frac;
	}
	w->turn.wait = start > p->arrival ? start - p->arrival : 0;
	if (l->queue_bytes)
		bytes = emud_backlog(p, w, start, w->turn.busy_frac) + w->len;
	w->at.time = start;
	w->at.row = s->row_sent;
	if (!emud_place(p, &w->at))
		return 0;
	s->row_sent = w->at.row;
	if (l->queue_bytes && bytes + emud_unmetered(p, w, t, start) > l->queue_bytes)
		w->turn.full = 1;
	return emud_turn_at(p, w, t);
}

/* Computes the transmission from the current state; false: never sent. */
static __always_inline int emud_timed_turn(struct emud_packet *p)
{
	const struct emud_link *l;
	struct emud_state *s;
	struct emud_timed *w;
	int ever;

	l = emud_link(p);
	s = emud_queue_state(p);
	w = EMUD_LOOKUP(emud_turns, p->scratch);
	if (!l || !s || !w)
		return 0;
	w->turn.full = 0;
	w->seen_pos = *(volatile __u32 *)&s->ring_pos;
	w->seen_until = *(volatile __u64 *)&s->busy_until;
	w->seen_frac = *(volatile __u64 *)&s->busy_frac;
	w->opportunity = *(volatile __u64 *)&s->opportunity;
	w->left = *(volatile __u64 *)&s->opportunity_left;
	w->id = *(volatile __u64 *)&s->timeline_id;
	ever = p->timed == EMUD_TIMELINE_RATES ? emud_turn_by_rates(p, w)
					       : emud_turn_by_opportunities(p, w);
	/* The whole ns may have been rounded down by a small amount. */
	w->turn.sent =
		w->turn.busy_until + (w->turn.busy_frac >> EMUD_WHOLE_SHIFT ==
				      (1 << (EMUD_TIMED_SHIFT - EMUD_WHOLE_SHIFT)) - 1);
	if (w->turn.sent < p->arrival)
		w->turn.sent = p->arrival;
	if (w->turn.wait > l->queue_wait_ns)
		w->turn.full = 1;
	return ever;
}

/* Returns whether another packet was admitted since. Under the lock. */
static __always_inline int emud_stale(const struct emud_state *s,
				      const struct emud_timed *w)
{
	return s->ring_pos != w->seen_pos || s->busy_until != w->seen_until ||
	       s->busy_frac != w->seen_frac;
}

static __always_inline void emud_timed_commit(struct emud_state *s,
					      const struct emud_timed *w)
{
	s->opportunity = w->opportunity;
	s->opportunity_left = w->left;
	s->timeline_id = w->id;
}

#endif
