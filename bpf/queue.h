/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue: serialisation at the link's rate, and a limited backlog in front of it.
 *
 * The queue is a virtual clock: busy_until is the time at which the last
 * admitted packet has left, so the backlog is busy_until - now and only the
 * clock must be stored. The clock includes fractions of a ns, so no rate
 * drifts. A limit in packets is exact too: the first of the last N admitted
 * packets must have left, which costs one lookup in a ring of their times.
 *
 * A burst is the same clock with permission to lag behind: a token bucket
 * without tokens that would need rounding.
 */
#ifndef EMUD_QUEUE_H
#define EMUD_QUEUE_H

#include "maps.h"
#include "aqm.h"
#include "ecn.h"
#include "timeline.h"

#define EMUD_TRAIN_MAX 64 /* wire packets of a super-packet that are counted one by one */
#define EMUD_WIRE_MAX ((1 << 21) - 1) /* bytes; times rate_mult, still in 64 bits */

/* Of 64 CPUs that compete for one queue, all but one lose each race: with 8
 * attempts seven of eight packets would lose all of them, with 1,024 one in
 * 10^7. Such a packet is dropped, as by a full queue. A loop, because
 * bpf_loop() needs one frame more than the verifier allows. */
#define EMUD_QUEUE_TRIES 1024

/* The pieces of a ring that a packet needs. They are looked up before the lock,
 * under which no function call is allowed, so the queue may have moved to other
 * pieces by then. */
struct emud_ring_view {
	__u32 pos; /* tail of the queue */
	__u32 oldest_pos; /* the packet that must have left */
	struct emud_ring *now;
	struct emud_ring *next;
	struct emud_ring *oldest;
};

/* Returns the number of pieces in the ring of a state and sets the first one. */
static __always_inline __u32 emud_ring_of(const struct emud_packet *p, __u32 *first)
{
	const __u32 plain_rings = EMUD_RING_LEN / EMUD_RING_STEP;
	__u32 plain = emud_layout.plain, instances = emud_layout.instances;
	__u32 queue = p->queue;

	if (likely(queue < plain)) {
		*first = queue * plain_rings;
		return plain_rings;
	}
	queue -= plain;
	*first = plain * plain_rings;
	if (queue < instances) {
		*first += queue * emud_layout.instance_rings;
		return emud_layout.instance_rings;
	}
	*first += instances * emud_layout.instance_rings +
		  (queue - instances) * emud_layout.pair_rings;
	return emud_layout.pair_rings;
}

/* 1 if x is above limit, both below 2^63. Without a branch: the verifier would
 * follow it through all code after it. */
static __always_inline __u64 emud_above(__u64 x, __u64 limit)
{
	return (limit - x) >> 63;
}

static __always_inline int emud_ring_look(const struct emud_state *s,
					  const struct emud_offer *offer,
					  struct emud_ring_view *v)
{
	__u32 first = offer->ring, rings = offer->rings, step;

	v->pos = *(volatile __u32 *)&s->ring_pos;
	v->oldest_pos = v->pos - offer->behind;
	step = v->pos / EMUD_RING_STEP;
	v->now = EMUD_LOOKUP(emud_rings, first + (step & (rings - 1)));
	v->next = v->now;
	if (offer->segments > 1)
		v->next = EMUD_LOOKUP(emud_rings, first + ((step + 1) & (rings - 1)));
	step = v->oldest_pos / EMUD_RING_STEP;
	v->oldest = EMUD_LOOKUP(emud_rings, first + (step & (rings - 1)));
	return v->now && v->next && v->oldest;
}

static __always_inline __u64 *emud_ring_at(struct emud_ring *ring, __u32 pos)
{
	return &ring->sent[emud_bound(pos & (EMUD_RING_STEP - 1), EMUD_RING_STEP)];
}

/* A position is below EMUD_RING_LEN only as long as the ring is not full. */
static __always_inline void
emud_ring_push(struct emud_state *s, const struct emud_ring_view *v, __u32 n, __u64 sent)
{
	__u32 i;

	for (i = 0; i < EMUD_TRAIN_MAX; i++) {
		__u32 pos = s->ring_pos + i;

		if (i >= n)
			break;
		if ((pos ^ v->pos) < EMUD_RING_STEP)
			*emud_ring_at(v->now, pos) = sent;
		else
			*emud_ring_at(v->next, pos) = sent;
	}
	s->ring_pos += n;
	if (s->ring_pos < n)
		s->ring_pos += EMUD_RING_LEN;
}

static __always_inline int emud_is_pair(const struct emud_packet *p)
{
	return p->queue >= emud_layout.plain + emud_layout.instances;
}

/* The time that this many bytes take at the rate in force, in ns; ~0 if the
 * rate is 0. */
