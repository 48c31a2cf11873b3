/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queue: serialisation at the link's rate, and a limited backlog in front of it.
 *
 * The queue is a virtual clock: busy_until is when the last admitted packet
 * has left, so the backlog is busy_until - now and nothing has to be stored
 * but the clock. It carries fractions of a ns, so no rate drifts. A limit in
 * packets is exact too: of the last N admitted packets the first must have
 * left, which is one look at a ring of their times.
 *
 * A burst is the same clock, allowed to lag behind: a bucket of tokens without
 * tokens to round.
 */
#ifndef EMUD_QUEUE_H
#define EMUD_QUEUE_H

#include "maps.h"
#include "aqm.h"
#include "ecn.h"
#include "timeline.h"

#define EMUD_TRAIN_MAX 64 /* wire packets of one super-packet counted one by one */
#define EMUD_WIRE_MAX ((1 << 21) - 1) /* bytes; times rate_mult, still in 64 bits */

/* When each admitted packet has left the wire, ns. */
__u64 emud_ring[EMUD_DIRECTIONS * EMUD_RING_LEN];

static __always_inline __u64 *emud_ring_at(__u32 direction, __u32 pos)
{
	return &emud_ring[emud_bound(direction * EMUD_RING_LEN +
					     (pos & (EMUD_RING_LEN - 1)),
				     EMUD_DIRECTIONS * EMUD_RING_LEN)];
}

static __always_inline void emud_ring_push(struct emud_state *s, __u32 direction, __u32 n,
					   __u64 sent)
{
	__u32 i;

	for (i = 0; i < EMUD_TRAIN_MAX; i++) {
		if (i >= n)
			break;
		*emud_ring_at(direction, s->ring_pos + i) = sent;
	}
	s->ring_pos += n;
}

/* One wire packet with all that it takes on the wire (tc-stab(8), tc-netem(8)). */
static __always_inline __u64 emud_framed(const struct emud_link *l, __u32 bytes)
{
	const struct emud_queueing *q = &l->queueing;
	__s64 len = (__s64)bytes + l->overhead;
	__u64 cells;

	if (len < (__s64)q->mpu)
		len = q->mpu;
	if (likely(!q->cell_size))
		return len;
	cells = ((__u64)len + q->cell_size - 1) / q->cell_size;
	if (q->cell_pad)
		len = cells * q->cell_size;
	return len + (__s64)cells * q->cell_overhead;
}

/* All wire packets of it. */
static __always_inline __u64 emud_on_wire(const struct emud_packet *p,
					  const struct emud_link *l)
{
	__u64 len = emud_framed(l, p->last_len);

	if (unlikely(p->segments > 1))
		len += (p->segments - 1) * emud_framed(l, p->full_len);
	return len < EMUD_WIRE_MAX ? len : EMUD_WIRE_MAX;
}

/* After idleness the clock lags behind by up to the burst: what fits in between
 * is sent at once. */
static __always_inline struct emud_turn emud_turn(const struct emud_packet *p,
						  const struct emud_link *l,
						  const struct emud_state *s, __u64 len)
{
	__u32 shift = emud_rate_shift(p, l);
	struct emud_turn t = {};
	__u64 work, start = 0;

	if (p->arrival > l->queueing.burst_ns)
		start = p->arrival - l->queueing.burst_ns;
	work = len * emud_rate_mult(p, l);
	if (s->busy_until >= start) {
		start = s->busy_until;
		/* a fraction of another rate's is less than a ns, too */
		work += s->busy_frac & ((1ULL << shift) - 1);
	}
	t.busy_until = start + (work >> shift);
	t.busy_frac = work & ((1ULL << shift) - 1);
	t.wait = start > p->arrival ? start - p->arrival : 0;
	t.sent = t.busy_until > p->arrival ? t.busy_until : p->arrival;
	t.full = t.wait > l->queue_wait_ns || t.sent - p->arrival > l->queue_busy_ns;
	return t;
}

