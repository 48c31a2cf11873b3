/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queue: serialisation at the link's rate, and a limited backlog in front of it.
 *
 * The queue is a virtual clock: busy_until is when the last admitted packet
 * has left, so the backlog is busy_until - now and nothing has to be stored
 * but the clock. It carries fractions of a ns, so no rate drifts. A limit in
 * packets is exact too: of the last N admitted packets the first must have
 * left, which is one look at a ring of their times.
 */
#ifndef EMUD_QUEUE_H
#define EMUD_QUEUE_H

#include "maps.h"

#define EMUD_TRAIN_MAX 64 /* wire packets of one super-packet counted one by one */

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

/* False: the queue is full. */
static __always_inline int emud_queue(struct emud_packet *p)
{
	const struct emud_link *l = p->link;
	struct emud_state *s = p->state;
	__u64 start, sent, work, frac = 0;
	__u32 n = p->segments < EMUD_TRAIN_MAX ? p->segments : EMUD_TRAIN_MAX;
	__s64 len = (__s64)p->wire_len + (__s64)p->segments * l->overhead;
	int full;

	p->sent = p->arrival;
	if (!l->rate_mult)
		return 1;
	if (len < 0)
		len = 0;

	bpf_spin_lock(&s->lock);
	start = p->arrival;
	if (s->busy_until >= start) {
		start = s->busy_until;
		frac = s->busy_frac;
	}
	work = len * l->rate_mult + frac;
	sent = start + (work >> (l->rate_shift & 63));
	full = start - p->arrival > l->queue_wait_ns ||
	       sent - p->arrival > l->queue_busy_ns;
	if (l->queue_packets &&
	    *emud_ring_at(p->direction, s->ring_pos + n - 1 - l->queue_packets) >
		    p->arrival)
		full = 1;
	if (!full) {
		s->busy_until = sent;
		s->busy_frac = work & ((1ULL << (l->rate_shift & 63)) - 1);
		emud_ring_push(s, p->direction, n, sent);
	}
	bpf_spin_unlock(&s->lock);

	p->sent = sent;
	return !full;
}

#endif