static __always_inline __u64 emud_bytes_ns(const struct emud_packet *p,
					   const struct emud_link *l, __u32 bytes)
{
	__u64 mult = emud_rate_mult(p, l), time;
	__u32 shift = emud_rate_shift(p, l);

	if (!bytes)
		return ~0ULL;
	/* mult < 2^42: in units of 2^16, below 2^59 */
	time = (bytes >> 16) * mult + (((bytes & 0xffff) * mult) >> 16);
	if (shift >= 16)
		return time >> (shift - 16);
	return time >> (47 + shift) ? ~0ULL : time << (16 - shift);
}

/* The longest backlog including the packet. */
static __always_inline __u64 emud_busy_limit(const struct emud_packet *p,
					     const struct emud_link *l)
{
	if (unlikely(emud_is_pair(p)))
		return emud_bytes_ns(p, l, l->pair_bytes);
	if (unlikely(p->over.set & EMUD_SET_RATE))
		return emud_bytes_ns(p, l, l->queue_bytes);
	return l->queue_busy_ns;
}

/* The length of one wire packet with all overhead (tc-stab(8), tc-netem(8)). */
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

/* The length of all wire packets of a packet. */
static __always_inline __u64 emud_on_wire(const struct emud_packet *p,
					  const struct emud_link *l)
{
	__u64 len = emud_framed(l, p->last_len);

	if (unlikely(p->segments > 1))
		len += (p->segments - 1) * emud_framed(l, p->full_len);
	return len < EMUD_WIRE_MAX ? len : EMUD_WIRE_MAX;
}

/* After an idle time the clock lags behind by up to the burst: whatever fits
 * into the lag is sent at once. */
static __always_inline struct emud_turn emud_turn(const struct emud_packet *p,
						  const struct emud_link *l,
						  const struct emud_state *s,
						  const struct emud_offer *offer)
{
	__u32 shift = emud_rate_shift(p, l);
	struct emud_turn t = {};
	__u64 work, start = 0;

	if (p->arrival > l->queueing.burst_ns)
		start = p->arrival - l->queueing.burst_ns;
	work = offer->len * emud_rate_mult(p, l);
	if (s->busy_until >= start) {
		start = s->busy_until;
		/* a fraction left by a different rate is less than a ns, too */
		work += s->busy_frac & ((1ULL << shift) - 1);
	}
	t.busy_until = start + (work >> shift);
	t.busy_frac = work & ((1ULL << shift) - 1);
	t.wait = start > p->arrival ? start - p->arrival : 0;
	t.sent = t.busy_until > p->arrival ? t.busy_until : p->arrival;
	t.full = emud_above(t.wait, offer->wait_limit) |
		 emud_above(t.sent - p->arrival, offer->busy_limit);
	return t;
}

/* Under the lock. */
static __always_inline enum emud_verdict
emud_enqueue(struct emud_packet *p, const struct emud_link *l, struct emud_state *s,
	     const struct emud_offer *offer, const struct emud_ring_view *v,
	     struct emud_turn *t, int managed)
{
	enum emud_verdict verdict = EMUD_ADMIT;
	__u32 n = offer->segments, oldest = s->ring_pos - offer->behind;

	if (((s->ring_pos ^ v->pos) | (oldest ^ v->oldest_pos)) >= EMUD_RING_STEP)
		return EMUD_AGAIN;
	/* The first of the last N packets has not left. */
	t->full |= offer->limited & emud_above((__u64)s->ring_pos + n, offer->packets) &
		   emud_above(*emud_ring_at(v->oldest, oldest), p->arrival);
	if (managed && l->queueing.aqm)
		verdict = emud_aqm(p, l, s, offer, t->wait, t->full);
	if (verdict == EMUD_DROP)
		return verdict;
	if (t->full)
		return EMUD_FULL;
	s->busy_until = t->busy_until;
	s->busy_frac = t->busy_frac;
	emud_ring_push(s, v, n, t->sent);
	p->sent = t->sent;
	return offer->capable && t->wait > l->queueing.mark_ns ? EMUD_MARK : verdict;
}

/* Computes everything that can be known about a packet before the lock. A
 * global function, so that the verifier does not follow its paths through the
 * code after the call. */
__noinline int emud_offer_of(struct __sk_buff *skb, struct emud_packet *p,
			     struct emud_offer *offer)
{
	const __u64 any = ~0ULL >> 1;
	const struct emud_link *l;
	struct emud_state *s;