/* Under the lock. */
static __always_inline enum emud_verdict
emud_enqueue(struct emud_packet *p, const struct emud_link *l, struct emud_state *s,
	     const struct emud_offer *offer, struct emud_turn *t)
{
	__u32 n = p->segments < EMUD_TRAIN_MAX ? p->segments : EMUD_TRAIN_MAX;
	enum emud_verdict verdict = EMUD_ADMIT;

	if (l->queue_packets &&
	    *emud_ring_at(p->direction, s->ring_pos + n - 1 - l->queue_packets) >
		    p->arrival)
		t->full = 1;
	if (l->queueing.aqm)
		verdict = emud_aqm(p, l, s, offer, t->wait, t->full);
	if (verdict == EMUD_DROP)
		return verdict;
	if (t->full)
		return EMUD_FULL;
	s->busy_until = t->busy_until;
	s->busy_frac = t->busy_frac;
	emud_ring_push(s, p->direction, n, t->sent);
	p->sent = t->sent;
	return offer->capable && t->wait > l->queueing.mark_ns ? EMUD_MARK : verdict;
}

/* An enum emud_verdict. */
__noinline int emud_queue(struct __sk_buff *skb, struct emud_packet *p)
{
	const struct emud_link *l;
	enum emud_verdict verdict;
	struct emud_state *s;
	struct emud_offer offer;
	struct emud_turn t;

	if (!p)
		return EMUD_FULL;
	l = emud_link(p);
	s = emud_queue_state(p);
	if (!l || !s)
		return EMUD_FULL;
	offer.len = emud_on_wire(p, l);
	offer.capable = emud_ecn_capable(skb, p, l);
	offer.decay = emud_red_decay(l, s, p->arrival);
	emud_pie_catch_up(l, s, p->arrival);

	bpf_spin_lock(&s->lock);
	t = emud_turn(p, l, s, offer.len);
	verdict = emud_enqueue(p, l, s, &offer, &t);
	bpf_spin_unlock(&s->lock);
	return verdict;
}

#define EMUD_QUEUE_TRIES 16

/* The same, its turn worked out by a timeline. */
__noinline int emud_queue_timed(struct __sk_buff *skb, struct emud_packet *p)
{
	const struct emud_link *l;
	enum emud_verdict verdict;
	struct emud_offer offer;
	struct emud_timed *w;
	struct emud_state *s;
	struct emud_turn t;

	if (!p)
		return EMUD_FULL;
	l = emud_link(p);
	s = emud_queue_state(p);
	w = EMUD_LOOKUP(emud_turns, 0);
	if (!l || !s || !w)
		return EMUD_FULL;
	offer.len = w->len;
	offer.capable = emud_ecn_capable(skb, p, l);
	offer.decay = emud_red_decay(l, s, p->arrival);
	emud_pie_catch_up(l, s, p->arrival);
	t = w->turn;

	bpf_spin_lock(&s->lock);
	verdict = EMUD_AGAIN;
	if (!emud_stale(s, w))
		verdict = emud_enqueue(p, l, s, &offer, &t);
	if (verdict == EMUD_ADMIT || verdict == EMUD_MARK)
		emud_timed_commit(s, w);
	bpf_spin_unlock(&s->lock);
	return verdict;
}

/* Until no other packet is faster; that each of so many was is as good as never,
 * and then it is dropped as by a full queue. */
__noinline int emud_timed_queue(struct __sk_buff *skb, struct emud_packet *p)
{
	const struct emud_link *l;
	int i, verdict;
	__u64 len;

	if (!p)
		return EMUD_FULL;
	l = emud_link(p);
	if (!l)
		return EMUD_FULL;
	len = emud_on_wire(p, l);
	for (i = 0; i < EMUD_QUEUE_TRIES; i++) {
		if (!emud_timed_turn(p, len))
			return EMUD_FULL;
		verdict = emud_queue_timed(skb, p);
		if (verdict != EMUD_AGAIN)
			return verdict;
	}
	return EMUD_FULL;
}

#endif
