/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ring: when each of the packets that a queue has let in leaves the wire.
 */
#ifndef EMUD_RING_H
#define EMUD_RING_H

#include "maps.h"
#include "aqm/arrival.h"

#define EMUD_TRAIN_MAX 64 /* wire packets of one super-packet counted one by one */

/* The pieces of a ring that a packet needs, looked up before the lock, under
 * which no function may be called: so where the queue is by then may be elsewhere. */
struct emud_ring_view {
	__u32 pos; /* where the queue ended */
	__u32 oldest_pos; /* the packet that must have left */
	struct emud_ring *now;
	struct emud_ring *next;
	struct emud_ring *oldest;
};

/* Pieces of the ring of a state, and the first of them. */
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

#endif