	if (!p || !offer)
		return 0;
	l = emud_link(p);
	s = emud_queue_state(p);
	if (!l || !s)
		return 0;
	offer->len = emud_on_wire(p, l);
	offer->busy_limit = emud_busy_limit(p, l) & any;
	offer->wait_limit = l->queue_wait_ns & any;
	offer->segments = p->segments < EMUD_TRAIN_MAX ? p->segments : EMUD_TRAIN_MAX;
	offer->packets = emud_is_pair(p) ? l->pair_packets : l->queue_packets;
	offer->rings = emud_ring_of(p, &offer->ring);
	if (!offer->rings) {
		/* No limit in packets: nothing reads what is written there. */
		offer->packets = 0;
		offer->ring = emud_layout.spare_ring;
		offer->rings = 1;
	}
	offer->limited = !!offer->packets;
	/* A train longer than the queue is admitted only to an empty queue. */
	offer->behind = offer->packets > offer->segments
				? offer->packets - offer->segments + 1
				: 1;
	offer->capable = emud_ecn_capable(skb, p, l);
	offer->decay = emud_red_decay(l, s, p->arrival);
	emud_pie_catch_up(l, s, p->arrival);
	return 1;
}

/* Returns an enum emud_verdict. `managed` is a constant: without managers the
 * code is short. */
static __always_inline int emud_take_turn(struct emud_packet *p,
					  const struct emud_link *l, struct emud_state *s,
					  const struct emud_offer *offer, int managed)
{
	struct emud_ring_view view;
	enum emud_verdict verdict;
	struct emud_turn t;

	if (!emud_ring_look(s, offer, &view))
		return EMUD_FULL;
	bpf_spin_lock(&s->lock);
	t = emud_turn(p, l, s, offer);
	verdict = emud_enqueue(p, l, s, offer, &view, &t, managed);
	bpf_spin_unlock(&s->lock);
	return verdict;
}

__noinline int emud_queue_once(struct __sk_buff *skb, struct emud_packet *p)
{
	struct emud_offer offer = {};
	const struct emud_link *l;
	struct emud_state *s;

	if (!p || !emud_offer_of(skb, p, &offer))
		return EMUD_FULL;
	l = emud_link(p);
	s = emud_queue_state(p);
	if (!l || !s)
		return EMUD_FULL;
	return emud_take_turn(p, l, s, &offer, 1);
}

__noinline int emud_queue_any(struct __sk_buff *skb, struct emud_packet *p)
{
	int i, verdict = EMUD_FULL;

	if (!p)
		return EMUD_FULL;
	for (i = 0; i < EMUD_QUEUE_TRIES; i++) {
		verdict = emud_queue_once(skb, p);
		if (likely(verdict != EMUD_AGAIN))
			return verdict;
	}
	return EMUD_FULL;
}

/* The most common case, without a call: one packet, the link's own queue, only
 * a rate and limits. */
static __always_inline int emud_queue(struct __sk_buff *skb, struct emud_packet *p,
				      const struct emud_link *l)
{
	__s64 len = (__s64)p->last_len + l->overhead;
	struct emud_state *s = emud_queue_state(p);
	struct emud_offer offer = {
		.len = len & ~(len >> 63), /* not below 0 */
		.busy_limit = l->queue_busy_ns & ~0ULL >> 1,
		.wait_limit = l->queue_wait_ns & ~0ULL >> 1,
		.segments = 1,
		.packets = l->queue_packets,
		.behind = l->queue_packets,
		.limited = emud_nonzero(l->queue_packets),
	};
	int verdict = EMUD_AGAIN;

	if (s && (l->flags & EMUD_F_PLAIN_QUEUE) && p->segments == 1 && !p->over.set &&
	    p->queue < emud_layout.plain) {
		offer.rings = emud_ring_of(p, &offer.ring);
		verdict = emud_take_turn(p, l, s, &offer, 0);
	}
	return likely(verdict != EMUD_AGAIN) ? verdict : emud_queue_any(skb, p);
}

/* The same with a transmission time that a timeline computes. */
__noinline int emud_queue_timed(struct __sk_buff *skb, struct emud_packet *p)
{
	struct emud_offer offer = {};
	struct emud_ring_view view;
	const struct emud_link *l;
	enum emud_verdict verdict;
	struct emud_timed *w;
	struct emud_state *s;

	if (!p || !emud_offer_of(skb, p, &offer))
		return EMUD_FULL;
	l = emud_link(p);
	s = emud_queue_state(p);
	w = EMUD_LOOKUP(emud_turns, p->direction);
	if (!l || !s || !w || !emud_ring_look(s, &offer, &view))
		return EMUD_FULL;

	bpf_spin_lock(&s->lock);
	verdict = EMUD_AGAIN;
	if (!emud_stale(s, w))
		verdict = emud_enqueue(p, l, s, &offer, &view, &w->turn, 1);
	if (verdict == EMUD_ADMIT || verdict == EMUD_MARK)
		emud_timed_commit(s, w);
	bpf_spin_unlock(&s->lock);
	return verdict;
}

/* Repeats until no packet of a different CPU was admitted in between. */
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
